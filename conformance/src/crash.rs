//! `crash`: a cluster that is kept in a directory is killed in the middle of writes, again and again, and must come
//! back with everything that it had acknowledged.

use crate::bench::client::Target;
use crate::bench::process::{Cluster, directory};
use crate::failure::{Context as _, Failure};
use crate::output::{data, say};
use orlop_clock::Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How many clients write at once, each to objects of its own.
const WRITERS: usize = 8;
const OBJECTS_PER_WRITER: u64 = 6;
/// A kill comes at most this long after the writers have begun.
const LIFE: Duration = Duration::from_millis(40);
/// Every so many rounds a line is printed.
const REPORT_EVERY: usize = 100;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often the cluster is killed
    #[arg(long, default_value_t = 1000, value_name = "N")]
    rounds: usize,
    /// Where the random choices begin
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

/// What an object can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Gone,
    Value(u64),
}

/// What is known of an object: what was acknowledged last, and what a write under way would make of it.
#[derive(Clone, Copy, Default)]
struct Known {
    acknowledged: State,
    under_way: Option<State>,
}

/// One writer's objects.
type Objects = BTreeMap<String, Known>;

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let kept = directory("crash-data");
    let rng = Rng::seeded(args.seed);
    let mut objects: BTreeMap<usize, Objects> = (0..WRITERS).map(|writer| (writer, Objects::new())).collect();
    let (mut acknowledged, mut value) = (0, 0);
    for round in 0..=args.rounds {
        let cluster = Cluster::start_in(Some(&kept)).await?;
        let target = Target::Client(cluster.client.clone());
        check(&target, &mut objects).await.map_err(|failure| failure.during(&format!("round {round}")))?;
        if round == args.rounds {
            break;
        }
        let mut writers = JoinSet::new();
        for (writer, objects) in std::mem::take(&mut objects) {
            let rng = Rng::seeded(args.seed ^ (round as u64) << 16 ^ writer as u64);
            value += 1_000_000;
            writers.spawn(write(target.clone(), writer, objects, Arc::new(rng), value));
        }
        tokio::time::sleep(Duration::from_micros(rng.below(LIFE.as_micros() as u64))).await;
        cluster.kill().await?;
        while let Some(written) = writers.join_next().await {
            let (writer, count, written) = written.context("a writer failed")?;
            acknowledged += count;
            objects.insert(writer, written);
        }
        if (round + 1) % REPORT_EVERY == 0 {
            say(format_args!("{} kills, {acknowledged} acknowledged writes, none lost", round + 1));
        }
    }
    let _ = std::fs::remove_dir_all(&kept);
    data(format_args!("{} kills, {acknowledged} acknowledged writes, none lost", args.rounds));
    Ok(())
}

/// Writes until the server is gone.
async fn write(
    target: Target,
    writer: usize,
    mut objects: Objects,
    rng: Arc<Rng>,
    mut value: u64,
) -> (usize, usize, Objects) {
    let mut acknowledged = 0;
    loop {
        let name = format!("w{writer}-{}", rng.below(OBJECTS_PER_WRITER));
        let known = objects.entry(name.clone()).or_default();
        let removes = known.acknowledged != State::Gone && rng.below(4) == 0;
        value += 1;
        let next = if removes { State::Gone } else { State::Value(value) };
        known.under_way = Some(next);
        let result = if removes {
            target.delete(&name).await
        } else {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {
                "value": value.to_string(), "padding": "x".repeat(rng.below(2000) as usize),
            }});
            target.apply(&name, object.to_string().into_bytes()).await
        };
        if result.is_err() {
            return (writer, acknowledged, objects);
        }
        acknowledged += 1;
        *known = Known { acknowledged: next, under_way: None };
    }
}

/// Every object must be as it was acknowledged last, or as the write that was under way would have it.
async fn check(target: &Target, objects: &mut BTreeMap<usize, Objects>) -> Result<(), Failure> {
    let list: Value = serde_json::from_str(&target.list().await?).context("the list is not JSON")?;
    let mut found = BTreeMap::new();
    for item in list["items"].as_array().into_iter().flatten() {
        let name = item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let value = item["data"]["value"].as_str().and_then(|value| value.parse::<u64>().ok());
        found.insert(name, value);
    }
    for (name, known) in objects.values_mut().flatten() {
        let value = found.remove(name).flatten().map_or(State::Gone, State::Value);
        if value != known.acknowledged && known.under_way != Some(value) {
            let expected = known.acknowledged;
            return Err(Failure::new(format!("`{name}` is {value:?} and was acknowledged as {expected:?}")));
        }
        *known = Known { acknowledged: value, under_way: None };
    }
    match found.keys().find(|name| name.starts_with('w')) {
        Some(name) => Err(Failure::new(format!("nobody wrote `{name}`"))),
        None => Ok(()),
    }
}
