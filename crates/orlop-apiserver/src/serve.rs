//! The server on a socket: TLS, client certificates, HTTP/1.1 and HTTP/2.

use crate::auth::User;
use crate::body::Body;
use crate::builder::ApiServer;
use crate::files::write_private;
use crate::service::ApiService;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use orlop_clock::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

/// How long certificates are good for.
const VALIDITY_SECONDS: i64 = 10 * 365 * 24 * 3600;
/// How long open connections may take to end once the server stops.
const DRAIN: Duration = Duration::from_secs(2);
/// How long a client may take to agree on TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How many requests a client may have under way on one connection, watches included.
const STREAMS_MAX: u32 = 1000;
/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A socket or certificate that could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A certificate could not be made.
    #[error("cannot make certificates")]
    Certificate(#[from] rcgen::Error),
    /// The certificates do not make a TLS configuration.
    #[error("cannot configure TLS")]
    Tls(#[from] rustls::Error),
    /// The verifier of client certificates could not be made.
    #[error("cannot verify client certificates")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// A certificate or key is not PEM.
    #[error("a certificate or key cannot be read")]
    Pem(#[from] rustls_pki_types::pem::Error),
    /// A file with a certificate or key cannot be read or written.
    #[error("cannot use `{}`", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on `{address}`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
}

/// A certificate authority of the server's own, and what it has signed.
pub struct Certificates {
    /// The authority's certificate, in PEM.
    pub ca: String,
    /// The administrator's certificate, in PEM.
    pub admin_certificate: String,
    /// The administrator's key, in PEM.
    pub admin_key: String,
    /// The server's certificate, in PEM.
    server_certificate: String,
    /// The server's key, in PEM.
    server_key: String,
}

/// The files that certificates are kept in.
const FILES: [&str; 5] = ["ca.crt", "server.crt", "server.key", "admin.crt", "admin.key"];

impl Certificates {
    /// New certificates for a server on this machine, good from `now` on.
    pub fn generate(now: Timestamp) -> Result<Self, ServeError> {
        let ca_key = KeyPair::generate()?;
        let mut ca = params(&[], "orlop-ca", &[], now)?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let ca_certificate = ca.self_signed(&ca_key)?;
        let issuer = Issuer::from_params(&ca, &ca_key);
        let names = [
            "localhost",
            "127.0.0.1",
            "::1",
            "10.0.0.1",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
        ];
        let server_key = KeyPair::generate()?;
        let mut server = params(&names, "orlop-apiserver", &[], now)?;
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server = server.signed_by(&server_key, &issuer)?;
        let admin_key = KeyPair::generate()?;
        let mut admin = params(&[], "kubernetes-admin", &["system:masters"], now)?;
        admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let admin = admin.signed_by(&admin_key, &issuer)?;
        Ok(Self {
            ca: ca_certificate.pem(),
            admin_certificate: admin.pem(),
            admin_key: admin_key.serialize_pem(),
            server_certificate: server.pem(),
            server_key: server_key.serialize_pem(),
        })
    }

    /// The certificates in a directory; new ones are written there if it has none.
    pub fn keep_in(directory: &Path, now: Timestamp) -> Result<Self, ServeError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| ServeError::File { path, source }
        };
        if directory.join(FILES[0]).exists() {
            let read = |name: &str| {
                let path = directory.join(name);
                std::fs::read_to_string(&path).map_err(io(&path))
            };
            let [ca, server_certificate, server_key, admin_certificate, admin_key] = FILES.map(read);
            return Ok(Self {
                ca: ca?,
                server_certificate: server_certificate?,
                server_key: server_key?,
                admin_certificate: admin_certificate?,
                admin_key: admin_key?,
            });
        }
        std::fs::create_dir_all(directory).map_err(io(directory))?;
        let made = Self::generate(now)?;
        let texts =
            [&made.ca, &made.server_certificate, &made.server_key, &made.admin_certificate, &made.admin_key];
        // The first file is the last to be written: where it is, the others are.
        for (name, text) in FILES.into_iter().zip(texts).rev() {
            let path = directory.join(name);
            write_private(&path, text.as_bytes()).map_err(io(&path))?;
        }
        Ok(made)
    }

    fn config(&self) -> Result<ServerConfig, ServeError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_slice(self.ca.as_bytes())?;
        roots.add(ca.clone())?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()?;
        let certificate = CertificateDer::from_pem_slice(self.server_certificate.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(self.server_key.as_bytes())?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate, ca], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn params(
    names: &[&str],
    common_name: &str,
    groups: &[&str],
    now: Timestamp,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
    params.distinguished_name.push(DnType::CommonName, common_name);
    for group in groups {
        params.distinguished_name.push(DnType::OrganizationName, *group);
    }
    let at = |seconds: i64| {
        let day = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
        let text = day.to_string();
        let number =
            |range: std::ops::Range<usize>| text.get(range).and_then(|t| t.parse::<i32>().ok()).unwrap_or(1);
        rcgen::date_time_ymd(number(0..4), number(5..7) as u8, number(8..10) as u8)
    };
    // Whole days, the one before included: clocks differ.
    params.not_before = at(now.as_second() - 24 * 3600);
    params.not_after = at(now.as_second() + VALIDITY_SECONDS);
    Ok(params)
}

/// A server that listens.
pub struct Serving {
    address: SocketAddr,
    listener: TcpListener,
    acceptor: TlsAcceptor,
    server: ApiServer,
}

impl ApiServer {
    /// Listens on an address with TLS; port 0 takes a free one. Nothing is answered until [`Serving::run`].
    pub async fn serve(
        &self,
        address: SocketAddr,
        certificates: &Certificates,
    ) -> Result<Serving, ServeError> {
        let acceptor = TlsAcceptor::from(Arc::new(certificates.config()?));
        let listener =
            TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })?;
        let address = listener.local_addr().map_err(|source| ServeError::Listen { address, source })?;
        Ok(Serving { address, listener, acceptor, server: self.clone() })
    }
}

