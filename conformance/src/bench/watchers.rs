//! One write, many watchers.

use super::client::{self, Target};
use super::process::Cluster;
use super::table::{Bar, Table};
use super::timer::{Timer, percentile};
use crate::failure::Failure;
use orlop_apiserver::{ApiServer, User};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const WATCHERS: usize = 1000;
const WRITES: usize = 20;

/// How many connections the watchers share when they come over TLS.
const CONNECTIONS: usize = 10;

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    let service = Target::Service(ApiServer::builder().build().service_as(User::admin()));
    let mut delays = fan_out(&[service]).await?;
    table.row("one write to 1,000 watchers, p50", percentile(&mut delays, 0.5), "ms", Bar::None);
    table.row("one write to 1,000 watchers, p99", percentile(&mut delays, 0.99), "ms", Bar::AtMost(10.0));
    let cluster = Cluster::start().await?;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Target::Http2(cluster.connect().await?));
    }
    let mut delays = fan_out(&connections).await?;
    let name = "one write to 1,000 watchers on 10 TLS connections";
    table.row(format!("{name}, p50"), percentile(&mut delays, 0.5), "ms", Bar::None);
    table.row(format!("{name}, p99"), percentile(&mut delays, 0.99), "ms", Bar::AtMost(50.0));
    Ok(())
}

/// Milliseconds from before each write until each watcher has seen it; the watchers are spread over `targets`.
async fn fan_out(targets: &[Target]) -> Result<Vec<f64>, Failure> {
    let writer = targets.first().ok_or_else(|| Failure::new("there is nobody to write"))?;
    let version = writer.version().await?;
    let (report, mut reports) = mpsc::unbounded_channel();
    let mut watchers = JoinSet::new();
    let clock = Timer::start();
    for (_, target) in (0..WATCHERS).zip(targets.iter().cycle()) {
        let mut events = target.watch(&version).await?;
        let report = report.clone();
        watchers.spawn(async move {
            while events.next().await.is_ok() {
                let _ = report.send(clock.ms());
            }
        });
    }
    let mut delays = Vec::new();
    for n in 0..WRITES {
        let written = clock.ms();
        writer.create(client::config_map(&format!("map-{n}"), 1000)).await?;
        for _ in 0..WATCHERS {
            delays.extend(reports.recv().await.map(|seen| seen - written));
        }
    }
    Ok(delays)
}
