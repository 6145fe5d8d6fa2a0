//! Writes that are on the disk before they are acknowledged.

use super::client::{self, Target};
use super::process::{Cluster, directory};
use super::real::{Fsync, Real};
use super::table::{Bar, Table};
use super::timer::Timer;
use crate::failure::{Context as _, Failure};
use std::path::Path;
use tokio::task::JoinSet;

const WRITES: usize = 1000;
const WRITERS: usize = 32;
const BYTES: usize = 100;

/// Seconds for 1,000 writes, by one writer and by many at once.
struct Figures {
    one: f64,
    many: f64,
}

pub(crate) async fn measure(table: &mut Table, binaries: Option<&Path>) -> Result<(), Failure> {
    let kept = directory("bench-data");
    let cluster = Cluster::start_in(Some(&kept)).await?;
    let ours = of(&Target::Client(cluster.client.clone())).await?;
    drop(cluster);
    let _ = std::fs::remove_dir_all(&kept);
    let one = "1,000 creates kept on the disk, one writer";
    let many = format!("1,000 creates kept on the disk, {WRITERS} writers");
    let Some(binaries) = binaries else {
        table.row(one, ours.one, "s", Bar::None);
        table.row(many, ours.many, "s", Bar::None);
        return Ok(());
    };
    let real = Real::start(binaries, Fsync::On).await?;
    let theirs = of(&Target::Client(real.client.clone())).await?;
    table.versus(one, ours.one, theirs.one, "now, etcd with fsync", 2.0);
    table.versus(many, ours.many, theirs.many, "now, etcd with fsync", 2.0);
    Ok(())
}

async fn of(target: &Target) -> Result<Figures, Failure> {
    target.create(client::config_map("warm", BYTES)).await?;
    let timer = Timer::start();
    for n in 0..WRITES {
        target.create(client::config_map(&format!("one-{n}"), BYTES)).await?;
    }
    let one = timer.elapsed().as_secs_f64();
    let timer = Timer::start();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let target = target.clone();
        writers.spawn(async move {
            for n in (writer..WRITES).step_by(WRITERS) {
                target.create(client::config_map(&format!("many-{n}"), BYTES)).await?;
            }
            Ok::<(), Failure>(())
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer.context("a writer failed")??;
    }
    Ok(Figures { one, many: timer.elapsed().as_secs_f64() })
}
