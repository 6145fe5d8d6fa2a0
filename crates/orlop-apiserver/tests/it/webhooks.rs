//! Admission webhooks: who is asked, in what order, what they see, and what becomes of their answers.

use crate::client::{Client, MERGE_PATCH, Object as _, builder};
use crate::objects::{CONFIG_MAPS, named};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use orlop_apiserver::ApiServer;
use rcgen::{CertificateParams, KeyPair};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// What webhooks were asked, in order: the name of the service and the request.
type Log = Arc<Mutex<Vec<(String, Value)>>>;

/// Lets a service answer with what `answer` makes of a request, but for the uid.
fn answer(
    server: &ApiServer,
    log: &Log,
    name: &'static str,
    response: impl Fn(&Value) -> Value + Send + Sync + 'static,
) {
    let log = log.clone();
    let service = format!("hooks/{name}").parse().expect("a service name");
    server.register_service(service, move |request: Request<Bytes>| {
        let review: Value = serde_json::from_slice(request.body()).expect("reviews are JSON");
        log.lock().expect("nobody panics").push((name.to_owned(), review["request"].clone()));
        let mut response = response(&review["request"]);
        response["uid"] = review["request"]["uid"].clone();
        let body =
            json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response});
        async move { Response::new(Bytes::from(body.to_string())) }
    });
}

fn patch(operations: &Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(operations.to_string())})
}

/// A webhook at a service that is about one resource.
fn hook(service: &str, group: &str, resource: &str) -> Value {
    json!({
        "name": format!("{service}.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "hooks", "name": service, "path": "/ask"}},
        "rules": [{"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": ["*"]}],
    })
}

fn with(mut hook: Value, field: &str, value: Value) -> Value {
    hook[field] = value;
    hook
}

async fn configure(client: &Client, path: &str, name: &str, hooks: &[Value]) {
    let kind =
        if path == MUTATING { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" };
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "webhooks": hooks,
    });
    client.create(path, &configuration).await;
}

fn asked(log: &Log) -> Vec<String> {
    let mut log = log.lock().expect("nobody panics");
    log.drain(..)
        .map(|(name, request)| format!("{name} {}", request["operation"].as_str().unwrap_or_default()))
        .collect()
}

fn start() -> (ApiServer, Client, Log) {
    let server = builder().0.build();
    (server.clone(), Client::admin(&server), Log::default())
}

