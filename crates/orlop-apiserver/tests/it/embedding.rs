//! The server as part of another program: many of them, each the same for the same seed, their state taken out
//! and put back.

use crate::client::{Client, MERGE_PATCH, Object as _, START, advance, builder};
use crate::objects::{
    ACCOUNTS, CONFIG_MAPS, DEFINITIONS, DEPLOYMENTS, NAMESPACES, PODS, RBAC, WIDGETS, config_map, deployment,
    named, pod, widget, widgets,
};
use orlop_apiserver::ApiServer;
use orlop_clock::{ManualClock, Rng, Timestamp};
use serde_json::{Value, json};

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn seeded(seed: u64) -> (ApiServer, ManualClock) {
    let clock = ManualClock::new(START.parse::<Timestamp>().expect("a time"));
    (ApiServer::builder().clock(clock.clone().into()).rng(Rng::seeded(seed)).build(), clock)
}

fn service(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
}

/// A bit of everything: writes that succeed and writes that do not, over some time.
async fn work(server: &ApiServer, clock: &ManualClock) -> Vec<(u16, String)> {
    let client = Client::admin(server);
    let mut answers = Vec::new();
    let gone = format!("{CONFIG_MAPS}/gone");
    for (method, path, body) in [
        ("POST", NAMESPACES, named("work")),
        ("POST", CONFIG_MAPS, config_map("gone", "text\n---\nmore\n")),
        ("POST", CONFIG_MAPS, json!({"metadata": {"generateName": "made-"}, "data": {"a": "yes", "b": "1"}})),
        ("POST", CONFIG_MAPS, json!({"metadata": {"name": "BAD"}})),
        ("POST", PODS, pod("p")),
        ("POST", DEPLOYMENTS, deployment("d")),
        ("POST", SERVICES, service("s")),
        ("POST", ACCOUNTS, named("robot")),
        ("POST", DEFINITIONS, widgets(&["v1alpha1", "v1"])),
        ("POST", WIDGETS, widget("w")),
        ("PUT", &gone, config_map("gone", "other")),
        ("DELETE", &gone, json!({})),
        ("GET", "/api/v1/configmaps", json!(null)),
        ("GET", "/apis/example.com/v1alpha1/widgets", json!(null)),
        ("GET", "/openapi/v3", json!(null)),
    ] {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let reply = client.send(method, path, body).await;
        answers.push((reply.status, reply.text()));
        advance(clock, 7);
    }
    answers
}

/// A dump without what a load must change.
fn without_versions(dump: &str) -> String {
    let lines = dump.lines().filter(|line| !line.trim_start().starts_with("resourceVersion:"));
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_and_requests_give_the_same_bytes() {
    let ((a, clock_a), (b, clock_b), (c, clock_c)) = (seeded(7), seeded(7), seeded(8));
    let (answers_a, answers_b, answers_c) =
        (work(&a, &clock_a).await, work(&b, &clock_b).await, work(&c, &clock_c).await);
    let statuses: Vec<u16> = answers_a.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [201, 201, 201, 422, 201, 201, 201, 201, 201, 201, 200, 200, 200, 200, 200]);
    assert_eq!(answers_a, answers_b);
    assert_eq!(a.dump(), b.dump());
    assert_ne!(answers_a, answers_c, "another seed gives other uids and names");
    assert_ne!(a.dump(), c.dump());
}

