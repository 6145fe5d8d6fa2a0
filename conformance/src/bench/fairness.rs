//! A small read beside many large lists: what one client takes from another.

use super::client::{self, Target, request};
use super::process::Cluster;
use super::table::{Bar, Table};
use super::timer::{Timer, percentile};
use crate::failure::{Context as _, Failure};
use http::HeaderValue;
use tokio::task::JoinSet;

const OBJECTS: usize = 10_000;
const LISTS: usize = 50;

/// How a client asks for its list: name, `Accept`, whether it takes gzip.
const FORMS: [(&str, &str, bool); 4] = [
    ("JSON", "application/json", false),
    ("gzip", "application/json", true),
    ("protobuf", "application/vnd.kubernetes.protobuf", false),
    ("tables", "application/json;as=Table;v=v1;g=meta.k8s.io", false),
];

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    let cluster = Cluster::start().await?;
    fill(&Target::Http2(cluster.connect().await?)).await?;
    // Those who read do so on a thread of their own, as another machine would.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("no second runtime")?;
    for (name, accept, gzip) in FORMS {
        let mut connections = Vec::new();
        for _ in 0..LISTS {
            connections.push(cluster.connect_on(&runtime).await?);
        }
        let small = Target::Http2(cluster.connect().await?);
        small.get("map-0").await?;
        let timer = Timer::start();
        let mut lists = JoinSet::new();
        for connection in connections {
            let mut asked = request("GET", client::MAPS, "", Vec::new()).map(client::whole);
            asked.headers_mut().insert("accept", HeaderValue::from_static(accept));
            if gzip {
                asked.headers_mut().insert("accept-encoding", HeaderValue::from_static("gzip"));
            }
            lists.spawn_on(async move { connection.drain(asked).await }, runtime.handle());
        }
        let mut delays = Vec::new();
        while !lists.is_empty() {
            let before = timer.ms();
            small.get("map-0").await?;
            delays.push(timer.ms() - before);
            while let Some(done) = lists.try_join_next() {
                done.context("a list was cut short")??;
            }
        }
        let what = format!("GET beside 50 lists of 10,000 as {name}");
        table.row(format!("{what}, p50 of {}", delays.len()), percentile(&mut delays, 0.5), "ms", Bar::None);
        table.row(format!("{what}, p99"), percentile(&mut delays, 0.99), "ms", Bar::AtMost(100.0));
        table.row(format!("50 lists of 10,000 as {name}"), timer.ms(), "ms", Bar::None);
    }
    runtime.shutdown_background();
    Ok(())
}

/// Creates the objects, some at a time.
async fn fill(target: &Target) -> Result<(), Failure> {
    let mut writers = JoinSet::new();
    for writer in 0..20 {
        let target = target.clone();
        writers.spawn(async move {
            for n in (writer..OBJECTS).step_by(20) {
                target.create(client::config_map(&format!("map-{n}"), 300)).await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(written) = writers.join_next().await {
        written.context("a writer was cut short")??;
    }
    Ok(())
}
