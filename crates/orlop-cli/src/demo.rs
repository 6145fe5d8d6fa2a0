//! `orlop demo`: a short tour that ends by itself. It starts a server, defines a kind, creates an object,
//! watches a change, and says how long each step took.

use crate::shell::{Failure, Shell};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use orlop_apiserver::{ApiServer, ApiService, Body, User};
use orlop_clock::Clock;
use serde_json::{Value, json};
use tower_service::Service as _;

const GROUP: &str = "demo.orlop.dev";
const SHELLS: &str = "/apis/demo.orlop.dev/v1/namespaces/default/shells";

pub(crate) fn run(shell: &Shell) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("cannot start the async runtime").because(error))?;
    runtime.block_on(tour(shell))
}

async fn tour(shell: &Shell) -> Result<(), Failure> {
    let clock = Clock::system();
    let began = clock.now();
    let mut step = began;
    let mut done = |what: &str| {
        let now = clock.now();
        let micros = now.duration_since(step).as_micros();
        shell.data(format_args!("{micros:>8} µs  {what}"));
        step = now;
    };

    let server = ApiServer::builder().build();
    let mut client = server.service_as(User::admin());
    expect(&mut client, Method::GET, "/api/v1/namespaces", None, 200).await?;
    done("started a Kubernetes API server in this process and listed its namespaces");

    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    expect(&mut client, Method::POST, definitions, Some(definition()), 201).await?;
    done("defined a kind: `Shell` in `demo.orlop.dev/v1`");

    let answer = send(&mut client, Method::GET, &format!("{SHELLS}?watch=true"), None).await?;
    let mut watch = answer.into_body();
    let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Shell", "metadata": {"name": "first"}, "spec": {"size": 3}});
    expect(&mut client, Method::POST, SHELLS, Some(object), 201).await?;
    let event = next_event(&mut watch).await?;
    done(&format!(
        "created `shells/first`; the watch says {} with size {}",
        event_type(&event),
        event["object"]["spec"]["size"]
    ));

    let path = format!("{SHELLS}/first");
    let changed = json!({"spec": {"size": 5}});
    expect(&mut client, Method::PATCH, &path, Some(changed), 200).await?;
    let event = next_event(&mut watch).await?;
    done(&format!(
        "scaled it; the watch says {} with size {}",
        event_type(&event),
        event["object"]["spec"]["size"]
    ));

    let invalid = json!({"spec": {"size": -1}});
    let refused = expect(&mut client, Method::PATCH, &path, Some(invalid), 422).await?;
    done(&format!("tried a size of -1: {}", refused["message"].as_str().unwrap_or_default()));

    expect(&mut client, Method::DELETE, &path, None, 200).await?;
    let event = next_event(&mut watch).await?;
    done(&format!("deleted it; the watch says {}", event_type(&event)));

    let total = clock.now().duration_since(began).as_millis();
    shell.say(format_args!("demo finished in {total} ms"));
    shell.say("next: `orlop cluster up`, then use kubectl with the kubeconfig it names");
    Ok(())
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("shells.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"plural": "shells", "singular": "shell", "kind": "Shell"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 0}}}},
            }}}],
        },
    })
}

async fn send(
    client: &mut ApiService,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Result<http::Response<Body>, Failure> {
    let content_type =
        if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = Full::new(Bytes::from(body.map(|body| body.to_string()).unwrap_or_default()));
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .header("user-agent", "orlop-demo")
        .body(body)
        .map_err(|error| Failure::new("cannot make a request").because(error))?;
    let Ok(response) = client.call(request).await;
    Ok(response)
}

async fn expect(
    client: &mut ApiService,
    method: Method,
    path: &str,
    body: Option<Value>,
    status: u16,
) -> Result<Value, Failure> {
    let response = send(client, method.clone(), path, body).await?;
    let found = response.status().as_u16();
    let Ok(bytes) = response.into_body().collect().await.map(http_body_util::Collected::to_bytes);
    let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if found == status {
        return Ok(answer);
    }
    let message = answer["message"].as_str().unwrap_or_default();
    Err(Failure::new(format!("{method} {path} was answered {found}, not {status}: {message}")))
}

fn event_type(event: &Value) -> &str {
    event["type"].as_str().unwrap_or_default()
}

async fn next_event(watch: &mut Body) -> Result<Value, Failure> {
    let frame = watch.frame().await.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
    let event = frame.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    event.ok_or_else(|| Failure::new("the watch ended"))
}
