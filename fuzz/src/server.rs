//! The server under test: one state that every input starts from, and what must hold for every answer.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use orlop_apiserver::{ApiServer, ApiService, Snapshot, User};
use orlop_clock::{ManualClock, Rng, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt as _;

/// One server serves this many inputs: history and metrics grow, memory must not.
const INPUTS_MAX: u64 = 20_000;

/// Texts of answers from 500 on that the real server gives too, or gives in other words where there is nothing
/// behind the server.
const EXPECTED: [&str; 4] =
    ["nothing runs behind this server", "Timeout: ", "range is full", "failed calling webhook"];

/// Whether the real server would answer like this. It hands on many errors of its libraries as they are: those have
/// code 500 and no reason, and are made on purpose here.
fn is_expected(reply: &Reply) -> bool {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let text = body["message"].as_str().unwrap_or_default();
    let is_handed_on = reply.status == 500 && body["reason"].is_null() && !text.is_empty();
    is_handed_on || reply.status == 501 || EXPECTED.iter().any(|expected| text.contains(expected))
}

/// A request as inputs spell it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Ask {
    /// A request with a body of a type.
    pub(crate) fn new(method: &str, path: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { method: method.to_owned(), path: path.to_owned(), headers, body: body.into() }
    }

    /// A request as a tree: `{"method", "path", "headers": {}, "body"}`; a body that is text is sent as it is.
    pub(crate) fn read(tree: &Value) -> Self {
        let text = |name: &str| tree[name].as_str().unwrap_or_default().to_owned();
        let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        Self {
            method: text("method"),
            path: text("path"),
            headers: tree["headers"].as_object().into_iter().flatten().filter_map(pair).collect(),
            body: match &tree["body"] {
                Value::Null => Vec::new(),
                Value::String(text) => text.clone().into_bytes(),
                tree => tree.to_string().into_bytes(),
            },
        }
    }
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// What tells one way through the server from another: the code and, if it is an error, its message.
    pub(crate) fn class(&self) -> String {
        if self.status < 400 {
            return self.status.to_string();
        }
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        format!("{} {}", self.status, body["message"].as_str().unwrap_or_default())
    }
}

/// A server that goes back to the state it began with.
pub(crate) struct Server {
    runtime: tokio::runtime::Runtime,
    setup: Vec<Ask>,
    running: Running,
}

struct Running {
    server: ApiServer,
    service: ApiService,
    start: Snapshot,
    /// The revision that nothing has moved since the last restore.
    revision: u64,
    inputs: u64,
}

impl Server {
    /// A server in which these requests have been answered; each must be granted.
    pub(crate) fn new(setup: Vec<Ask>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without IO can be made");
        let running = start(&runtime, &setup);
        Self { runtime, setup, running }
    }

    /// Puts everything back to where it began.
    pub(crate) fn reset(&mut self) -> Result<(), String> {
        self.running.inputs += 1;
        if self.running.inputs > INPUTS_MAX {
            self.running = start(&self.runtime, &self.setup);
            return Ok(());
        }
        let revision = self.revision()?;
        if revision != self.running.revision {
            self.running.server.restore(&self.running.start).map_err(|why| why.to_string())?;
            self.running.revision = self.revision()?;
        }
        Ok(())
    }

    /// Sends a request; a finding if the answer is one that no request may get.
    pub(crate) fn ask(&mut self, ask: &Ask) -> Result<Reply, String> {
        let before = self.revision()?;
        let reply = self.runtime.block_on(send(&self.running.service, ask));
        let Some(reply) = reply else { return Ok(Reply { status: 0, body: Vec::new() }) };
        let line = || format!("{} {}", ask.method, ask.path);
        if reply.status >= 500 && ask.method != "HEAD" && !is_expected(&reply) {
            let text = String::from_utf8_lossy(&reply.body);
            return Err(format!("{} was answered {}: {text}", line(), reply.status));
        }
        let after = self.revision()?;
        if reply.status >= 400 && before != after {
            let text = String::from_utf8_lossy(&reply.body);
            return Err(format!(
                "{} was refused and has written ({before} to {after}): {} {text}",
                line(),
                reply.status
            ));
        }
        Ok(reply)
    }

    /// The store's revision, as a list shows it.
    fn revision(&self) -> Result<u64, String> {
        revision(&self.runtime, &self.running.service)
    }
}

fn revision(runtime: &tokio::runtime::Runtime, service: &ApiService) -> Result<u64, String> {
    let ask = Ask::new("GET", "/api/v1/namespaces/nowhere/podtemplates?limit=1", "", "");
    let reply = runtime.block_on(send(service, &ask)).ok_or("cannot list")?;
    let list: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let version = list["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok());
    version.ok_or_else(|| format!("a list has no version: {}", String::from_utf8_lossy(&reply.body)))
}

fn start(runtime: &tokio::runtime::Runtime, setup: &[Ask]) -> Running {
    let clock = ManualClock::new("2026-01-02T03:04:05Z".parse::<Timestamp>().expect("a time"));
    let server = ApiServer::builder().clock(clock.into()).rng(Rng::seeded(1)).build();
    let service = server.service_as(User::admin());
    let refused = setup.iter().filter_map(|ask| {
        let reply = runtime.block_on(send(&service, ask))?;
        (reply.status >= 300).then(|| format!("{}: {}", ask.path, reply.class()))
    });
    let refused: Vec<String> = refused.collect();
    assert!(refused.is_empty(), "objects to begin with are refused: {refused:?}");
    let revision = revision(runtime, &service).expect("lists have versions");
    Running { start: server.snapshot(), service, server, revision, inputs: 0 }
}

/// The answer, or nothing if HTTP itself would not carry the request.
async fn send(service: &ApiService, ask: &Ask) -> Option<Reply> {
    let mut request = Request::builder().method(ask.method.as_str()).uri(ask.path.as_str());
    for (name, value) in &ask.headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(&ask.body))).ok()?;
    // An address without a path cannot be sent.
    if !request.uri().path().starts_with('/') {
        return None;
    }
    let response = service.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
    let (parts, mut answer) = response.into_parts();
    let mut body = Vec::new();
    // Of an answer without end, such as a watch, only the beginning is read.
    while let Ok(Some(frame)) = tokio::time::timeout(Duration::ZERO, answer.frame()).await {
        let frame = frame.unwrap_or_else(|never| match never {});
        body.extend(frame.into_data().unwrap_or_default());
    }
    Some(Reply { status: parts.status.as_u16(), body })
}

/// The usual beginning: some objects of built-in kinds, a definition with rules, and an object under it.
pub(crate) fn populated() -> Vec<Ask> {
    let seeds = include_str!("../seeds/setup.jsonl");
    let asks = seeds.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    asks.map(|ask| Ask::read(&json!({"method": "POST", "path": ask["path"], "body": ask["body"]}))).collect()
}