impl Serving {
    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `shutdown` is ready. Then watches end, and other requests may be finished for a short time.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) {
        let mut shutdown = std::pin::pin!(shutdown);
        let closing = watch::Sender::new(false);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => {
                    match accepted {
                        Ok((stream, _)) => {
                            let (acceptor, server) = (self.acceptor.clone(), self.server.clone());
                            connections.spawn(connection(stream, acceptor, server, closing.subscribe()));
                        }
                        // One that failed before it was a connection concerns nobody else; when the system has
                        // no more to give, asking again at once would only burn it.
                        Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                    }
                }
            }
        }
        drop(self.listener);
        closing.send_replace(true);
        let drained = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(DRAIN, drained).await;
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    server: ApiServer,
    closing: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await else { return };
    let user = stream.get_ref().1.peer_certificates().and_then(|chain| certificate_user(chain.first()?));
    let service: ApiService = match user {
        Some(user) => server.service_as(user),
        None => server.service(),
    };
    let ends = closing.clone();
    let service = service_fn(move |request| {
        let (mut service, ends) = (service.clone(), ends.clone());
        async move { service.call(request).await.map(|answer| answer.map(|body| UntilClosing::new(body, ends))) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(STREAMS_MAX);
    let mut connection =
        std::pin::pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    // A client that goes away in the middle is nobody's error.
    tokio::select! {
        biased;
        _ = &mut connection => {}
        () = closed(closing) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// Ready when the server closes.
async fn closed(mut closing: watch::Receiver<bool>) {
    // A sender that is gone has nothing to keep open either.
    let _ = closing.wait_for(|closing| *closing).await;
}

/// A body that ends where it is when the server closes; one that is known as a whole is finished.
struct UntilClosing {
    body: Body,
    closing: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl UntilClosing {
    fn new(body: Body, closing: watch::Receiver<bool>) -> Self {
        Self { body, closing: Box::pin(closed(closing)) }
    }
}

impl http_body::Body for UntilClosing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => self.closing.as_mut().poll(cx).map(|()| None),
            ready => ready,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The user that a verified client certificate names: common name and organisations.
fn certificate_user(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let name = parsed.subject().iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups: Vec<&str> =
        parsed.subject().iter_organization().filter_map(|group| group.as_str().ok()).collect();
    Some(User::new(&name, &groups))
}
