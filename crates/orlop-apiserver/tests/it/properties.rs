//! What holds for every request and every history, tried on many.

use crate::client::{APPLY, Client, JSON_PATCH, MERGE_PATCH, Object as _, STRATEGIC_PATCH, admin};
use crate::objects::{
    CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, NODES, PODS, RBAC, config_map, deployment, named, pod,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::Future;

/// Runs a future on a runtime of its own, whose clock stands still.
fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without IO can be made").block_on(future)
}

/// As many cases as fit into a quick run; `PROPTEST_CASES` asks for a longer hunt.
fn cases(quick: u32) -> ProptestConfig {
    let default =
        ProptestConfig { failure_persistence: None, max_shrink_iters: 500, ..ProptestConfig::default() };
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { quick };
    ProptestConfig { cases, ..default }
}

/// Collections, each with an object that it accepts.
fn samples() -> Vec<(String, Value)> {
    let namespaced = |group: &str, plural: &str| format!("/apis/{group}/namespaces/default/{plural}");
    let core = |plural: &str| format!("/api/v1/namespaces/default/{plural}");
    let template =
        json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let selector = json!({"matchLabels": {"app": "x"}});
    let job = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}});
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    let with = |mut object: Value, field: &str, value: Value| {
        object[field] = value;
        object
    };
    let spec = |value: Value| with(named("x"), "spec", value);
    let mut full_pod = pod("x");
    full_pod["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]);
    full_pod["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "100m"}, "limits": {"cpu": 1, "memory": "1Gi"}});
    full_pod["spec"]["containers"][0]["livenessProbe"] = json!({"httpGet": {"path": "/", "port": "http"}});
    full_pod["spec"]["containers"][0]["ports"] = json!([{"name": "http", "containerPort": 80}]);
    full_pod["spec"]["containers"][0]["env"] =
        json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]);
    full_pod["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": selector}]}});
    vec![
        (CONFIG_MAPS.to_owned(), with(config_map("x", "1"), "binaryData", json!({"b": "AA=="}))),
        (PODS.to_owned(), full_pod),
        (DEPLOYMENTS.to_owned(), deployment("x")),
        (NAMESPACES.to_owned(), named("x")),
        (
            NODES.to_owned(),
            spec(json!({"taints": [{"key": "a", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"})),
        ),
        (core("secrets"), with(named("x"), "stringData", json!({"a": "b"}))),
        (
            core("services"),
            spec(json!({"ports": [{"port": 80, "name": "a"}], "type": "NodePort", "selector": {"app": "x"}})),
        ),
        (
            core("endpoints"),
            with(named("x"), "subsets", json!([{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 1}]}])),
        ),
        (core("events"), with(named("x"), "involvedObject", json!({"namespace": "default", "name": "x"}))),
        (core("serviceaccounts"), named("x")),
        (core("resourcequotas"), spec(json!({"hard": {"pods": "10"}}))),
        (core("limitranges"), spec(json!({"limits": [{"type": "Container", "default": {"cpu": "1"}}]}))),
        (core("replicationcontrollers"), spec(json!({"selector": {"app": "x"}, "template": template}))),
        (
            core("persistentvolumeclaims"),
            spec(json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})),
        ),
        (
            "/api/v1/persistentvolumes".to_owned(),
            spec(
                json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}),
            ),
        ),
        (
            namespaced("apps/v1", "statefulsets"),
            spec(json!({"selector": selector, "template": template, "serviceName": "x"})),
        ),
        (namespaced("apps/v1", "daemonsets"), spec(json!({"selector": selector, "template": template}))),
        (namespaced("apps/v1", "replicasets"), spec(json!({"selector": selector, "template": template}))),
        (namespaced("batch/v1", "jobs"), spec(job.clone())),
        (
            namespaced("batch/v1", "cronjobs"),
            spec(json!({"schedule": "* * * * *", "jobTemplate": {"spec": job}})),
        ),
        (
            namespaced("autoscaling/v2", "horizontalpodautoscalers"),
            spec(json!({"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "x"}})),
        ),
        (
            namespaced("autoscaling/v1", "horizontalpodautoscalers"),
            spec(json!({"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "x"}})),
        ),
        (
            namespaced("policy/v1", "poddisruptionbudgets"),
            spec(json!({"minAvailable": "50%", "selector": selector})),
        ),
        (
            namespaced("coordination.k8s.io/v1", "leases"),
            spec(json!({"holderIdentity": "me", "leaseDurationSeconds": 5})),
        ),
        (
            namespaced("networking.k8s.io/v1", "networkpolicies"),
            spec(json!({"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]})),
        ),
        (
            namespaced("networking.k8s.io/v1", "ingresses"),
            spec(
                json!({"rules": [{"host": "a.b", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "x", "port": {"number": 80}}}}]}}]}),
            ),
        ),
        (
            namespaced("discovery.k8s.io/v1", "endpointslices"),
            json!({"metadata": {"name": "x"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 80}]}),
        ),
        (format!("{RBAC}/namespaces/default/roles"), with(named("x"), "rules", rules.clone())),
        (format!("{RBAC}/clusterroles"), with(named("x"), "rules", rules)),
        (format!("{RBAC}/clusterrolebindings"), crate::objects::binding("ClusterRole", "x", "u")),
        (
            "/apis/storage.k8s.io/v1/storageclasses".to_owned(),
            with(named("x"), "provisioner", json!("a.b/c")),
        ),
        ("/apis/scheduling.k8s.io/v1/priorityclasses".to_owned(), with(named("x"), "value", json!(5))),
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
            json!({
                "metadata": {"name": "things.example.com"},
                "spec": {
                    "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                        "type": "object", "properties": {"spec": {"type": "object", "properties": {
                            "size": {"type": "integer", "minimum": 1, "default": 1},
                            "list": {"type": "array", "items": {"type": "string", "pattern": "^a"}}}}}}}}],
                },
            }),
        ),
        (
            namespaced("example.com/v1", "things"),
            json!({"kind": "Thing", "apiVersion": "example.com/v1", "metadata": {"name": "x"}, "spec": {"size": 1, "list": ["a"]}}),
        ),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations".to_owned(),
            with(
                named("x"),
                "webhooks",
                json!([{
            "name": "a.b.c", "clientConfig": {"url": "https://none.invalid"}, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [{"operations": ["CREATE"], "apiGroups": ["none"], "apiVersions": ["v1"], "resources": ["none"]}]}]),
            ),
        ),
        (
            "/apis/authorization.k8s.io/v1/subjectaccessreviews".to_owned(),
            json!({"spec": {"user": "u", "groups": ["g"], "resourceAttributes": {"verb": "get", "resource": "pods"}}}),
        ),
        (
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews".to_owned(),
            json!({"spec": {"namespace": "default"}}),
        ),
        ("/apis/authentication.k8s.io/v1/tokenreviews".to_owned(), json!({"spec": {"token": "t"}})),
        (
            format!("{PODS}/x/eviction"),
            json!({"metadata": {"name": "x"}, "deleteOptions": {"gracePeriodSeconds": 1}}),
        ),
        (
            format!("{PODS}/x/binding"),
            json!({"metadata": {"name": "x"}, "target": {"kind": "Node", "name": "n"}}),
        ),
        (core("serviceaccounts/x/token"), json!({"spec": {"expirationSeconds": 600}})),
        (format!("{DEPLOYMENTS}/x/scale"), json!({"metadata": {"name": "x"}, "spec": {"replicas": 2}})),
    ]
}

