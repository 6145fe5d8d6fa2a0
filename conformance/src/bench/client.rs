//! Requests as bytes, so that what is measured is the server and not the client's types.

use super::http2::Connection;
use crate::failure::{Context as _, Failure};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use orlop_apiserver::ApiService;
use tower_service::Service as _;

/// Where ConfigMaps are.
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The JSON of a ConfigMap with `bytes` of data.
pub(crate) fn config_map(name: &str, bytes: usize) -> Vec<u8> {
    let data = "x".repeat(bytes);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"key":"{data}"}}}}"#
    )
    .into_bytes()
}

/// Who is asked: a server through the client that users have, or the service itself.
#[derive(Clone)]
pub(crate) enum Target {
    Client(Client),
    Http2(Connection),
    Service(ApiService),
}

impl Target {
    /// Creates a ConfigMap and gives the answer's text.
    pub(crate) async fn create(&self, body: Vec<u8>) -> Result<String, Failure> {
        self.text(request("POST", MAPS, "application/json", body)).await
    }

    /// Reads a ConfigMap.
    pub(crate) async fn get(&self, name: &str) -> Result<String, Failure> {
        self.text(request("GET", &format!("{MAPS}/{name}"), "", Vec::new())).await
    }

    /// Lists all ConfigMaps of the namespace.
    pub(crate) async fn list(&self) -> Result<String, Failure> {
        self.text(request("GET", MAPS, "", Vec::new())).await
    }

    /// Deletes a ConfigMap.
    pub(crate) async fn delete(&self, name: &str) -> Result<String, Failure> {
        self.text(request("DELETE", &format!("{MAPS}/{name}"), "", Vec::new())).await
    }

    /// Applies a ConfigMap server-side.
    pub(crate) async fn apply(&self, name: &str, body: Vec<u8>) -> Result<String, Failure> {
        let path = format!("{MAPS}/{name}?fieldManager=bench&force=true");
        self.text(request("PATCH", &path, "application/apply-patch+yaml", body)).await
    }

    /// Opens a watch on ConfigMaps from `version` on.
    pub(crate) async fn watch(&self, version: &str) -> Result<Events, Failure> {
        let request = request("GET", &format!("{MAPS}?watch=true&resourceVersion={version}"), "", Vec::new());
        match self {
            Self::Client(client) => {
                let response = client.send(request.map(kube::client::Body::from)).await;
                Ok(Events::Client(response.context("the server does not watch")?.into_body()))
            }
            Self::Http2(connection) => {
                Ok(Events::Http2(connection.send(request.map(whole)).await?.into_body()))
            }
            Self::Service(service) => {
                let Ok(response) = service.clone().call(request.map(whole)).await;
                Ok(Events::Service(response.into_body()))
            }
        }
    }

    /// The version of the whole store, by a list that is empty.
    pub(crate) async fn version(&self) -> Result<String, Failure> {
        let path = format!("{MAPS}?limit=1&labelSelector=no%3Dbody");
        Ok(version_of(&self.text(request("GET", &path, "", Vec::new())).await?))
    }

    async fn text(&self, request: Request<Vec<u8>>) -> Result<String, Failure> {
        let what = format!("{} {}", request.method(), request.uri());
        let (status, body) = match self {
            Self::Client(client) => return client.request_text(request).await.context(what),
            Self::Http2(connection) => {
                let response = connection.send(request.map(whole)).await?;
                let status = response.status();
                (status, response.into_body().collect().await.context(&what)?.to_bytes())
            }
            Self::Service(service) => {
                let Ok(response) = service.clone().call(request.map(whole)).await;
                let status = response.status();
                let Ok(body) = response.into_body().collect().await;
                (status, body.to_bytes())
            }
        };
        let text = String::from_utf8_lossy(&body).into_owned();
        if status.is_success() { Ok(text) } else { Err(Failure::new(format!("{what}: {status}: {text}"))) }
    }
}

/// A body that is known at once.
pub(crate) fn whole(body: Vec<u8>) -> Full<Bytes> {
    Full::new(body.into())
}

/// The events of a watch.
pub(crate) enum Events {
    Client(kube::client::Body),
    Http2(hyper::body::Incoming),
    Service(orlop_apiserver::Body),
}

impl Events {
    /// Waits for the next bytes.
    pub(crate) async fn next(&mut self) -> Result<(), Failure> {
        let arrived = match self {
            Self::Client(body) => body.frame().await.is_some_and(|frame| frame.is_ok()),
            Self::Http2(body) => body.frame().await.is_some_and(|frame| frame.is_ok()),
            Self::Service(body) => body.frame().await.is_some(),
        };
        if arrived { Ok(()) } else { Err(Failure::new("a watch ended early")) }
    }
}

/// The version in an object's text.
pub(crate) fn version_of(object: &str) -> String {
    // Without parsing: this is inside what is measured.
    let after = object.split_once(r#""resourceVersion":""#).map_or("", |(_, after)| after);
    after.split('"').next().unwrap_or_default().to_owned()
}

pub(crate) fn request(method: &str, path: &str, content_type: &str, body: Vec<u8>) -> Request<Vec<u8>> {
    let mut request = Request::builder().method(method).uri(path).header("Accept", "application/json");
    if !content_type.is_empty() {
        request = request.header("Content-Type", content_type);
    }
    request.body(body).expect("the paths of the benchmark are well formed")
}
