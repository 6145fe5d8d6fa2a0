//! Connections: TCP, TLS and HTTP/1.1, kept for the next call to the same place.
//!
//! A connection is driven by the call that uses it; between calls it rests, so that no task is needed. One that the
//! other side has closed meanwhile is noticed by the next call, which then opens a new one.

use super::endpoint::Endpoint;
use super::{ANSWER_BYTES_MAX, Reply, tls};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How many unused connections to one place are kept.
const IDLE_MAX: usize = 8;
/// To how many places connections are kept.
const PLACES_MAX: usize = 64;

/// What makes two calls able to share a connection.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    host: String,
    port: u16,
    address: Option<SocketAddr>,
    roots: Vec<u8>,
}

/// An open connection and the one who writes to it.
struct Link {
    sender: http1::SendRequest<Full<Bytes>>,
    connection: http1::Connection<TokioIo<TlsStream<TcpStream>>, Full<Bytes>>,
}

/// Connections that wait for the next call.
#[derive(Default)]
pub(super) struct Connections {
    idle: Mutex<BTreeMap<Place, Vec<Link>>>,
}

impl Connections {
    /// Posts to an endpoint, at an address if that is known already.
    pub(super) async fn post(
        &self,
        endpoint: &Endpoint,
        address: Option<SocketAddr>,
        target: &str,
        body: Bytes,
    ) -> Result<Reply, String> {
        let place = Place {
            host: endpoint.host().to_owned(),
            port: endpoint.port(),
            address,
            roots: endpoint.roots().to_vec(),
        };
        while let Some(mut link) = self.take(&place) {
            // An answer counts; a connection that went away while it rested does not.
            match link.exchange(request(endpoint, target, body.clone())?).await {
                Ok(reply) => {
                    self.keep(place, link).await;
                    return Ok(reply);
                }
                Err(Failure::Closed) => {}
                Err(Failure::Other(why)) => return Err(why),
            }
        }
        let mut link = open(&place).await?;
        match link.exchange(request(endpoint, target, body)?).await {
            Ok(reply) => {
                self.keep(place, link).await;
                Ok(reply)
            }
            Err(Failure::Closed) => Err("EOF".to_owned()),
            Err(Failure::Other(why)) => Err(why),
        }
    }

    fn take(&self, place: &Place) -> Option<Link> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).get_mut(place)?.pop()
    }

    async fn keep(&self, place: Place, mut link: Link) {
        let usable = tokio::select! {
            biased;
            _ = &mut link.connection => false,
            ready = link.sender.ready() => ready.is_ok(),
        };
        if !usable {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= PLACES_MAX && !idle.contains_key(&place) {
            idle.pop_first();
        }
        let links = idle.entry(place).or_default();
        if links.len() < IDLE_MAX {
            links.push(link);
        }
    }
}

/// Why there is no answer.
enum Failure {
    /// The connection ended before an answer began.
    Closed,
    Other(String),
}

impl Link {
    async fn exchange(&mut self, request: Request<Bytes>) -> Result<Reply, Failure> {
        let request = request.map(Full::new);
        let answer = async {
            let response = self.sender.send_request(request).await.map_err(|error| {
                let closed = error.is_incomplete_message() || error.is_closed() || error.is_canceled();
                if closed { Failure::Closed } else { Failure::Other(error.to_string()) }
            })?;
            let (parts, body) = response.into_parts();
            match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
                Ok(collected) => Ok(Reply::new(parts.status.as_u16(), &parts.headers, collected.to_bytes())),
                Err(error) if error.is::<LengthLimitError>() => {
                    Err(Failure::Other(format!("response body is larger than {ANSWER_BYTES_MAX} bytes")))
                }
                Err(_) => Err(Failure::Other("unexpected EOF".to_owned())),
            }
        };
        let mut answer = std::pin::pin!(answer);
        tokio::select! {
            biased;
            result = &mut answer => result,
            // What has arrived before the end is still handed out.
            _ = &mut self.connection => answer.await,
        }
    }
}

/// A post with the headers of the real server.
pub(super) fn request(endpoint: &Endpoint, target: &str, body: Bytes) -> Result<Request<Bytes>, String> {
    Request::post(target)
        .header(header::HOST, endpoint.authority())
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(|error| error.to_string())
}

async fn open(place: &Place) -> Result<Link, String> {
    let config = tls::config(&place.roots)?;
    let name = ServerName::try_from(place.host.clone())
        .map_err(|_| format!("dial tcp: lookup {}: no such host", place.host))?;
    let stream = dial(place).await?;
    let _ = stream.set_nodelay(true);
    let stream =
        TlsConnector::from(config).connect(name, stream).await.map_err(|error| tls::complaint(&error))?;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(|error| error.to_string())?;
    Ok(Link { sender, connection })
}

async fn dial(place: &Place) -> Result<TcpStream, String> {
    let addresses: Vec<SocketAddr> = match place.address {
        Some(address) => vec![address],
        None => {
            let found = tokio::net::lookup_host((place.host.as_str(), place.port)).await;
            found.map_err(|_| format!("dial tcp: lookup {}: no such host", place.host))?.collect()
        }
    };
    let mut why = format!("dial tcp: lookup {}: no such host", place.host);
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => why = format!("dial tcp {address}: connect: {}", system_words(&error)),
        }
    }
    Err(why)
}

/// The system's words for an error, as Go prints them.
fn system_words(error: &std::io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or_default();
    let mut letters = words.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
