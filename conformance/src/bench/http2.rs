//! One TLS connection that many requests share: HTTP/2, which `kube::Client` does not speak.

use crate::failure::{Context as _, Failure};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Config;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// An open connection; cheap to clone, closed with the last clone.
#[derive(Clone)]
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    authority: String,
    token: HeaderValue,
    _driver: Arc<JoinSet<Result<(), hyper::Error>>>,
}

impl Connection {
    /// Connects to the server of a kubeconfig, with a token.
    pub(crate) async fn open(config: &Config, token: &str) -> Result<Self, Failure> {
        let host = config.cluster_url.host().unwrap_or_default().to_owned();
        let authority = format!("{host}:{}", config.cluster_url.port_u16().unwrap_or(443));
        let mut roots = RootCertStore::empty();
        for certificate in config.root_cert.iter().flatten() {
            roots.add(CertificateDer::from(certificate.clone())).context("the authority cannot be used")?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("cannot configure TLS")?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect(&authority).await.context("cannot connect")?;
        stream.set_nodelay(true).context("cannot configure the socket")?;
        let name = ServerName::try_from(host).context("the server has no name")?;
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await.context("no TLS")?;
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.context("no HTTP/2")?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let token = HeaderValue::from_str(&format!("Bearer {token}")).context("the token is not text")?;
        Ok(Self { sender, authority, token, _driver: Arc::new(driver) })
    }

    /// Sends a request whose target is a path.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Failure> {
        let uri = format!("https://{}{}", self.authority, request.uri());
        *request.uri_mut() = uri.parse().context("the path is not part of an address")?;
        request.headers_mut().insert(header::AUTHORIZATION, self.token.clone());
        self.sender.clone().send_request(request).await.context("the server does not answer")
    }

    /// Sends a request and reads its answer to the end without keeping it.
    pub(crate) async fn drain(&self, request: Request<Full<Bytes>>) -> Result<(), Failure> {
        let mut body = self.send(request).await?.into_body();
        while let Some(frame) = body.frame().await {
            frame.context("the answer was cut short")?;
        }
        Ok(())
    }
}
