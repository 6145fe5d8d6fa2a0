//! A cluster on a socket.

use std::future::Future;
use std::net::SocketAddr;

/// A cluster that listens.
pub struct Serving {
    serving: orlop_apiserver::Serving,
    url: String,
    kubeconfig: String,
}

impl Serving {
    pub(crate) fn new(serving: orlop_apiserver::Serving, url: String, kubeconfig: String) -> Self {
        Self { serving, url, kubeconfig }
    }

    /// Where the cluster listens.
    pub fn address(&self) -> SocketAddr {
        self.serving.address()
    }

    /// Where the cluster listens, as clients write it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A kubeconfig for the administrator, with a client certificate and a token.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Answers until `shutdown` is ready, then lets connections end for a short time.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) {
        self.serving.run(shutdown).await;
    }
}
