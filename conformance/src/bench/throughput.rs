//! Sequential requests on one connection.

use super::client;
use super::process::Cluster;
use super::table::Table;
use super::timer::Timer;
use crate::failure::{Context as _, Failure};
use kube::Client;

const REQUESTS: usize = 1000;
const BYTES: usize = 100;

/// Seconds for 1,000 requests of each sort.
#[derive(Clone, Copy)]
pub(crate) struct Throughput {
    pub(crate) create: f64,
    pub(crate) get: f64,
    pub(crate) apply: f64,
}

pub(crate) async fn measure(table: &mut Table, real: Throughput) -> Result<(), Failure> {
    let cluster = Cluster::start().await?;
    let tls = of(&cluster.client).await?;
    let in_process = of(&orlop_cluster::Cluster::start().client()).await?;
    for (where_, figures, least) in [("over TLS", tls, 5.0), ("in-process", in_process, 20.0)] {
        table.versus(format!("1,000 creates {where_}"), figures.create, real.create, least);
        table.versus(format!("1,000 gets {where_}"), figures.get, real.get, least);
        table.versus(format!("1,000 applies {where_}"), figures.apply, real.apply, least);
    }
    Ok(())
}

/// Measures a server through a client.
pub(crate) async fn of(client: &Client) -> Result<Throughput, Failure> {
    let names: Vec<String> = (0..REQUESTS).map(|n| format!("created-{n}")).collect();
    let warm = client::create(client, client::config_map("warm", BYTES)).await;
    warm.context("the server does not create")?;
    let timer = Timer::start();
    for name in &names {
        client::create(client, client::config_map(name, BYTES))
            .await
            .context("the server does not create")?;
    }
    let create = timer.elapsed().as_secs_f64();
    let timer = Timer::start();
    for name in &names {
        client::get(client, name).await.context("the server does not get")?;
    }
    let get = timer.elapsed().as_secs_f64();
    let timer = Timer::start();
    for n in 0..REQUESTS {
        let name = format!("applied-{n}");
        let body = client::config_map(&name, BYTES);
        client::apply(client, &name, body).await.context("the server does not apply")?;
    }
    Ok(Throughput { create, get, apply: timer.elapsed().as_secs_f64() })
}