/// A request of any kind.
#[derive(Clone, Debug)]
struct Anything {
    method: &'static str,
    path: String,
    query: String,
    content_type: &'static str,
    accept: &'static str,
    body: Vec<u8>,
}

const CONTENT_TYPES: [&str; 9] = [
    "",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    APPLY,
    "text/plain",
];
const ACCEPTS: [&str; 5] = [
    "",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "text/html",
];
const QUERIES: [&str; 22] = [
    "dryRun=All",
    "dryRun=no",
    "fieldManager=m",
    "force=true",
    "fieldValidation=Strict",
    "fieldValidation=Ignore",
    "fieldValidation=What",
    "limit=1",
    "limit=-9",
    "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoieCJ9",
    "continue=x",
    "resourceVersion=0",
    "resourceVersion=5",
    "resourceVersion=x",
    "resourceVersionMatch=Exact",
    "watch=1",
    "watch=1&timeoutSeconds=9223372036854775807",
    "labelSelector=a%3Db",
    "fieldSelector=metadata.name%3Dx",
    "labelSelector=%28%28",
    "propagationPolicy=Foreground",
    "gracePeriodSeconds=-1",
];
const SEGMENTS: [&str; 16] = [
    "",
    "api",
    "apis",
    "v1",
    "apps",
    "namespaces",
    "default",
    "pods",
    "x",
    "status",
    "watch",
    "deployments",
    "%00",
    "%2F",
    "..",
    "\u{e9}",
];

