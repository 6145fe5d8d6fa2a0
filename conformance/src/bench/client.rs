//! Requests as bytes, so that what is measured is the server and not the client's types.

use http::Request;
use kube::Client;
use kube::client::Body;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The JSON of a ConfigMap with `bytes` of data.
pub(crate) fn config_map(name: &str, bytes: usize) -> Vec<u8> {
    let data = "x".repeat(bytes);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"key":"{data}"}}}}"#
    )
    .into_bytes()
}

/// Creates a ConfigMap and gives the answer's text.
pub(crate) async fn create(client: &Client, body: Vec<u8>) -> Result<String, kube::Error> {
    client.request_text(request("POST", MAPS, "application/json", body)).await
}

/// Reads a ConfigMap.
pub(crate) async fn get(client: &Client, name: &str) -> Result<String, kube::Error> {
    client.request_text(request("GET", &format!("{MAPS}/{name}"), "", Vec::new())).await
}

/// Deletes a ConfigMap.
pub(crate) async fn delete(client: &Client, name: &str) -> Result<String, kube::Error> {
    client.request_text(request("DELETE", &format!("{MAPS}/{name}"), "", Vec::new())).await
}

/// Applies a ConfigMap server-side.
pub(crate) async fn apply(client: &Client, name: &str, body: Vec<u8>) -> Result<String, kube::Error> {
    let path = format!("{MAPS}/{name}?fieldManager=bench&force=true");
    client.request_text(request("PATCH", &path, "application/apply-patch+yaml", body)).await
}

/// Opens a watch on ConfigMaps from `version` on; its body gives the events.
pub(crate) async fn watch(client: &Client, version: &str) -> Result<Body, kube::Error> {
    let path = format!("{MAPS}?watch=true&resourceVersion={version}");
    let response = client.send(request("GET", &path, "", Vec::new()).map(Body::from)).await?;
    Ok(response.into_body())
}

/// The version of the whole store, by a list that is empty.
pub(crate) async fn version(client: &Client) -> Result<String, kube::Error> {
    let path = format!("{MAPS}?limit=1&labelSelector=no%3Dbody");
    let list: serde_json::Value = client.request(request("GET", &path, "", Vec::new())).await?;
    Ok(list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
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
