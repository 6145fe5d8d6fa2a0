//! Lists: one consistent state, whole or in pages, and the part of it that selectors choose.

use crate::client::{Client, MERGE_PATCH, Object as _, admin, advance, builder};
use crate::objects::{CONFIG_MAPS, NAMESPACES, PODS, config_map, labelled, named, pod};
use orlop_apiserver::Limits;
use serde_json::{Value, json};

async fn with_config_maps(client: &Client, count: usize) -> Value {
    for n in 0..count {
        client.create(CONFIG_MAPS, &config_map(&format!("cm-{n:02}"), "old")).await;
    }
    client.get(CONFIG_MAPS).await.ok(200)
}

fn token(list: &Value) -> &str {
    list["metadata"]["continue"].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn pages_show_the_state_at_the_first_page_while_writes_go_on() {
    let client = admin();
    let whole = with_config_maps(&client, 10).await;
    let mut page = client.get(&format!("{CONFIG_MAPS}?limit=3")).await.ok(200);
    let (mut items, mut remaining) = (Vec::new(), Vec::new());
    for n in 0.. {
        items.extend(page["items"].as_array().expect("items").clone());
        remaining.push(page["metadata"]["remainingItemCount"].clone());
        assert_eq!(page.version(), whole.version());
        if token(&page).is_empty() {
            break;
        }
        client
            .put(&format!("{CONFIG_MAPS}/cm-{:02}", 9 - n), &config_map(&format!("cm-{:02}", 9 - n), "new"))
            .await
            .ok(200);
        client.delete(&format!("{CONFIG_MAPS}/cm-0{}", 5 + n)).await.ok(200);
        client.create(CONFIG_MAPS, &config_map(&format!("cm-{n:02}-late"), "new")).await;
        page = client.get(&format!("{CONFIG_MAPS}?limit=3&continue={}", token(&page))).await.ok(200);
    }
    assert_eq!(json!(items), whole["items"]);
    assert_eq!(remaining, [json!(7), json!(4), json!(1), Value::Null]);
}

#[tokio::test(start_paused = true)]
async fn remaining_items_are_counted_only_without_selectors() {
    let client = admin();
    with_config_maps(&client, 5).await;
    for (query, remaining, more) in [
        ("limit=2", json!(3), true),
        ("limit=5", Value::Null, false),
        ("limit=0", Value::Null, false),
        ("limit=-1", Value::Null, false),
        ("limit=2&labelSelector=!app", Value::Null, true),
        ("limit=2&fieldSelector=metadata.name!%3Dcm-00", Value::Null, true),
        ("limit=2&resourceVersion=0", Value::Null, false),
    ] {
        let list = client.get(&format!("{CONFIG_MAPS}?{query}")).await.ok(200);
        assert_eq!(list["metadata"]["remainingItemCount"], remaining, "{query}");
        assert_eq!(!token(&list).is_empty(), more, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_is_gone_and_brings_one_that_goes_on() {
    let (builder, clock) = builder();
    let client = Client::admin(&builder.limits(Limits { history_ms: 60_000, events_max: 1000 }).build());
    with_config_maps(&client, 6).await;
    let first = client.get(&format!("{CONFIG_MAPS}?limit=2")).await.ok(200);
    let again = client.get(&format!("{CONFIG_MAPS}?limit=2&continue={}", token(&first))).await.ok(200);
    assert_eq!(again.names(), ["cm-02", "cm-03"]);
    advance(&clock, 61);
    client.create(CONFIG_MAPS, &config_map("cm-02-late", "new")).await;
    advance(&clock, 61);
    client.create(CONFIG_MAPS, &config_map("cm-09", "new")).await;
    let gone = client.get(&format!("{CONFIG_MAPS}?limit=2&continue={}", token(&first))).await;
    let (status, reason, message) = gone.refusal();
    assert_eq!((status, reason.as_str()), (410, "Expired"));
    assert!(
        message
            .starts_with("The provided continue parameter is too old to display a consistent list result.")
    );
    let going_on = gone.json();
    let rest = client.get(&format!("{CONFIG_MAPS}?limit=3&continue={}", token(&going_on))).await.ok(200);
    assert_eq!(rest.names(), ["cm-02", "cm-02-late", "cm-03"]);
    let end = client.get(&format!("{CONFIG_MAPS}?continue={}", token(&rest))).await.ok(200);
    assert_eq!(end.names(), ["cm-04", "cm-05", "cm-09"]);
}

#[tokio::test(start_paused = true)]
async fn tokens_that_the_server_did_not_give_are_refused() {
    use base64::Engine as _;
    let client = admin();
    with_config_maps(&client, 3).await;
    let encode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    for bad in [
        "!!!".to_owned(),
        "x".to_owned(),
        encode("{"),
        encode("[]"),
        encode("null"),
        encode(r#"{"v":"meta.k8s.io/v9","rv":1,"start":"x"}"#),
        encode(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"x"}"#),
        encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":""}"#),
        encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../../secrets/x"}"#),
    ] {
        let (status, reason, message) =
            client.get(&format!("{CONFIG_MAPS}?limit=1&continue={bad}")).await.refusal();
        assert_eq!((status, reason.as_str()), (400, "BadRequest"), "{bad}");
        assert!(message.starts_with("continue key is not valid: "), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_of_one_namespace_does_not_leave_another() {
    let client = admin();
    for namespace in ["a", "b"] {
        client.create(NAMESPACES, &named(namespace)).await;
        for name in ["x", "y"] {
            client.create(&format!("/api/v1/namespaces/{namespace}/configmaps"), &named(name)).await;
        }
    }
    let first = client.get("/api/v1/namespaces/a/configmaps?limit=1").await.ok(200);
    let other =
        client.get(&format!("/api/v1/namespaces/b/configmaps?continue={}", token(&first))).await.ok(200);
    assert_eq!(other.names(), ["y"]);
    assert_eq!(other["items"][0]["metadata"]["namespace"], "b");
    let all = client.get("/api/v1/configmaps?limit=3").await.ok(200);
    let rest = client.get(&format!("/api/v1/configmaps?continue={}", token(&all))).await.ok(200);
    assert_eq!((all.names(), rest.names()), (vec!["x".into(), "y".into(), "x".into()], vec!["y".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn resource_versions_choose_the_state() {
    let (builder, clock) = builder();
    let client = Client::admin(&builder.build());
    let old = with_config_maps(&client, 2).await;
    let then = old.version().to_owned();
    client.create(CONFIG_MAPS, &named("late")).await;
    let (two, three) = (vec!["cm-00", "cm-01"], vec!["cm-00", "cm-01", "late"]);
    for (query, names) in [
        (String::new(), &three),
        ("resourceVersion=0".to_owned(), &three),
        (format!("resourceVersion={then}"), &three),
        (format!("resourceVersion={then}&resourceVersionMatch=NotOlderThan"), &three),
        (format!("resourceVersion={then}&resourceVersionMatch=Exact"), &two),
        (format!("resourceVersion={then}&limit=5"), &two),
    ] {
        assert_eq!(&client.names(&format!("{CONFIG_MAPS}?{query}")).await, names, "{query}");
    }
    for (query, status, reason) in [
        ("resourceVersion=abc".to_owned(), 400, "BadRequest"),
        ("resourceVersion=-1".to_owned(), 400, "BadRequest"),
        ("resourceVersion=99999999".to_owned(), 504, "Timeout"),
        ("resourceVersion=99999999999999999999999".to_owned(), 400, "BadRequest"),
        ("resourceVersionMatch=Exact".to_owned(), 422, "Invalid"),
        ("resourceVersion=0&resourceVersionMatch=Exact".to_owned(), 422, "Invalid"),
        (format!("resourceVersion={then}&resourceVersionMatch=Roughly"), 422, "Invalid"),
    ] {
        let refusal = client.get(&format!("{CONFIG_MAPS}?{query}")).await.refusal();
        assert_eq!((refusal.0, refusal.1.as_str()), (status, reason), "{query}: {}", refusal.2);
    }
    advance(&clock, 3600);
    client.delete(&format!("{CONFIG_MAPS}/late")).await.ok(200);
    let exact = format!("{CONFIG_MAPS}?resourceVersion={then}&resourceVersionMatch=Exact");
    let (status, reason, message) = client.get(&exact).await.refusal();
    assert_eq!((status, reason.as_str()), (410, "Expired"));
    assert_eq!(message, "The resourceVersion for the provided list is too old.");
}

#[tokio::test(start_paused = true)]
async fn label_selectors_choose() {
    let client = admin();
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "z")] {
        client.create(CONFIG_MAPS, &labelled(name, label)).await;
    }
    client.create(CONFIG_MAPS, &named("d")).await;
    for (selector, names) in [
        ("app", "a b c"),
        ("!app", "d"),
        ("app=x", "a"),
        ("app==x", "a"),
        ("app!=x", "b c d"),
        ("app in (x,y)", "a b"),
        ("app notin (x,y)", "c d"),
        ("app in (x),app in (y)", ""),
        ("app,app!=y", "a c"),
        (" ", "a b c d"),
        ("app=", ""),
        ("app in ()", ""),
        ("app notin ()", "a b c d"),
    ] {
        let encoded = selector.replace(' ', "%20").replace('=', "%3D").replace(',', "%2C");
        let found = client.names(&format!("{CONFIG_MAPS}?labelSelector={encoded}")).await.join(" ");
        assert_eq!(found, names, "{selector}");
    }
}

#[tokio::test(start_paused = true)]
async fn field_selectors_choose() {
    let client = admin();
    for name in ["a", "b"] {
        let mut body = pod(name);
        body["spec"]["nodeName"] = format!("node-{name}").into();
        client.create(PODS, &body).await;
    }
    client
        .patch(MERGE_PATCH, &format!("{PODS}/a/status"), &json!({"status": {"phase": "Running"}}))
        .await
        .ok(200);
    for (selector, names) in [
        ("metadata.name=a", "a"),
        ("metadata.name!=a", "b"),
        ("metadata.namespace=default", "a b"),
        ("metadata.namespace=other", ""),
        ("spec.nodeName=node-b", "b"),
        ("status.phase=Running", "a"),
        ("status.phase=Running,spec.nodeName=node-b", ""),
        ("spec.restartPolicy=Always", "a b"),
    ] {
        let encoded = selector.replace('=', "%3D").replace(',', "%2C");
        let found = client.names(&format!("{PODS}?fieldSelector={encoded}")).await.join(" ");
        assert_eq!(found, names, "{selector}");
    }
}

#[tokio::test(start_paused = true)]
async fn bad_selectors_are_refused_in_the_words_of_the_real_server() {
    let client = admin();
    for (query, message) in [
        (
            "fieldSelector=spec.x%3Dy",
            "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        (
            "fieldSelector=metadata.name",
            "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
        ),
        ("labelSelector=app%3D%3D%3Dx", "unable to parse requirement: found '=', expected: identifier"),
        ("labelSelector=app%20in%20x", "unable to parse requirement: found 'x' expected: '('"),
        ("labelSelector=%2C", "found ',', expected: !, identifier, or 'end of string'"),
        ("limit=many", "strconv.ParseInt: parsing \"many\": invalid syntax"),
    ] {
        let (status, reason, text) = client.get(&format!("{CONFIG_MAPS}?{query}")).await.refusal();
        assert_eq!((status, reason.as_str(), text.as_str()), (400, "BadRequest", message), "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_can_show_metadata_only() {
    let client = admin();
    client.create(CONFIG_MAPS, &config_map("x", "1")).await;
    let partial = client.with("accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
    let list = partial.get(CONFIG_MAPS).await.ok(200);
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
    assert_eq!(list["items"][0]["data"], Value::Null);
    assert_eq!(list.names(), ["x"]);
}