fn json_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        select(vec![
            "",
            "x",
            "1Gi",
            "-1",
            "2026-01-01T00:00:00Z",
            "a/b",
            "*",
            "$patch",
            "delete",
            "AA==",
            "10.0.0.300",
            "1e999"
        ])
        .prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    let number = prop_oneof![select(vec![
        json!(0),
        json!(-1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1e300),
        json!(0.5),
        json!(2_147_483_648_i64)
    ]),];
    let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number, text];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let key = select(vec![
            "a",
            "name",
            "kind",
            "metadata",
            "spec",
            "$patch",
            "$retainKeys",
            "op",
            "path",
            "value",
            "labels",
            "",
        ]);
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key.prop_map(str::to_owned), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Every place in a value, as pointers.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                places(inner, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), out);
            }
        }
        Value::Array(items) => {
            for (n, inner) in items.iter().enumerate() {
                places(inner, &format!("{at}/{n}"), out);
            }
        }
        _ => {}
    }
}

fn mutate(mut value: Value, mutations: &[(Index, Value)]) -> Value {
    for (index, with) in mutations {
        let mut all = Vec::new();
        places(&value, "", &mut all);
        if let Some(place) = value.pointer_mut(&all[index.index(all.len())]) {
            *place = with.clone();
        }
    }
    value
}

fn json_patch() -> impl Strategy<Value = Value> {
    let path = select(vec![
        "",
        "/",
        "/data",
        "/metadata",
        "/metadata/name",
        "/metadata/labels/a",
        "/spec",
        "/spec/containers/0",
        "/spec/containers/-",
        "/-1",
        "/metadata/~2",
    ]);
    let op = select(vec!["add", "remove", "replace", "move", "copy", "test", "what"]);
    vec((op, path.clone(), path, json_value()), 0..4).prop_map(|ops| {
        let op = |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value});
        ops.into_iter().map(op).collect()
    })
}