#[tokio::test(start_paused = true)]
async fn servers_in_one_process_know_nothing_of_each_other() {
    let servers: Vec<ApiServer> = (0..200).map(|seed| seeded(seed).0).collect();
    for (n, server) in servers.iter().enumerate() {
        let client = Client::admin(server);
        client.create(CONFIG_MAPS, &config_map(&format!("only-{n}"), "x")).await;
        if n % 50 == 0 {
            client.create(DEFINITIONS, &widgets(&["v1"])).await;
        }
    }
    for (n, server) in servers.iter().enumerate() {
        let client = Client::admin(server);
        assert_eq!(client.names(CONFIG_MAPS).await, [format!("only-{n}")]);
        assert_eq!(client.get(WIDGETS).await.status, if n % 50 == 0 { 200 } else { 404 }, "{n}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dump_that_is_loaded_gives_the_same_dump() {
    let (full, clock) = seeded(1);
    work(&full, &clock).await;
    let dump = full.dump();
    let (fresh, _) = seeded(2);
    fresh.load(&dump).expect("a dump can be loaded");
    assert_eq!(without_versions(&fresh.dump()), without_versions(&dump));
    let loaded = Client::admin(&fresh);
    assert_eq!(loaded.names(CONFIG_MAPS).await.len(), 1, "and nothing that was there before");
    assert_eq!(loaded.names(WIDGETS).await, ["w"]);
    assert_eq!(loaded.names("/apis/example.com/v1alpha1/widgets").await, ["w"]);
    let again = full.dump();
    full.load(&dump).expect("also into the server that it came from");
    assert_eq!(without_versions(&full.dump()), without_versions(&again));
    let mut taken = service("t");
    taken["spec"]["clusterIP"] =
        loaded.get(&format!("{SERVICES}/s")).await.ok(200)["spec"]["clusterIP"].clone();
    assert_eq!(loaded.post(SERVICES, &taken).await.status, 422, "addresses are taken as they were");
}

#[tokio::test(start_paused = true)]
async fn texts_survive_a_dump() {
    let (server, _) = seeded(1);
    let texts = [
        "",
        " ",
        "\n",
        "a\n---\nb",
        "---",
        "\t",
        "a\r\nb\r\n",
        "yes",
        "null",
        "~",
        "1e3",
        "0o7",
        "0x1F",
        "1_000",
        ".inf",
        "2026-01-02",
        "12:30",
        "- a",
        "a: b",
        "#c",
        "'",
        "\"",
        "\\",
        "\u{0}",
        "\u{1b}",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "é",
        "🦀",
        "  indented\n more\n",
        "trailing \n",
        "a\n\n\n",
        "&a",
        "*a",
        "!t",
        "%d",
        "@",
        "`",
        "|",
        ">",
        "?",
        "<<",
        "=",
        "y",
        "on",
        "a #b",
        "a:",
    ];
    for (n, text) in texts.iter().enumerate() {
        Client::admin(&server).create(CONFIG_MAPS, &config_map(&format!("t{n:02}"), text)).await;
    }
    let (other, _) = seeded(2);
    other.load(&server.dump()).expect("a dump can be loaded");
    for (n, text) in texts.iter().enumerate() {
        let read = Client::admin(&other).get(&format!("{CONFIG_MAPS}/t{n:02}")).await.ok(200);
        assert_eq!(read["data"]["key"], *text, "{n}");
    }
}

#[tokio::test(start_paused = true)]
async fn objects_in_a_version_that_is_not_served_are_dumped_too() {
    let (server, _) = seeded(1);
    let client = Client::admin(&server);
    let mut definition = widgets(&["v1", "v2"]);
    definition["spec"]["versions"][1]["served"] = false.into();
    client.create(DEFINITIONS, &definition).await;
    client.create(WIDGETS, &widget("w")).await;
    let (other, _) = seeded(2);
    other.load(&server.dump()).expect("a dump can be loaded");
    assert_eq!(Client::admin(&other).names(WIDGETS).await, ["w"]);
}

#[tokio::test(start_paused = true)]
async fn a_load_that_fails_names_the_document_and_changes_nothing() {
    let (server, clock) = seeded(1);
    work(&server, &clock).await;
    let client = Client::admin(&server);
    let good = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a, namespace: default}\n";
    let unknown = |n| {
        format!(
            "document {n}: no kind `Gadget` in `example.com/v1`; a dump must hold the CustomResourceDefinition too"
        )
    };
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    watch.ready().await;
    let (before, revision) = (server.dump(), client.revision().await);
    for (text, why) in [
        (format!("{good}---\nkind: Gadget\napiVersion: example.com/v1\nmetadata: {{name: x}}\n"), unknown(2)),
        (format!("kind: Gadget\napiVersion: example.com/v1\nmetadata: {{name: x}}\n---\n{good}"), unknown(1)),
        (
            format!("{good}---\nkind: Widget\napiVersion: example.com/v1\nmetadata: {{name: w}}\n"),
            unknown(2).replace("Gadget", "Widget"),
        ),
        (
            format!("{good}---\n{good}---\nkind: ConfigMap\n"),
            "document 3 is not an object with kind, apiVersion and metadata.name".to_owned(),
        ),
        (
            "just text\n".to_owned(),
            "document 1 is not an object with kind, apiVersion and metadata.name".to_owned(),
        ),
        (format!("{good}---\na: [\n"), "document 2 is not YAML: ".to_owned()),
        (
            format!("{good}---\nkind: ConfigMap\napiVersion: v1\nmetadata: {{name: b}}\n"),
            "document 2: ConfigMap `b` needs a metadata.namespace".to_owned(),
        ),
        (
            "kind: TokenReview\napiVersion: authentication.k8s.io/v1\nmetadata: {name: x}\n".to_owned(),
            "document 1: no kind `TokenReview` in `authentication.k8s.io/v1`; ".to_owned(),
        ),
    ] {
        let error = server.load(&text).expect_err(&text).to_string();
        assert!(error.starts_with(&why), "{error}");
        assert_eq!(client.revision().await, revision, "{error}");
    }
    assert_eq!(server.dump(), before);
    client.create(CONFIG_MAPS, &named("after")).await;
    assert_eq!(watch.seen().await, ["ADDED after"], "the watch goes on");
}

#[tokio::test(start_paused = true)]
async fn odd_definitions_in_a_dump_are_no_reason_to_fail() {
    let head = "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nmetadata: {name: a.b}\n";
    let established = "status: {conditions: [{type: Established, status: 'True'}]}\n";
    for rest in [
        "",
        "spec: text\n",
        "spec: []\n",
        "spec: {versions: text}\n",
        "spec: {versions: [text, {}, []]}\n",
        "spec: {group: b, versions: [{name: v1, storage: true, schema: text}]}\n",
        "status: text\n",
    ] {
        let (server, _) = seeded(1);
        let status = if rest.starts_with("status") { "" } else { established };
        server.load(&format!("{head}{rest}{status}")).expect("it is an object");
        assert_eq!(Client::admin(&server).names(DEFINITIONS).await, ["a.b"], "{rest}");
        assert_eq!(Client::admin(&server).get("/apis").await.status, 200, "{rest}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_edited_in_a_dump_is_the_one_that_counts() {
    let server = builder().0.build();
    let client = Client::admin(&server);
    let mut definition = widgets(&["v1"]);
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 5}}}},
    });
    client.create(DEFINITIONS, &definition).await;
    client.create(WIDGETS, &widget("w")).await;
    let snapshot = server.snapshot();
    let mut big = widget("big");
    big["spec"]["size"] = 50.into();
    assert_eq!(client.post(WIDGETS, &big).await.status, 422);
    server.load(&server.dump().replace("maximum: 5", "maximum: 500")).expect("a dump");
    client.create(WIDGETS, &big).await;
    server.restore(&snapshot).expect("there is no disk");
    assert_eq!(client.post(WIDGETS, &big).await.status, 422, "the snapshot has the old definition");
    // A snapshot fits any server.
    let (other, _) = seeded(7);
    Client::admin(&other).create(DEFINITIONS, &widgets(&["v1"])).await;
    other.restore(&snapshot).expect("there is no disk");
    assert_eq!(Client::admin(&other).names(WIDGETS).await, ["w"]);
    assert_eq!(Client::admin(&other).post(WIDGETS, &big).await.status, 422);
}

