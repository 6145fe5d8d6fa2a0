//! The cluster: a server, and clients that call it without a socket.

use crate::builder::Builder;
use crate::serving::Serving;
use kube::Client;
use orlop_apiserver::{ApiServer, Certificates, ServeError, User};
use orlop_clock::Clock;
use std::net::SocketAddr;

/// The namespace of clients that do not name one.
const NAMESPACE: &str = "default";

/// An embedded Kubernetes. Cheap to clone; clones are the same cluster.
#[derive(Clone)]
pub struct Cluster {
    server: ApiServer,
    clock: Clock,
    /// The administrator's bearer token, for those who come through a socket.
    token: String,
}

impl Cluster {
    /// A new cluster with the system's clock, as [`Cluster::builder`] makes it without further choices.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Choices for a new cluster.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(server: ApiServer, clock: Clock, token: String) -> Self {
        Self { server, clock, token }
    }

    /// A client of the administrator.
    pub fn client(&self) -> Client {
        self.client_as(User::admin())
    }

    /// A client of `user`, who may do what RBAC lets them.
    ///
    /// No middleware stands between client and server: no retries, no timeouts, no buffer.
    pub fn client_as(&self, user: User) -> Client {
        Client::new(self.server.service_as(user), NAMESPACE)
    }

    /// The API server: its services, snapshots and dumps.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Listens on an address with TLS and new certificates; port 0 takes a free one. Nothing is answered until
    /// [`Serving::run`].
    pub async fn serve(&self, address: SocketAddr) -> Result<Serving, ServeError> {
        let certificates = Certificates::generate(self.clock.now())?;
        let serving = self.server.serve(address, &certificates).await?;
        let url = format!("https://{}", serving.address());
        let kubeconfig = certificates.kubeconfig(&url, &self.token);
        Ok(Serving::new(serving, url, kubeconfig))
    }
}
