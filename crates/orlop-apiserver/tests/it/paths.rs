//! Paths: what is served where, and what is said of the rest.

use crate::client::admin;
use crate::objects::{CONFIG_MAPS, named};

#[tokio::test(start_paused = true)]
async fn paths_that_nothing_serves_are_plain_text() {
    let client = admin();
    for path in
        ["/nothing", "/apis/none", "/apis/none/v1", "/apis/none/v1/pods", "/healthz/none", "/openapi/v4"]
    {
        let reply = client.get(path).await;
        assert_eq!((reply.status, reply.text().as_str()), (404, "404 page not found\n"), "{path}");
        assert!(reply.header("content-type").starts_with("text/plain"), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn resources_that_a_group_does_not_have_are_a_status() {
    let client = admin();
    let message = "the server could not find the requested resource".to_owned();
    for (method, path) in [
        ("GET", "/api/v2"),
        ("GET", "/api/v2/pods"),
        ("GET", "/apis/apps/v9"),
        ("GET", "/apis/apps/v9/deployments"),
        ("GET", "/api/v1/nothings"),
        ("GET", "/api/v1/namespaces/default/nothings/x"),
        ("POST", "/apis/apps/v1/namespaces/default/pods"),
        ("GET", "/api/v1/configmaps/x"),
        ("PUT", "/api/v1/configmaps/x"),
        ("DELETE", "/api/v1/configmaps/x"),
        ("GET", "/api/v1/namespaces/default/nodes"),
    ] {
        let refusal = client.send(method, path, "").await.refusal();
        assert_eq!(refusal, (404, "NotFound".to_owned(), message.clone()), "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn methods_that_a_resource_does_not_have_are_refused() {
    let client = admin();
    client.create(CONFIG_MAPS, &named("x")).await;
    let message = "the server does not allow this method on the requested resource".to_owned();
    let object = format!("{CONFIG_MAPS}/x");
    for (method, path) in [
        ("PUT", CONFIG_MAPS),
        ("PATCH", CONFIG_MAPS),
        ("POST", object.as_str()),
        ("OPTIONS", CONFIG_MAPS),
        ("TRACE", CONFIG_MAPS),
        ("PUT", "/api/v1"),
        ("DELETE", "/api/v1/namespaces"),
        ("DELETE", "/api/v1/nodes/x/status"),
        ("POST", "/version"),
        ("POST", "/api/v1/configmaps"),
        ("GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
    ] {
        let refusal = client.send(method, path, "{}").await.refusal();
        assert_eq!(refusal, (405, "MethodNotAllowed".to_owned(), message.clone()), "{method} {path}");
    }
    let head = client.send("HEAD", &object, "").await;
    assert_eq!((head.status, head.body.len()), (405, 0));
}

#[tokio::test(start_paused = true)]
async fn odd_paths_are_answered() {
    let client = admin();
    for (path, status) in [
        ("/", 200),
        ("//", 200),
        ("/api/v1/namespaces/default/configmaps/", 200),
        ("/api/v1/namespaces/%64efault", 200),
        ("/api/v1/namespaces/%00", 404),
        ("/api/v1/namespaces/..%2f..%2fsecrets", 404),
        ("/api/v1/namespaces/default/configmaps/%E2%98%83", 404),
        ("/api/v1/namespaces/default/configmaps/%FF", 404),
    ] {
        let reply = client.get(path).await;
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn health_and_version_answer() {
    let client = admin();
    for path in ["/healthz", "/livez", "/readyz", "/healthz/ping"] {
        let reply = client.get(path).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "ok"), "{path}");
    }
    let version = client.get("/version").await.ok(200);
    assert_eq!((version["major"].as_str(), version["minor"].as_str()), (Some("1"), Some("36")));
}