fn body(sample: Value) -> impl Strategy<Value = Vec<u8>> {
    let typed = catalog_bytes(&sample);
    prop_oneof![
        2 => Just(sample.to_string().into_bytes()),
        8 => vec((any::<Index>(), json_value()), 1..4).prop_map(move |m| mutate(sample.clone(), &m).to_string().into_bytes()),
        2 => json_patch().prop_map(|patch| patch.to_string().into_bytes()),
        1 => json_value().prop_map(|value| value.to_string().into_bytes()),
        1 => vec(any::<u8>(), 0..40),
        1 => (vec((any::<Index>(), any::<u8>()), 0..4)).prop_map(move |changes| {
            let mut bytes = typed.clone();
            for (index, byte) in changes {
                let at = index.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        }),
        1 => select(vec!["[".repeat(20_000), "{\"a\":".repeat(20_000), "- ".repeat(5_000)]).prop_map(String::into_bytes),
    ]
}

/// A ConfigMap as protobuf, whatever the sample is.
fn catalog_bytes(sample: &Value) -> Vec<u8> {
    let id = orlop_kinds::catalog::catalog().type_of("", "v1", "ConfigMap").expect("a ConfigMap has a type");
    let object =
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": sample["metadata"], "data": {"a": "b"}});
    orlop_kinds::protobuf::encode(id, &object)
}

fn anything() -> impl Strategy<Value = Anything> {
    let sample = (0..samples().len()).prop_map(|n| samples().swap_remove(n));
    let method = select(vec![
        "GET", "POST", "POST", "POST", "PUT", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS",
    ]);
    sample.prop_flat_map(move |(path, sample)| {
        let own = path.clone();
        let junk = vec(select(SEGMENTS.to_vec()), 0..7).prop_map(|parts| format!("/{}", parts.join("/")));
        let tail = select(vec!["", "/x", "/x", "/x", "/x/status", "/x/scale", "/things.example.com"]);
        let paths =
            prop_oneof![6 => tail.prop_map(move |tail| format!("{path}{tail}")), 3 => Just(own), 1 => junk];
        let query = vec(select(QUERIES.to_vec()), 0..3).prop_map(|parts| parts.join("&"));
        let content_type = prop_oneof![Just(""), select(CONTENT_TYPES.to_vec())];
        let accept = prop_oneof![4 => Just(""), 1 => select(ACCEPTS.to_vec())];
        (method.clone(), paths, query, content_type, accept, body(sample)).prop_map(
            |(method, path, query, content_type, accept, body)| {
                let path = if path.is_ascii() { path } else { path.replace('\u{e9}', "%C3%A9") };
                Anything { method, path, query, content_type, accept, body }
            },
        )
    })
}

impl Anything {
    async fn send(&self, client: &Client) -> crate::client::Reply {
        let mut client = client.clone();
        for (name, value) in [("content-type", self.content_type), ("accept", self.accept)] {
            if !value.is_empty() {
                client = client.with(name, value);
            }
        }
        client.send(self.method, &format!("{}?{}", self.path, self.query), self.body.clone()).await
    }

    /// Whether an error may come after some of the work is done: a collection is deleted one by one, and an
    /// eviction takes from the budget first.
    fn is_many_writes(&self) -> bool {
        self.method == "DELETE" || self.path.ends_with("/eviction")
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn no_request_panics_and_none_that_fails_leaves_a_trace(requests in vec(anything(), 1..25)) {
        run(async {
            let client = admin();
            let mut before = client.revision().await;
            for request in requests {
                let reply = request.send(&client).await;
                let after = client.revision().await;
                let is_dry = request.query.contains("dryRun=All") && request.method != "DELETE";
                if (reply.status >= 400 && !request.is_many_writes()) || is_dry {
                    prop_assert_eq!(before, after, "{:?}: {}", request, reply.text());
                }
                if reply.status >= 400 && request.method != "HEAD" {
                    let is_plain = reply.header("content-type").starts_with("text/plain");
                    let is_yaml = reply.header("content-type") == "application/yaml";
                    let code = if is_yaml || is_plain { reply.status.into() } else { reply.json()["code"].clone() };
                    prop_assert_eq!(code, json!(reply.status), "{:?}: {}", request, reply.text());
                }
                before = after;
            }
            Ok(())
        })?;
    }
}

/// A write to one of a few ConfigMaps.
#[derive(Clone, Debug)]
enum Write {
    Create(usize, u8),
    Update(usize, u8),
    Patch(usize, u8),
    Delete(usize),
}

fn write() -> impl Strategy<Value = Write> {
    let (object, value) = (0..6_usize, 0..4_u8);
    prop_oneof![
        (object.clone(), value.clone()).prop_map(|(o, v)| Write::Create(o, v)),
        (object.clone(), value.clone()).prop_map(|(o, v)| Write::Update(o, v)),
        (object.clone(), value).prop_map(|(o, v)| Write::Patch(o, v)),
        object.prop_map(Write::Delete),
    ]
}

type Model = BTreeMap<String, String>;

async fn apply_write(client: &Client, model: &mut Model, write: &Write) {
    let (Write::Create(object, _)
    | Write::Update(object, _)
    | Write::Patch(object, _)
    | Write::Delete(object)) = *write;
    let (namespace, name) = (["default", "kube-public"][object % 2], format!("x{}", object / 2));
    let collection = format!("/api/v1/namespaces/{namespace}/configmaps");
    let (path, key) = (format!("{collection}/{name}"), format!("{namespace}/{name}"));
    let exists = model.contains_key(&key);
    let (reply, expected, next) = match write {
        Write::Create(_, value) => {
            let body = config_map(&name, &value.to_string());
            (
                client.post(&collection, &body).await,
                if exists { 409 } else { 201 },
                (!exists).then_some(Some(value)),
            )
        }
        Write::Update(_, value) => {
            let body = config_map(&name, &value.to_string());
            (client.put(&path, &body).await, if exists { 200 } else { 404 }, exists.then_some(Some(value)))
        }
        Write::Patch(_, value) => {
            let body = json!({"data": {"key": value.to_string()}});
            let reply = client.patch(MERGE_PATCH, &path, &body).await;
            (reply, if exists { 200 } else { 404 }, exists.then_some(Some(value)))
        }
        Write::Delete(_) => {
            (client.delete(&path).await, if exists { 200 } else { 404 }, exists.then_some(None))
        }
    };
    assert_eq!(reply.status, expected, "{write:?}: {}", reply.text());
    match next {
        Some(Some(value)) => model.insert(key, value.to_string()),
        Some(None) => model.remove(&key),
        None => None,
    };
}

fn entry(object: &Value) -> (String, String) {
    let key = format!("{}/{}", object["metadata"]["namespace"].as_str().unwrap_or_default(), object.name());
    (key, object["data"]["key"].as_str().unwrap_or_default().to_owned())
}

fn state(list: &Value) -> Model {
    list["items"].as_array().expect("items").iter().map(entry).collect()
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn lists_equal_the_model_now_and_then_and_a_watch_replays_it(writes in vec(write(), 1..40)) {
        run(async {
            let client = admin();
            let mut watch = client.watch("/api/v1/configmaps?watch=1").await;
            let (mut model, mut history) = (Model::new(), Vec::new());
            for write in &writes {
                apply_write(&client, &mut model, write).await;
                let list = client.get("/api/v1/configmaps").await.ok(200);
                prop_assert_eq!(&state(&list), &model);
                history.push((list.version().to_owned(), model.clone()));
            }
            for (version, then) in &history {
                let path = format!("/api/v1/configmaps?resourceVersion={version}&resourceVersionMatch=Exact");
                prop_assert_eq!(&state(&client.get(&path).await.ok(200)), then);
            }
            let (mut replayed, mut last) = (Model::new(), 0);
            for event in watch.ready().await {
                let version: u64 = event["object"].version().parse().expect("a version");
                prop_assert!(version > last, "versions grow: {}", event);
                last = version;
                let (key, value) = entry(&event["object"]);
                let before = match event["type"].as_str() {
                    Some("DELETED") => replayed.remove(&key).is_some(),
                    Some("MODIFIED") => replayed.insert(key, value).is_some(),
                    _ => replayed.insert(key, value).is_none(),
                };
                prop_assert!(before, "{}", event);
            }
            prop_assert_eq!(replayed, model);
            Ok(())
        })?;
    }
}

/// What a manager wants: keys of its own with values.
fn wishes(keys: [&'static str; 3]) -> impl Strategy<Value = Vec<BTreeMap<&'static str, String>>> {
    vec(proptest::collection::btree_map(select(keys.to_vec()), "[a-c]", 1..4), 1..4)
}

async fn apply_all(client: &Client, order: &[(&str, &BTreeMap<&'static str, String>)]) -> Value {
    for (manager, data) in order {
        let body = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "x", "labels": {*manager: data.len().to_string()}}, "data": data,
        });
        let reply = client.patch(APPLY, &format!("{CONFIG_MAPS}/x?fieldManager={manager}"), &body).await;
        assert!(matches!(reply.status, 200 | 201), "{}", reply.text());
    }
    let mut object = client.get(&format!("{CONFIG_MAPS}/x")).await.ok(200);
    object["metadata"]["resourceVersion"].take();
    object["metadata"]["uid"].take();
    object
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn applies_of_disjoint_fields_commute(
        ours in wishes(["a", "b", "c"]),
        theirs in wishes(["d", "e", "f"]),
        order in vec(any::<bool>(), 8),
    ) {
        run(async {
            let (ours, theirs): (Vec<_>, Vec<_>) =
                (ours.iter().map(|data| ("ours", data)).collect(), theirs.iter().map(|data| ("theirs", data)).collect());
            let (mut mixed, mut left, mut right) = (Vec::new(), ours.iter(), theirs.iter());
            for first in order {
                mixed.extend(if first { left.next() } else { right.next() });
            }
            mixed.extend(left.chain(right));
            let one_after_the_other: Vec<_> = ours.iter().chain(&theirs).copied().collect();
            let mixed: Vec<_> = mixed.into_iter().copied().collect();
            let a = apply_all(&admin(), &one_after_the_other).await;
            let b = apply_all(&admin(), &mixed).await;
            prop_assert_eq!(&a, &b);
            let wanted: BTreeMap<_, _> = ours.iter().last().into_iter().chain(theirs.iter().last())
                .flat_map(|(_, data)| data.iter()).collect();
            prop_assert_eq!(&a["data"], &json!(wanted));
            Ok(())
        })?;
    }
}
