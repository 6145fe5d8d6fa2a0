//! Calls that the server makes: to webhooks of admission and of conversion.
//!
//! A webhook is a URL or a service. A service is answered by a function that the embedder registered
//! ([`services`]), or else found through the embedder's resolver; then, as for a URL, over TLS with the roots that
//! the configuration brings and no others. What goes wrong is told in the words of the Go client, because users
//! see them.

mod connection;
mod endpoint;
mod reply;
pub(crate) mod services;
mod tls;

pub(crate) use endpoint::Endpoint;
pub(crate) use reply::{Expected, Reply};
pub use services::{NotAServiceName, ServiceName};

use crate::server::Inner;
use bytes::Bytes;
use connection::Connections;
use services::Services;
use std::time::Duration;

/// The largest answer of a webhook.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Everything that outgoing calls share.
#[derive(Default)]
pub(crate) struct Outbound {
    pub(crate) services: Services,
    connections: Connections,
}

impl Outbound {
    /// Posts JSON to a webhook; the error is the text that the Go client would give.
    pub(crate) async fn post(
        &self,
        server: &Inner,
        endpoint: &Endpoint,
        body: Vec<u8>,
        timeout: Duration,
    ) -> Result<Reply, String> {
        let target = format!("{}?timeout={}s", endpoint.path(), timeout.as_secs());
        let call = self.send(server, endpoint, &target, Bytes::from(body));
        let result = match tokio::time::timeout(timeout, call).await {
            Ok(result) => result,
            Err(_) => Err("context deadline exceeded".to_owned()),
        };
        result.map_err(|why| format!("Post \"https://{}{target}\": {why}", endpoint.authority()))
    }

    async fn send(
        &self,
        server: &Inner,
        endpoint: &Endpoint,
        target: &str,
        body: Bytes,
    ) -> Result<Reply, String> {
        let Some(service) = endpoint.service() else {
            return self.connections.post(endpoint, None, target, body).await;
        };
        if let Some(handler) = self.services.handler(service) {
            let request = connection::request(endpoint, target, body)?;
            return Ok(Reply::from_response(handler(request).await));
        }
        let address = match self.services.resolve(service) {
            Some(address) => address,
            None => services::cluster_address(server, service)?,
        };
        self.connections.post(endpoint, Some(address), target, body).await
    }
}
