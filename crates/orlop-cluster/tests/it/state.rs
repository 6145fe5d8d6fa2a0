//! A cluster's state as a value: many at once, dumped, loaded, gone back to, under a clock that stands still.

use crate::support::{config_map, config_maps};
use futures_util::{StreamExt as _, TryStreamExt as _};
use kube::api::{DeleteParams, ListParams, PostParams, WatchParams};
use orlop_clock::{SignedDuration, Timestamp};
use orlop_cluster::{Cluster, ManualClock, Rng};

#[tokio::test]
async fn hundreds_of_clusters_live_apart_in_one_process() -> Result<(), kube::Error> {
    let clusters: Vec<Cluster> = (0..300).map(|_| Cluster::start()).collect();
    for (n, cluster) in clusters.iter().enumerate() {
        config_maps(cluster).create(&PostParams::default(), &config_map("mine", &n.to_string())).await?;
    }
    for (n, cluster) in clusters.iter().enumerate() {
        let all = config_maps(cluster).list(&ListParams::default()).await?.items;
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].data.as_ref().map(|data| data["key"].clone()), Some(n.to_string()));
    }
    Ok(())
}

#[tokio::test]
async fn a_dump_loads_into_the_same_state() -> Result<(), Box<dyn std::error::Error>> {
    let first = Cluster::start();
    let created =
        config_maps(&first).create(&PostParams::default(), &config_map("a", "on: \"yes\"\n---\n- 1")).await?;
    let dump = first.server().dump();

    let second = Cluster::start();
    config_maps(&second).create(&PostParams::default(), &config_map("gone", "x")).await?;
    second.server().load(&dump)?;
    let loaded = config_maps(&second).get("a").await?;
    assert_eq!((loaded.data, loaded.metadata.uid), (created.data, created.metadata.uid));
    assert_eq!(config_maps(&second).get_opt("gone").await?, None);
    let without_versions = |dump: &str| -> Vec<String> {
        dump.lines().filter(|line| !line.contains("resourceVersion:")).map(str::to_owned).collect()
    };
    assert_eq!(without_versions(&second.server().dump()), without_versions(&dump));
    Ok(())
}

#[tokio::test]
async fn a_dump_that_cannot_be_loaded_changes_nothing() {
    let cluster = Cluster::start();
    let before = cluster.server().dump();
    for bad in ["kind: [", "a: 1", "apiVersion: example.com/v1\nkind: Unknown\nmetadata: {name: a}"] {
        assert!(cluster.server().load(bad).is_err(), "{bad}");
        assert_eq!(cluster.server().dump(), before, "{bad}");
    }
}

#[tokio::test]
async fn a_snapshot_brings_back_what_was() -> Result<(), kube::Error> {
    let cluster = Cluster::start();
    let maps = config_maps(&cluster);
    let kept = maps.create(&PostParams::default(), &config_map("kept", "1")).await?;
    let snapshot = cluster.server().snapshot();
    maps.delete("kept", &DeleteParams::default()).await?;
    let later = maps.create(&PostParams::default(), &config_map("later", "1")).await?;

    cluster.server().restore(&snapshot).expect("there is no disk");
    let list = maps.list(&ListParams::default()).await?;
    assert_eq!(list.items.len(), 1);
    assert_eq!(list.items[0].metadata.uid, kept.metadata.uid);
    let number = |version: Option<String>| version.and_then(|v| v.parse::<u64>().ok()).unwrap_or_default();
    assert!(
        number(list.metadata.resource_version) > number(later.metadata.resource_version),
        "versions go on growing"
    );
    Ok(())
}

#[tokio::test]
async fn a_clock_that_stands_still_stamps_what_it_shows() -> Result<(), kube::Error> {
    let start: Timestamp = "2030-01-02T03:04:05Z".parse().expect("a time");
    let clock = ManualClock::new(start);
    let cluster = Cluster::builder().clock(clock.clone()).rng(Rng::seeded(7)).start();
    let maps = config_maps(&cluster);
    let first = maps.create(&PostParams::default(), &config_map("a", "1")).await?;
    let stamp = |at: &Timestamp| Some(at.to_string());
    assert_eq!(first.metadata.creation_timestamp.map(|time| time.0.to_string()), stamp(&start));
    clock.advance(SignedDuration::from_hours(24 * 30));
    let second = maps.create(&PostParams::default(), &config_map("b", "1")).await?;
    assert_eq!(second.metadata.creation_timestamp.map(|time| time.0.to_string()), stamp(&clock.now()));
    Ok(())
}

#[tokio::test]
async fn the_same_seed_gives_the_same_uids() -> Result<(), kube::Error> {
    let mut uids = Vec::new();
    for _ in 0..2 {
        let cluster = Cluster::builder().rng(Rng::seeded(42)).start();
        uids.push(
            config_maps(&cluster).create(&PostParams::default(), &config_map("a", "1")).await?.metadata.uid,
        );
    }
    assert!(uids[0].is_some());
    assert_eq!(uids[0], uids[1]);
    Ok(())
}

#[tokio::test]
async fn a_restore_ends_watches() -> Result<(), kube::Error> {
    let cluster = Cluster::start();
    let maps = config_maps(&cluster);
    let snapshot = cluster.server().snapshot();
    let watch = maps.watch(&WatchParams::default(), "0").await?;
    maps.create(&PostParams::default(), &config_map("a", "1")).await?;
    let mut watch = watch.boxed();
    assert!(watch.try_next().await?.is_some());
    cluster.server().restore(&snapshot).expect("there is no disk");
    // Either the end, or an error event that says so: never silence.
    let _ = watch.try_next().await;
    Ok(())
}
