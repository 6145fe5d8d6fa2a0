//! Sequential requests on one connection.

use super::client::{self, Target};
use super::process::Cluster;
use super::table::Table;
use super::timer::{Timer, median};
use crate::failure::Failure;
use orlop_apiserver::{ApiServer, User};

const REQUESTS: usize = 1000;
const BYTES: usize = 100;

/// Seconds for 1,000 requests of each sort.
#[derive(Clone, Copy)]
pub(crate) struct Throughput {
    pub(crate) create: f64,
    pub(crate) get: f64,
    pub(crate) apply: f64,
    /// Seconds for one list of 10,000 objects.
    pub(crate) list: f64,
}

/// How long a list may grow before it is measured.
const LISTED: usize = 10_000;
const LISTS: usize = 5;

/// Where the real server's figures come from.
pub(crate) struct Real {
    pub(crate) figures: Throughput,
    /// `measured now`, or when and where they were recorded.
    pub(crate) source: &'static str,
}

pub(crate) async fn measure(table: &mut Table, real: &Real) -> Result<(), Failure> {
    let cluster = Cluster::start().await?;
    let tls = of(&Target::Client(cluster.client.clone())).await?;
    let service = of(&Target::Service(ApiServer::builder().build().service_as(User::admin()))).await?;
    let through_client = of(&Target::Client(orlop_cluster::Cluster::start().client())).await?;
    let Real { figures: real, source } = real;
    for (place, figures, least) in [
        ("over TLS", tls, 5.0),
        ("in-process", service, 20.0),
        ("in-process through kube::Client", through_client, 20.0),
    ] {
        table.versus(format!("1,000 creates {place}"), figures.create, real.create, source, least);
        table.versus(format!("1,000 gets {place}"), figures.get, real.get, source, least);
        table.versus(format!("1,000 applies {place}"), figures.apply, real.apply, source, least);
    }
    table.versus("list of 10,000 over TLS", tls.list, real.list, source, 5.0);
    Ok(())
}

/// Measures a server.
pub(crate) async fn of(target: &Target) -> Result<Throughput, Failure> {
    let names: Vec<String> = (0..REQUESTS).map(|n| format!("created-{n}")).collect();
    target.create(client::config_map("warm", BYTES)).await?;
    let timer = Timer::start();
    for name in &names {
        target.create(client::config_map(name, BYTES)).await?;
    }
    let create = timer.elapsed().as_secs_f64();
    let timer = Timer::start();
    for name in &names {
        target.get(name).await?;
    }
    let get = timer.elapsed().as_secs_f64();
    let timer = Timer::start();
    for n in 0..REQUESTS {
        let name = format!("applied-{n}");
        target.apply(&name, client::config_map(&name, BYTES)).await?;
    }
    let apply = timer.elapsed().as_secs_f64();
    for n in 2 * REQUESTS + 1..LISTED {
        target.create(client::config_map(&format!("listed-{n}"), BYTES)).await?;
    }
    let mut lists = Vec::new();
    for _ in 0..LISTS {
        let timer = Timer::start();
        target.list().await?;
        lists.push(timer.elapsed().as_secs_f64());
    }
    Ok(Throughput { create, get, apply, list: median(&mut lists) })
}