#[tokio::test(start_paused = true)]
async fn a_restore_brings_objects_kinds_addresses_and_rights_back() {
    let server = builder().0.build();
    let client = Client::admin(&server);
    client.create(CONFIG_MAPS, &config_map("kept", "before")).await;
    client.create(DEFINITIONS, &widgets(&["v1"])).await;
    client.create(WIDGETS, &widget("w")).await;
    let kept = client.create(SERVICES, &service("kept")).await;
    let role = json!({"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]});
    client.create(&format!("{RBAC}/clusterroles"), &role).await;
    let (snapshot, dump, revision) = (server.snapshot(), server.dump(), client.revision().await);

    client
        .patch(MERGE_PATCH, &format!("{CONFIG_MAPS}/kept"), &json!({"data": {"key": "after"}}))
        .await
        .ok(200);
    client.create(CONFIG_MAPS, &named("new")).await;
    client.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.ok(200);
    client.delete(&format!("{SERVICES}/kept")).await.ok(200);
    client.delete(&format!("{RBAC}/clusterroles/r")).await.ok(200);
    let mut thief = service("thief");
    thief["spec"]["clusterIP"] = kept["spec"]["clusterIP"].clone();
    client.create(SERVICES, &thief).await;
    assert_eq!(client.get(WIDGETS).await.status, 404);
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    watch.ready().await;

    server.restore(&snapshot).expect("there is no disk");
    assert_eq!(without_versions(&server.dump()), without_versions(&dump));
    assert_eq!(client.names(CONFIG_MAPS).await, ["kept"]);
    assert_eq!(client.get(&format!("{CONFIG_MAPS}/kept")).await.ok(200)["data"]["key"], "before");
    assert_eq!(client.names(WIDGETS).await, ["w"]);
    assert_eq!(client.get(&format!("{RBAC}/clusterroles/r")).await.status, 200);
    assert!(client.revision().await > revision, "versions go on growing");
    let mut taken = service("again");
    taken["spec"]["clusterIP"] = kept["spec"]["clusterIP"].clone();
    assert_eq!(client.post(SERVICES, &taken).await.status, 422, "the address is taken again");
    let other = client.create(SERVICES, &service("other")).await;
    assert_ne!(other["spec"]["ports"][0]["nodePort"], kept["spec"]["ports"][0]["nodePort"]);
    let last = watch.ready().await.pop().expect("the watch says that it is over");
    assert_eq!((last["type"].as_str(), &last["object"]["code"]), (Some("ERROR"), &json!(410)));
    assert_eq!(watch.next().await, None);

    server.restore(&snapshot).expect("there is no disk");
    assert_eq!(client.names(SERVICES).await, ["kept", "kubernetes"], "a snapshot can be used again");
    assert_eq!(client.get(&format!("{SERVICES}/kept")).await.ok(200).uid(), kept.uid());
}