#[tokio::test(start_paused = true)]
async fn mutating_webhooks_run_by_the_name_of_their_configuration_and_see_each_other() {
    let (server, client, log) = start();
    for (name, value) in [("one", "1"), ("two", "2")] {
        answer(&server, &log, name, move |request| {
            let seen = request["object"]["data"]["seen"].as_str().unwrap_or_default();
            patch(&json!([{"op": "add", "path": "/data", "value": {"seen": format!("{seen}{value}")}}]))
        });
    }
    answer(&server, &log, "last", |_| json!({"allowed": true, "warnings": ["seen"]}));
    configure(&client, MUTATING, "b", &[hook("two", "", "configmaps")]).await;
    configure(&client, MUTATING, "a", &[hook("one", "", "configmaps")]).await;
    configure(&client, VALIDATING, "a", &[hook("last", "", "configmaps")]).await;
    let reply = client.post(CONFIG_MAPS, &named("x")).await;
    assert_eq!(reply.ok(201)["data"], json!({"seen": "12"}));
    assert_eq!(reply.warnings(), ["299 - \"seen\""]);
    assert_eq!(asked(&log), ["one CREATE", "two CREATE", "last CREATE"]);
    client.delete(&format!("{CONFIG_MAPS}/x")).await.refusal();
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_wants_it_is_asked_again_after_others_changed_the_object() {
    for (policy, expected) in [
        ("Never", vec!["first CREATE", "second CREATE"]),
        ("IfNeeded", vec!["first CREATE", "second CREATE", "first CREATE"]),
    ] {
        let (server, client, log) = start();
        answer(&server, &log, "first", |_| json!({"allowed": true}));
        answer(&server, &log, "second", |_| {
            patch(&json!([{"op": "add", "path": "/data", "value": {"a": "1"}}]))
        });
        let first = with(hook("first", "", "configmaps"), "reinvocationPolicy", policy.into());
        configure(&client, MUTATING, "a", &[first, hook("second", "", "configmaps")]).await;
        client.create(CONFIG_MAPS, &named("x")).await;
        assert_eq!(asked(&log), expected, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_failure_policy_decides_when_a_webhook_cannot_be_asked() {
    let (server, client, log) = start();
    answer(&server, &log, "deny", |_| json!({"allowed": false, "status": {"message": "no", "code": 403}}));
    answer(
        &server,
        &log,
        "absent",
        |_| json!({"allowed": true, "patch": STANDARD.encode("[]"), "patchType": "JSONPatch"}),
    );
    let slow = "hooks/slow".parse().expect("a service name");
    server.register_service(slow, |_| async {
        tokio::time::sleep(Duration::from_mins(1)).await;
        Response::new(Bytes::new())
    });
    let broken = "hooks/broken".parse().expect("a service name");
    server.register_service(broken, |_| async {
        let mut response = Response::new(Bytes::from_static(b"boom"));
        *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        response
    });
    for (service, open, code, message) in [
        ("deny", false, 403, "admission webhook \"deny.example.com\" denied the request: no"),
        (
            "missing",
            true,
            500,
            "Internal error occurred: failed calling webhook \"missing.example.com\": failed to call webhook: Post \
             \"https://missing.hooks.svc:443/ask?timeout=10s\": service \"missing\" not found",
        ),
        (
            "slow",
            true,
            500,
            "Internal error occurred: failed calling webhook \"slow.example.com\": failed to call webhook: Post \
             \"https://slow.hooks.svc:443/ask?timeout=10s\": context deadline exceeded",
        ),
        (
            "broken",
            true,
            500,
            "Internal error occurred: failed calling webhook \"broken.example.com\": failed to call webhook: an error on \
             the server (\"boom\") has prevented the request from succeeding",
        ),
        (
            "absent",
            true,
            500,
            "Internal error occurred: failed calling webhook \"absent.example.com\": received invalid webhook response: \
             validating webhook may not return response.patch",
        ),
    ] {
        for policy in ["Fail", "Ignore"] {
            let hook = with(hook(service, "", "configmaps"), "failurePolicy", policy.into());
            configure(&client, VALIDATING, "x", &[hook]).await;
            let reply = client.post(CONFIG_MAPS, &named("x")).await;
            client.delete(&format!("{VALIDATING}/x")).await.ok(200);
            if policy == "Ignore" && open {
                reply.ok(201);
                client.delete(&format!("{CONFIG_MAPS}/x")).await.ok(200);
            } else {
                let (status, _, text) = reply.refusal();
                assert_eq!((status, text.as_str()), (code, message), "{service} {policy}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_may_call_the_server_that_asks_it() {
    let (server, client, _) = start();
    let inner = client.clone();
    let service = "hooks/nosy".parse().expect("a service name");
    server.register_service(service, move |request: Request<Bytes>| {
        let inner = inner.clone();
        async move {
            let review: Value = serde_json::from_slice(request.body()).expect("reviews are JSON");
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "made"}});
            inner.create("/api/v1/namespaces/default/secrets", &secret).await;
            let response = json!({"uid": review["request"]["uid"], "allowed": true});
            let body =
                json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
            Response::new(Bytes::from(body.to_string()))
        }
    });
    configure(&client, VALIDATING, "x", &[hook("nosy", "", "configmaps")]).await;
    client.create(CONFIG_MAPS, &named("x")).await;
    assert_eq!(client.names("/api/v1/namespaces/default/secrets").await, ["made"]);
}

#[tokio::test(start_paused = true)]
async fn every_way_to_write_shows_the_object_of_its_own() {
    let (server, client, log) = start();
    answer(&server, &log, "all", |_| json!({"allowed": true}));
    configure(&client, VALIDATING, "x", &[hook("all", "*", "*/*")]).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    client.create(PODS, &pod).await;
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n"}});
    client.post(&format!("{PODS}/p/binding"), &binding).await.ok(201);
    client.post(&format!("{PODS}/p/exec?command=ls&command=-l&container=c"), &json!({})).await;
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    client.post(&format!("{PODS}/p/eviction"), &eviction).await.ok(201);
    let labels = json!({"matchLabels": {"a": "b"}});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": labels, "template": template}});
    client.create(DEPLOYMENTS, &deployment).await;
    let scale = json!({"spec": {"replicas": 3}});
    client.patch(MERGE_PATCH, &format!("{DEPLOYMENTS}/d/scale"), &scale).await.ok(200);
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await.ok(201);
    client.delete(DEPLOYMENTS).await.ok(200);
    let seen: Vec<String> = log
        .lock()
        .expect("nobody panics")
        .iter()
        .map(|(_, request)| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let part = text(&request["subResource"]);
            let kind = text(&request["kind"]["kind"]);
            let object = if request["object"].is_null() { &request["oldObject"] } else { &request["object"] };
            assert_eq!(object["kind"], kind.as_str());
            format!(
                "{} {}/{part} {kind} {}",
                text(&request["operation"]),
                text(&request["resource"]["resource"]),
                text(&request["name"])
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            "CREATE pods/ Pod p",
            "CREATE pods/binding Binding p",
            "CONNECT pods/exec PodExecOptions p",
            "CREATE pods/eviction Eviction p",
            "CREATE deployments/ Deployment d",
            "UPDATE deployments/scale Scale d",
            "CREATE selfsubjectreviews/ SelfSubjectReview ",
            "DELETE deployments/ Deployment ",
        ]
    );
    let log = log.lock().expect("nobody panics");
    assert_eq!(log[2].1["object"]["command"], json!(["ls", "-l"]));
    assert_eq!(log[5].1["object"]["spec"], json!({"replicas": 3}));
    assert_eq!(log[5].1["oldObject"]["spec"], json!({"replicas": 1}));
}

#[tokio::test(start_paused = true)]
async fn a_mutating_webhook_can_change_a_scale() {
    let (server, client, log) = start();
    answer(&server, &log, "cap", |_| {
        patch(&json!([{"op": "replace", "path": "/spec/replicas", "value": 2}]))
    });
    configure(&client, MUTATING, "x", &[hook("cap", "apps", "deployments/scale")]).await;
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    client.create(DEPLOYMENTS, &deployment).await;
    let scale = json!({"spec": {"replicas": 3}});
    let scaled = client.patch(MERGE_PATCH, &format!("{DEPLOYMENTS}/d/scale"), &scale).await.ok(200);
    assert_eq!(scaled["spec"]["replicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_asks_only_webhooks_without_side_effects() {
    let (server, client, log) = start();
    answer(&server, &log, "v", |_| json!({"allowed": true}));
    for effects in ["None", "NoneOnDryRun"] {
        let hook = with(hook("v", "", "configmaps"), "sideEffects", effects.into());
        configure(&client, VALIDATING, "x", &[hook]).await;
        client.post(&format!("{CONFIG_MAPS}?dryRun=All"), &named("x")).await.ok(201);
        assert_eq!(log.lock().expect("nobody panics").pop().expect("it was asked").1["dryRun"], true);
        client.delete(&format!("{VALIDATING}/x")).await.ok(200);
    }
    let refused = with(hook("v", "", "configmaps"), "sideEffects", "Some".into());
    let configuration = json!({"metadata": {"name": "x"}, "webhooks": [refused]});
    assert_eq!(
        client.post(VALIDATING, &configuration).await.status,
        422,
        "no configuration may say otherwise"
    );
}

#[tokio::test(start_paused = true)]
async fn match_conditions_keep_webhooks_from_being_asked() {
    let (server, client, log) = start();
    answer(&server, &log, "v", |_| json!({"allowed": false}));
    let conditions = json!([{"name": "named", "expression": "object.metadata.name == 'x'"}]);
    let hook = with(hook("v", "", "configmaps"), "matchConditions", conditions);
    configure(&client, VALIDATING, "x", &[hook]).await;
    client.create(CONFIG_MAPS, &named("y")).await;
    let (code, _, message) = client.post(CONFIG_MAPS, &named("x")).await.refusal();
    let expected = "admission webhook \"v.example.com\" denied the request without explanation";
    assert_eq!((code, message.as_str()), (400, expected));
    assert_eq!(asked(&log), ["v CREATE"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_webhook_makes_of_an_object_is_read_like_a_request() {
    for (operations, code, outcome) in [
        (json!([{"op": "add", "path": "/bogus", "value": 1}]), 201, ""),
        (
            json!([{"op": "add", "path": "/data", "value": {"a": 1}}]),
            500,
            "Internal error occurred: json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            json!([{"op": "remove", "path": "/nowhere"}]),
            500,
            "Internal error occurred: error in remove for path: '/nowhere': Unable to remove nonexistent key: nowhere: missing value",
        ),
        (
            json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "!"}}]),
            422,
            "ConfigMap \"x\" is invalid: metadata.labels: Invalid value: \"!\"",
        ),
    ] {
        let (server, client, log) = start();
        let shown = operations.to_string();
        answer(&server, &log, "m", move |_| patch(&operations));
        configure(&client, MUTATING, "x", &[hook("m", "", "configmaps")]).await;
        let reply = client.post(CONFIG_MAPS, &named("x")).await;
        assert_eq!(reply.status, code, "{shown}: {}", reply.text());
        if code == 201 {
            assert_eq!(reply.json().get("bogus"), None);
        } else {
            let message = reply.refusal().2;
            assert!(message.starts_with(outcome), "{message}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_webhook_spoils_in_the_metadata_is_mended_with_a_warning() {
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"});
    for (operation, warning) in [
        (
            json!({"op": "add", "path": "/metadata/managedFields/0/operation", "value": "Guess"}),
            "299 - \".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated \
             mutating admission controller; please fix your requests: operation must be `Apply` or `Update`\"",
        ),
        (
            json!({"op": "add", "path": "/metadata/ownerReferences", "value": [owner, owner]}),
            "299 - \".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server \
             dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; \
             duplicate UID(s) observed: u\"",
        ),
    ] {
        let (server, client, log) = start();
        answer(&server, &log, "m", move |_| patch(&json!([operation])));
        configure(&client, MUTATING, "x", &[hook("m", "", "configmaps")]).await;
        let mut object = named("x");
        object["data"] = json!({"a": "1"});
        let reply = client.post(CONFIG_MAPS, &object).await;
        let made = reply.ok(201);
        assert_eq!(reply.warnings(), [warning]);
        assert_eq!(made["metadata"]["managedFields"][0]["operation"], "Update");
        assert!(
            made["metadata"]["ownerReferences"].as_array().is_none_or(|references| references.len() == 1)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn custom_objects_are_pruned_and_defaulted_after_a_webhook() {
    let (server, client, log) = start();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": "object", "properties": {"c": {"type": "string", "default": "d"}}}}}}});
    let version = |name: &str| json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [version("v1"), version("v2")]}});
    client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    answer(&server, &log, "m", |_| {
        patch(&json!([{"op": "add", "path": "/spec", "value": {"a": "1", "b": {}, "bogus": true}}]))
    });
    let mut only_v1 = hook("m", "example.com", "widgets");
    only_v1["rules"][0]["apiVersions"] = json!(["v1"]);
    configure(&client, MUTATING, "x", &[only_v1]).await;
    for version in ["v1", "v2"] {
        let widget = json!({"apiVersion": format!("example.com/{version}"), "kind": "Widget", "metadata": {"name": version}});
        let made =
            client.create(&format!("/apis/example.com/{version}/namespaces/default/widgets"), &widget).await;
        assert_eq!(made["apiVersion"], widget["apiVersion"]);
        assert_eq!(made["spec"], json!({"a": "1", "b": {"c": "d"}}), "{version}");
    }
    let log = log.lock().expect("nobody panics");
    let shown: Vec<(&Value, &Value)> = log
        .iter()
        .map(|(_, request)| (&request["kind"]["version"], &request["requestKind"]["version"]))
        .collect();
    assert_eq!(shown, [(&json!("v1"), &json!("v1")), (&json!("v1"), &json!("v2"))]);
}

/// A webhook on a loopback port with a certificate for `name`; it counts its connections.
async fn listen(name: &str, tasks: &mut JoinSet<()>) -> (SocketAddr, String, Arc<Mutex<usize>>) {
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let certificate = certificate.self_signed(&key).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key: PrivateKeyDer<'static> = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("protocols")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a configuration");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let connections = Arc::new(Mutex::new(0));
    let count = connections.clone();
    tasks.spawn(async move {
        let mut open = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            *count.lock().expect("nobody panics") += 1;
            let service = hyper::service::service_fn(|request: Request<hyper::body::Incoming>| async {
                let body = request.into_body().collect().await.expect("a body").to_bytes();
                let review: Value = serde_json::from_slice(&body).expect("reviews are JSON");
                let response = json!({"uid": review["request"]["uid"], "allowed": true});
                let answer = json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response});
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(answer.to_string()))))
            });
            open.spawn(async move {
                let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (address, certificate.pem(), connections)
}

#[tokio::test]
async fn over_tls_the_certificate_must_be_good_for_the_service() {
    let mut tasks = JoinSet::new();
    let (good, good_ca, connections) = listen("good.hooks.svc", &mut tasks).await;
    let (bad, bad_ca, _) = listen("other.example.com", &mut tasks).await;
    let places = move |_: &str, name: &str, _: u16| match name {
        "good" => Some(good),
        "bad" => Some(bad),
        _ => None,
    };
    let server = ApiServer::builder().service_resolver(places).build();
    let client = Client::admin(&server);
    let unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    let misnamed = "tls: failed to verify certificate: x509: certificate is valid for other.example.com, not bad.hooks.svc";
    for (service, ca, problem) in
        [("good", &good_ca, ""), ("good", &bad_ca, unknown), ("bad", &bad_ca, misnamed)]
    {
        let mut hook = hook(service, "", "configmaps");
        hook["clientConfig"]["caBundle"] = STANDARD.encode(ca).into();
        configure(&client, VALIDATING, "x", &[hook]).await;
        for name in ["a", "b"] {
            let reply = client.post(CONFIG_MAPS, &named(name)).await;
            if problem.is_empty() {
                client.delete(&format!("{CONFIG_MAPS}/{}", reply.ok(201).name())).await.ok(200);
            } else {
                let expected = format!(
                    "Internal error occurred: failed calling webhook \"{service}.example.com\": failed to call webhook: \
                     Post \"https://{service}.hooks.svc:443/ask?timeout=10s\": {problem}"
                );
                assert_eq!(reply.refusal().2, expected);
            }
        }
        client.delete(&format!("{VALIDATING}/x")).await.ok(200);
    }
    assert_eq!(*connections.lock().expect("nobody panics"), 1, "a connection is used again");
}
