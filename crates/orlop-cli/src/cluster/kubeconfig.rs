//! The kubeconfig of a cluster: where it is and how to be its administrator.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orlop_apiserver::Certificates;
use serde_json::{Value, json};

/// The name of cluster, user and context.
pub(crate) const NAME: &str = "orlop";

/// A kubeconfig with both a client certificate and a token.
pub(crate) fn text(url: &str, certificates: &Certificates, token: &str) -> String {
    let encoded = |pem: &str| STANDARD.encode(pem);
    let config: Value = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": url, "certificate-authority-data": encoded(&certificates.ca)}}],
        "users": [{"name": NAME, "user": {
            "client-certificate-data": encoded(&certificates.admin_certificate),
            "client-key-data": encoded(&certificates.admin_key),
            "token": token,
        }}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
    });
    serde_saphyr::to_string(&config).unwrap_or_else(|_| config.to_string())
}
