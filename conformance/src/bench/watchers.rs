//! One write, many watchers.

use super::client;
use super::table::{Bar, Table};
use super::timer::{Timer, percentile};
use crate::failure::{Context as _, Failure};
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const WATCHERS: usize = 1000;
const WRITES: usize = 20;

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    let client = orlop_cluster::Cluster::start().client();
    let version = client::version(&client).await.context("the server does not list")?;
    let (report, mut reports) = mpsc::unbounded_channel();
    let mut watchers = JoinSet::new();
    let clock = Timer::start();
    for _ in 0..WATCHERS {
        let mut body = client::watch(&client, &version).await.context("the server does not watch")?;
        let report = report.clone();
        watchers.spawn(async move {
            while let Some(Ok(_)) = body.frame().await {
                let _ = report.send(clock.ms());
            }
        });
    }
    let mut delays = Vec::new();
    for n in 0..WRITES {
        let written = clock.ms();
        let body = client::config_map(&format!("map-{n}"), 1000);
        client::create(&client, body).await.context("the server does not create")?;
        for _ in 0..WATCHERS {
            delays.extend(reports.recv().await.map(|seen| seen - written));
        }
    }
    table.row("one write to 1,000 watchers, p50", percentile(&mut delays, 0.5), "ms", Bar::None);
    table.row("one write to 1,000 watchers, p99", percentile(&mut delays, 0.99), "ms", Bar::AtMost(10.0));
    Ok(())
}
