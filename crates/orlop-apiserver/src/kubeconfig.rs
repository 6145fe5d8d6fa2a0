//! The kubeconfig of a server: where it is and how to be its administrator.

use crate::serve::Certificates;
use crate::yaml;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// The name of cluster, user and context.
const NAME: &str = "orlop";

impl Certificates {
    /// A kubeconfig for the administrator of the server at `url`, with both the client certificate and a token.
    pub fn kubeconfig(&self, url: &str, token: &str) -> String {
        let encoded = |pem: &str| STANDARD.encode(pem);
        yaml::to_string(&json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": NAME, "cluster": {"server": url, "certificate-authority-data": encoded(&self.ca)}}],
            "users": [{"name": NAME, "user": {
                "client-certificate-data": encoded(&self.admin_certificate),
                "client-key-data": encoded(&self.admin_key),
                "token": token,
            }}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
            "current-context": NAME,
        }))
    }
}
