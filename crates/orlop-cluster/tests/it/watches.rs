//! Watches.

use crate::support::{config_map, config_maps};
use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use orlop_cluster::Cluster;
use serde_json::json;

fn describe(event: &WatchEvent<ConfigMap>) -> String {
    let (what, map) = match event {
        WatchEvent::Added(map) => ("added", map),
        WatchEvent::Modified(map) => ("modified", map),
        WatchEvent::Deleted(map) => ("deleted", map),
        WatchEvent::Bookmark(_) => return "bookmark".to_owned(),
        WatchEvent::Error(status) => return format!("error {}", status.code),
    };
    let value = map.data.as_ref().and_then(|data| data.get("key")).map_or("", String::as_str);
    format!("{what} {} {value}", map.metadata.name.as_deref().unwrap_or_default())
}

#[tokio::test]
async fn a_watch_sees_what_is_there_and_every_change_in_order() -> Result<(), kube::Error> {
    let maps = config_maps(&Cluster::start());
    maps.create(&PostParams::default(), &config_map("a", "1")).await?;
    let watch = maps.watch(&WatchParams::default(), "0").await?.boxed();
    maps.create(&PostParams::default(), &config_map("b", "2")).await?;
    let patch = Patch::Merge(json!({"data": {"key": "3"}}));
    maps.patch("a", &PatchParams::default(), &patch).await?;
    maps.delete("b", &DeleteParams::default()).await?;
    let seen: Vec<String> = watch.take(4).map_ok(|event| describe(&event)).try_collect().await?;
    assert_eq!(seen, ["added a 1", "added b 2", "modified a 3", "deleted b 2"]);
    Ok(())
}

#[tokio::test]
async fn a_watch_resumes_where_a_list_or_an_object_stands() -> Result<(), kube::Error> {
    let maps = config_maps(&Cluster::start());
    let first = maps.create(&PostParams::default(), &config_map("a", "1")).await?;
    maps.create(&PostParams::default(), &config_map("b", "2")).await?;
    let version = first.metadata.resource_version.expect("a stored object has a version");
    let watch = maps.watch(&WatchParams::default(), &version).await?;
    let seen: Vec<String> = watch.take(1).map_ok(|event| describe(&event)).try_collect().await?;
    assert_eq!(seen, ["added b 2"]);
    Ok(())
}

#[tokio::test]
async fn a_selector_turns_changes_into_comings_and_goings() -> Result<(), kube::Error> {
    let maps = config_maps(&Cluster::start());
    let watch = maps.watch(&WatchParams::default().labels("app=web"), "0").await?.boxed();
    maps.create(&PostParams::default(), &config_map("a", "1")).await?;
    for app in ["web", "db"] {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"app": app}}}));
        maps.patch("a", &PatchParams::default(), &patch).await?;
    }
    let seen: Vec<String> = watch.take(2).map_ok(|event| describe(&event)).try_collect().await?;
    assert_eq!(seen, ["added a 1", "deleted a 1"]);
    Ok(())
}

#[tokio::test]
async fn a_streaming_list_ends_with_a_bookmark() -> Result<(), kube::Error> {
    let maps = config_maps(&Cluster::start());
    maps.create(&PostParams::default(), &config_map("a", "1")).await?;
    let watch = maps.watch(&WatchParams::default().initial_events(), "").await?;
    let seen: Vec<String> = watch.take(2).map_ok(|event| describe(&event)).try_collect().await?;
    assert_eq!(seen, ["added a 1", "bookmark"]);
    Ok(())
}
