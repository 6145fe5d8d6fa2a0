//! Watches: what happened, in order, seen through a selection, until time or history runs out.

use crate::client::{Client, MERGE_PATCH, Object as _, Watch, admin, advance, builder, spoken};
use crate::objects::{CONFIG_MAPS, config_map, labelled, named};
use orlop_apiserver::Limits;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

async fn relabel(client: &Client, name: &str, label: &str) -> Value {
    let patch = json!({"metadata": {"labels": {"app": label}}});
    client.patch(MERGE_PATCH, &format!("{CONFIG_MAPS}/{name}"), &patch).await.ok(200)
}

async fn open(client: &Client, query: &str) -> Watch {
    client.watch(&format!("{CONFIG_MAPS}?watch=1&{query}")).await
}

#[tokio::test(start_paused = true)]
async fn where_a_watch_begins_is_asked_for() {
    let client = admin();
    let first = client.create(CONFIG_MAPS, &named("a")).await;
    client.create(CONFIG_MAPS, &named("b")).await;
    let now = client.revision().await;
    for (query, begin) in [
        (String::new(), "ADDED a, ADDED b"),
        ("resourceVersion=0".to_owned(), "ADDED a, ADDED b"),
        (format!("resourceVersion={}", first.version()), "ADDED b"),
        (format!("resourceVersion={now}"), ""),
        ("fieldSelector=metadata.name%3Db".to_owned(), "ADDED b"),
        (
            format!("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={now}"),
            "ADDED a, ADDED b",
        ),
        ("sendInitialEvents=false&resourceVersionMatch=NotOlderThan".to_owned(), ""),
        (
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true".to_owned(),
            "ADDED a, ADDED b, BOOKMARK",
        ),
    ] {
        let mut watch = open(&client, &query).await;
        assert_eq!(watch.seen().await.join(", "), begin, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_bookmark_after_the_initial_events_says_so() {
    let client = admin();
    client.create(CONFIG_MAPS, &named("a")).await;
    let now = client.revision().await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let events = open(&client, query).await.ready().await;
    let bookmark = &events[1]["object"];
    assert_eq!(
        (bookmark["kind"].as_str(), bookmark.version()),
        (Some("ConfigMap"), now.to_string().as_str())
    );
    assert_eq!(bookmark["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    for (query, message) in [(
        "sendInitialEvents=true",
        "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    )] {
        let (status, _, text) = client.get(&format!("{CONFIG_MAPS}?watch=1&{query}")).await.refusal();
        assert_eq!((status, text.as_str()), (422, message));
    }
}

#[tokio::test(start_paused = true)]
async fn every_write_is_one_event_with_its_version() {
    let client = admin();
    let mut watch = open(&client, "").await;
    let created = client.create(CONFIG_MAPS, &config_map("x", "1")).await;
    let changed = client.put(&format!("{CONFIG_MAPS}/x"), &config_map("x", "2")).await.ok(200);
    client.delete(&format!("{CONFIG_MAPS}/x")).await.ok(200);
    let now = client.revision().await;
    let events = watch.ready().await;
    assert_eq!(events.iter().map(spoken).collect::<Vec<_>>(), ["ADDED x", "MODIFIED x", "DELETED x"]);
    assert_eq!(events[0]["object"], created);
    assert_eq!(events[1]["object"], changed);
    let mut last = changed.clone();
    last["metadata"]["resourceVersion"] = now.to_string().into();
    assert_eq!(events[2]["object"], last, "the last state, at the version of the deletion");
}

#[tokio::test(start_paused = true)]
async fn selectors_turn_changes_into_arrivals_and_departures() {
    let client = admin();
    let mut watch = open(&client, "labelSelector=app%3Din").await;
    client.create(CONFIG_MAPS, &labelled("x", "out")).await;
    assert!(watch.ready().await.is_empty());
    relabel(&client, "x", "in").await;
    client.patch(MERGE_PATCH, &format!("{CONFIG_MAPS}/x"), &json!({"data": {"a": "b"}})).await.ok(200);
    let left = relabel(&client, "x", "out").await;
    client.patch(MERGE_PATCH, &format!("{CONFIG_MAPS}/x"), &json!({"data": {"a": "c"}})).await.ok(200);
    client.delete(&format!("{CONFIG_MAPS}/x")).await.ok(200);
    let events = watch.ready().await;
    assert_eq!(events.iter().map(spoken).collect::<Vec<_>>(), ["ADDED x", "MODIFIED x", "DELETED x"]);
    let gone = &events[2]["object"];
    assert_eq!(gone["metadata"]["labels"]["app"], "in", "the last state that was selected");
    assert_eq!(gone.version(), left.version(), "at the version of the change");
    relabel_back(&client).await;
    assert_eq!(watch.seen().await, ["ADDED y", "DELETED y"]);
}

async fn relabel_back(client: &Client) {
    client.create(CONFIG_MAPS, &labelled("y", "in")).await;
    client.delete(&format!("{CONFIG_MAPS}/y")).await.ok(200);
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_one_namespace_sees_no_other() {
    let client = admin();
    client.create("/api/v1/namespaces", &named("other")).await;
    let mut all = client.watch("/api/v1/configmaps?watch=true").await;
    let mut one = client.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    let mut by_prefix = client.watch("/api/v1/watch/namespaces/default/configmaps/x").await;
    client.create(CONFIG_MAPS, &named("x")).await;
    client.create("/api/v1/namespaces/other/configmaps", &named("y")).await;
    client.create(CONFIG_MAPS, &named("z")).await;
    assert_eq!(all.seen().await, ["ADDED x", "ADDED y", "ADDED z"]);
    assert_eq!(one.seen().await, ["ADDED x", "ADDED z"]);
    assert_eq!(by_prefix.seen().await, ["ADDED x"]);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_to_those_who_ask() {
    let client = admin();
    let begin = Instant::now();
    let mut asks = open(&client, "allowWatchBookmarks=true").await;
    let mut quiet = open(&client, "timeoutSeconds=300").await;
    for minute in 1..=3 {
        client.create("/api/v1/nodes", &named(&format!("n{minute}"))).await;
        let now = client.revision().await.to_string();
        let event = asks.next().await.expect("a bookmark");
        assert_eq!((spoken(&event).as_str(), event["object"].version()), ("BOOKMARK", now.as_str()));
        assert_eq!(begin.elapsed().as_secs(), 60 * minute);
    }
    assert!(quiet.next().await.is_none());
    assert_eq!(begin.elapsed().as_secs(), 300);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_it_should() {
    let client = admin();
    for (query, least, most) in [
        ("timeoutSeconds=7", 7, 7),
        ("timeoutSeconds=4000", 4000, 4000),
        ("timeoutSeconds=0", 1800, 3600),
        ("", 1800, 3600),
    ] {
        let begin = Instant::now();
        let mut watch = open(&client, query).await;
        assert!(watch.next().await.is_none());
        let took = begin.elapsed().as_secs();
        assert!((least..=most).contains(&took), "{query}: {took}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_absurd_timeout_is_no_reason_to_fail() {
    let client = admin();
    for seconds in ["9223372036854775807", "99999999999", "-5"] {
        let mut watch = open(&client, &format!("timeoutSeconds={seconds}")).await;
        client.create(CONFIG_MAPS, &json!({"metadata": {"generateName": "x-"}})).await;
        assert!(!watch.ready().await.is_empty(), "{seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn history_that_is_gone_is_an_error_event() {
    let (builder, clock) = builder();
    let client = Client::admin(&builder.limits(Limits { history_ms: 60_000, events_max: 1000 }).build());
    let first = client.create(CONFIG_MAPS, &named("a")).await;
    advance(&clock, 61);
    let second = client.create(CONFIG_MAPS, &named("b")).await;
    advance(&clock, 61);
    let third = client.create(CONFIG_MAPS, &named("c")).await;
    let reply = client.get(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", first.version())).await;
    let event = reply.ok(200);
    assert_eq!((event["type"].as_str(), &event["object"]["code"]), (Some("ERROR"), &json!(410)));
    assert_eq!(event["object"]["reason"], "Expired");
    let text = format!("too old resource version: {} (", first.version());
    assert!(event["object"].message().starts_with(&text), "{event}");
    let mut near = open(&client, &format!("resourceVersion={}", second.version())).await;
    assert_eq!(near.ready().await[0]["object"], third);
}

#[tokio::test(start_paused = true)]
async fn a_slow_watcher_is_cut_off_and_blocks_nobody() {
    let (builder, _) = builder();
    let client = Client::admin(&builder.limits(Limits { history_ms: i64::MAX, events_max: 10 }).build());
    let mut slow = open(&client, "").await;
    let mut prompt = open(&client, "").await;
    for n in 0..50 {
        client.create(CONFIG_MAPS, &named(&format!("x{n:02}"))).await;
        assert_eq!(prompt.seen().await, [format!("ADDED x{n:02}")]);
    }
    let last = slow.next().await.expect("an event");
    assert_eq!((spoken(&last).as_str(), &last["object"]["code"]), ("ERROR", &json!(410)));
    assert!(slow.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_waiting_watcher_wakes_for_a_write() {
    let client = admin();
    let mut watch = open(&client, "").await;
    let writer = async {
        tokio::time::advance(Duration::from_secs(1)).await;
        client.create(CONFIG_MAPS, &named("x")).await
    };
    let (event, created) = tokio::join!(watch.next(), writer);
    assert_eq!(event.expect("an event")["object"], created);
}

#[tokio::test(start_paused = true)]
async fn two_versions_of_one_resource_see_the_same_events_in_their_own_shape() {
    let client = admin();
    let path =
        |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers");
    let mut one = client.watch(&format!("{}?watch=1", path("v1"))).await;
    let mut two = client.watch(&format!("{}?watch=1", path("v2"))).await;
    let body = json!({
        "metadata": {"name": "x"},
        "spec": {
            "maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
            "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"},
        },
    });
    client.create(&path("v1"), &body).await;
    client
        .patch(MERGE_PATCH, &format!("{}/x", path("v2")), &json!({"spec": {"maxReplicas": 4}}))
        .await
        .ok(200);
    client.delete(&format!("{}/x", path("v2"))).await.ok(200);
    let (ones, twos) = (one.ready().await, two.ready().await);
    for (events, version) in [(&ones, "autoscaling/v1"), (&twos, "autoscaling/v2")] {
        assert_eq!(events.iter().map(spoken).collect::<Vec<_>>(), ["ADDED x", "MODIFIED x", "DELETED x"]);
        assert!(events.iter().all(|event| event["object"]["apiVersion"] == version), "{version}");
    }
    assert_eq!(ones[1]["object"]["spec"]["targetCPUUtilizationPercentage"], 50);
    assert_eq!(twos[1]["object"]["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 50);
    for (a, b) in ones.iter().zip(&twos) {
        assert_eq!(a["object"].version(), b["object"].version());
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_show_metadata_only() {
    let client = admin();
    let partial = client.with("accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
    let mut watch = partial.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    client.create(CONFIG_MAPS, &config_map("x", "1")).await;
    let events = watch.ready().await;
    assert_eq!(events[0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(events[0]["object"]["data"], Value::Null);
    assert_eq!(spoken(&events[0]), "ADDED x");
}

#[tokio::test(start_paused = true)]
async fn versions_that_are_none_are_refused() {
    let client = admin();
    for (version, message) in [
        ("abc", "strconv.ParseUint: parsing \"abc\": invalid syntax"),
        ("-1", "strconv.ParseUint: parsing \"-1\": invalid syntax"),
    ] {
        let refusal = client.get(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={version}")).await.refusal();
        assert_eq!(refusal, (500, String::new(), message.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_the_future_sleeps_until_its_time_is_over() {
    let client = admin();
    let mut watch =
        open(&client, "resourceVersion=99999999&allowWatchBookmarks=true&timeoutSeconds=200").await;
    let began = Instant::now();
    assert_eq!(watch.next().await, None);
    assert_eq!(began.elapsed().as_secs(), 200);
}
