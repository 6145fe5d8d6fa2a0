//! `bench`: start, throughput, fan-out, fairness, memory and growth, as one Markdown table with ratios.
//!
//! What depends on a fresh process (first start, memory) runs in one: this program starts itself as a *probe* and
//! reads its figures.

pub(crate) mod client;
mod fairness;
mod growth;
mod http2;
mod memory;
mod persistence;
mod probe;
pub(crate) mod process;
mod real;
mod start;
mod table;
mod throughput;
mod timer;
mod watchers;

use crate::failure::Failure;
use crate::output::{data, say};
use std::path::PathBuf;
use table::Table;
use throughput::{Real, Throughput};

/// Seconds that a real kube-apiserver with etcd took for 1,000 creates, gets and applies, when none is at hand.
const REAL_SECONDS: Throughput = Throughput { create: 2.9, get: 2.0, apply: 3.1, list: 0.24 };

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A directory with `etcd` and `kube-apiserver`, to measure the same on the real thing
    #[arg(long, value_name = "DIR", env = "ORACLE_BIN")]
    real: Option<PathBuf>,
    /// Only measurements whose name holds this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Run one measurement in this process and print its figures
    #[arg(long, hide = true)]
    probe: Option<probe::Probe>,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    if let Some(probe) = args.probe {
        return probe::answer(probe).await;
    }
    let wanted = |name: &str| name.contains(&args.only);
    let mut table = Table::default();
    if wanted("start") {
        say("measuring start");
        start::measure(&mut table).await?;
    }
    if wanted("throughput") {
        let real = match &args.real {
            Some(directory) => {
                say("measuring throughput of the real server");
                Real { figures: real::throughput(directory).await?, source: "now" }
            }
            None => Real { figures: REAL_SECONDS, source: "recorded" },
        };
        say("measuring throughput");
        throughput::measure(&mut table, &real).await?;
    }
    if wanted("watchers") {
        say("measuring fan-out");
        watchers::measure(&mut table).await?;
    }
    if wanted("persistence") {
        say("measuring writes that are kept");
        persistence::measure(&mut table, args.real.as_deref()).await?;
    }
    if wanted("fairness") {
        say("measuring fairness");
        fairness::measure(&mut table).await?;
    }
    if wanted("memory") {
        say("measuring memory");
        memory::measure(&mut table).await?;
    }
    if wanted("growth") {
        say("measuring growth");
        growth::measure(&mut table).await?;
    }
    data(table);
    Ok(())
}
