//! How long until the first answer, and what an idle server costs.

use super::client::Target;
use super::probe;
use super::process::Cluster;
use super::table::{Bar, Table};
use super::timer::{Timer, median};
use crate::failure::Failure;
use serde_json::{Value, json};

const PROCESSES: usize = 7;
const FURTHER: usize = 200;

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    let (mut first, mut further) = (Vec::new(), Vec::new());
    let (mut ready, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..PROCESSES {
        let figures = probe::ask("start").await?;
        first.push(figures["first_ms"].as_f64().unwrap_or(f64::NAN));
        further.push(figures["further_ms"].as_f64().unwrap_or(f64::NAN));
        let cluster = Cluster::start().await?;
        ready.push(cluster.ready_ms);
        memory.push(cluster.rss() as f64 / 1e6);
    }
    table.row("start to first answer, in-process, first server", median(&mut first), "ms", Bar::AtMost(15.0));
    table.row(
        "start to first answer, in-process, each further one",
        median(&mut further),
        "ms",
        Bar::AtMost(1.0),
    );
    table.row("start of the process to first answer over TLS", median(&mut ready), "ms", Bar::AtMost(60.0));
    table.row("idle resident memory", median(&mut memory), "MB", Bar::AtMost(25.0));
    Ok(())
}

/// Figures of this process.
pub(crate) async fn probe() -> Result<Value, Failure> {
    let first_ms = once().await?;
    let mut further = Vec::new();
    for _ in 0..FURTHER {
        further.push(once().await?);
    }
    Ok(json!({"first_ms": first_ms, "further_ms": median(&mut further)}))
}

async fn once() -> Result<f64, Failure> {
    let timer = Timer::start();
    Target::Client(orlop_cluster::Cluster::start().client()).list().await?;
    Ok(timer.ms())
}
