//! A client without a wire: requests go straight into the service, answers come back whole.

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use orlop_apiserver::{ApiServer, ApiService, Body, Builder, User};
use orlop_clock::{ManualClock, Rng, SignedDuration, Timestamp};
use serde_json::Value;
use std::time::Duration;
use tower::ServiceExt as _;

pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// When the clock of a test server starts.
pub(crate) const START: &str = "2026-01-02T03:04:05Z";

/// A builder whose server has the clock in hand and a fixed seed.
pub(crate) fn builder() -> (Builder, ManualClock) {
    let clock = ManualClock::new(START.parse::<Timestamp>().expect("a time"));
    (ApiServer::builder().clock(clock.clone().into()).rng(Rng::seeded(1)), clock)
}

/// A server that knows nothing but what a new cluster holds, and its administrator.
pub(crate) fn admin() -> Client {
    Client::admin(&builder().0.build())
}

/// Someone who calls the API.
#[derive(Clone)]
pub(crate) struct Client {
    service: ApiService,
    headers: Vec<(String, String)>,
}

impl Client {
    pub(crate) fn admin(server: &ApiServer) -> Self {
        Self::user(server, User::admin())
    }

    pub(crate) fn user(server: &ApiServer, user: User) -> Self {
        Self { service: server.service_as(user), headers: Vec::new() }
    }

    /// Someone who has not said who they are.
    pub(crate) fn anonymous(server: &ApiServer) -> Self {
        Self { service: server.service(), headers: Vec::new() }
    }

    /// Whoever a token stands for.
    pub(crate) fn token(server: &ApiServer, token: &str) -> Self {
        Self::anonymous(server).with("authorization", &format!("Bearer {token}"))
    }

    /// The same caller with one more header on each request.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    async fn open(&self, method: &str, path: &str, body: Bytes) -> http::Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body)).unwrap_or_else(|why| panic!("{method} {path}: {why}"));
        match self.service.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// Sends bytes as they are. Of an answer without end, such as a watch, only the beginning is read.
    pub(crate) async fn send(&self, method: &str, path: &str, body: impl Into<Bytes>) -> Reply {
        let (parts, mut answer) = self.open(method, path, body.into()).await.into_parts();
        let mut body = Vec::new();
        while let Ok(Some(frame)) = tokio::time::timeout(Duration::ZERO, answer.frame()).await {
            let frame = frame.unwrap_or_else(|never| match never {});
            body.extend(frame.into_data().expect("answers have no trailers"));
        }
        Reply { status: parts.status.as_u16(), headers: parts.headers, body: body.into() }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, Bytes::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send("PUT", path, body.to_string()).await
    }

    pub(crate) async fn patch(&self, content_type: &str, path: &str, body: &Value) -> Reply {
        self.with("content-type", content_type).send("PATCH", path, body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, Bytes::new()).await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Reply {
        self.send("DELETE", path, options.to_string()).await
    }

    /// Creates an object that must be accepted; what was stored comes back.
    pub(crate) async fn create(&self, path: &str, body: &Value) -> Value {
        self.post(path, body).await.ok(201)
    }

    /// The names of the objects in a list.
    pub(crate) async fn names(&self, path: &str) -> Vec<String> {
        self.get(path).await.ok(200).names()
    }

    /// The store's revision, as a list shows it.
    pub(crate) async fn revision(&self) -> u64 {
        let list = self.get("/api/v1/namespaces?limit=1").await.ok(200);
        list["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse().ok()).expect("a revision")
    }

    /// Opens a watch that must be granted.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let response = self.open("GET", path, Bytes::new()).await;
        assert_eq!(response.status(), 200, "{path}");
        Watch { body: response.into_body(), buffer: Vec::new() }
    }
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    /// The body of an answer that must have this status.
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Status, reason and message: what a table of refusals holds.
    pub(crate) fn refusal(&self) -> (u16, String, String) {
        let status = self.json();
        assert_eq!(status["kind"], "Status", "{status}");
        assert_eq!(status["status"], "Failure", "{status}");
        assert_eq!(status["code"], self.status, "{status}");
        (self.status, status["reason"].as_str().unwrap_or_default().to_owned(), status.message().to_owned())
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        let values = self.headers.get_all("warning").iter();
        values.map(|value| value.to_str().expect("warnings are text").to_owned()).collect()
    }
}

/// Short ways to the parts of an object that tests look at.
pub(crate) trait Object {
    fn name(&self) -> &str;
    fn version(&self) -> &str;
    fn uid(&self) -> &str;
    fn message(&self) -> &str;
    fn names(&self) -> Vec<String>;
}

impl Object for Value {
    fn name(&self) -> &str {
        self["metadata"]["name"].as_str().unwrap_or_default()
    }

    fn version(&self) -> &str {
        self["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    }

    fn uid(&self) -> &str {
        self["metadata"]["uid"].as_str().unwrap_or_default()
    }

    fn message(&self) -> &str {
        self["message"].as_str().unwrap_or_default()
    }

    fn names(&self) -> Vec<String> {
        let items = self["items"].as_array().expect("a list has items");
        items.iter().map(|item| item.name().to_owned()).collect()
    }
}

/// An open watch.
pub(crate) struct Watch {
    body: Body,
    buffer: Vec<u8>,
}

impl Watch {
    /// The next event, when there is one; nothing when the watch has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("an event is a line of JSON"));
            }
            let frame = self.body.frame().await?.unwrap_or_else(|never| match never {});
            self.buffer.extend(frame.into_data().expect("a watch is all data"));
        }
    }

    /// The events that are there already.
    pub(crate) async fn ready(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Ok(Some(event)) = tokio::time::timeout(Duration::ZERO, self.next()).await {
            events.push(event);
        }
        events
    }

    /// The events that are there already, each as `TYPE name`.
    pub(crate) async fn seen(&mut self) -> Vec<String> {
        self.ready().await.iter().map(spoken).collect()
    }
}

/// An event as `TYPE name`.
pub(crate) fn spoken(event: &Value) -> String {
    format!("{} {}", event["type"].as_str().unwrap_or_default(), event["object"].name()).trim_end().to_owned()
}

/// Moves a clock by seconds.
pub(crate) fn advance(clock: &ManualClock, seconds: i64) {
    clock.advance(SignedDuration::from_secs(seconds));
}
