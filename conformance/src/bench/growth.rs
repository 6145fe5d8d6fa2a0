//! Whether requests cost the same among many objects as among few.

use super::client;
use super::table::{Bar, Table};
use super::timer::{Timer, median};
use crate::failure::{Context as _, Failure};
use http_body_util::BodyExt as _;
use kube::Client;

const FEW: usize = 1_000;
const MANY: usize = 100_000;
/// Both servers are measured in turns, so that whatever else the machine does meets both.
const ROUNDS: usize = 40;
const READINGS_PER_ROUND: usize = 50;
const BYTES: usize = 100;

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    let mut few = Readings::among(FEW).await?;
    let mut many = Readings::among(MANY).await?;
    for round in 0..ROUNDS {
        few.take(round).await?;
        many.take(round).await?;
    }
    let rows = [
        ("create", &mut few.create, &mut many.create),
        ("get", &mut few.get, &mut many.get),
        ("watch: open, and see one write", &mut few.watch, &mut many.watch),
    ];
    for (what, few, many) in rows {
        let (few, many) = (median(few), median(many));
        let name = format!("{what}: {few:.1} µs among 1,000 objects, {many:.1} µs among 100,000");
        table.row(name, many / few, "×", Bar::AtMost(1.2));
    }
    Ok(())
}

/// A server with objects in it, and the microseconds that requests to it took.
struct Readings {
    client: Client,
    create: Vec<f64>,
    get: Vec<f64>,
    watch: Vec<f64>,
}

impl Readings {
    async fn among(objects: usize) -> Result<Self, Failure> {
        let client = orlop_cluster::Cluster::start().client();
        for n in 0..objects {
            create(&client, &format!("map-{n}")).await?;
        }
        Ok(Self { client, create: Vec::new(), get: Vec::new(), watch: Vec::new() })
    }

    /// Takes one round of readings. What a round creates is deleted after it: few stay few.
    async fn take(&mut self, round: usize) -> Result<(), Failure> {
        let client = &self.client;
        let name = |n: usize| format!("round-{round}-{n}");
        let mut version = String::new();
        for n in 0..READINGS_PER_ROUND {
            let timer = Timer::start();
            version = create(client, &name(n)).await?;
            self.create.push(timer.ms() * 1e3);
            let timer = Timer::start();
            client::get(client, &format!("map-{n}")).await.context("the server does not get")?;
            self.get.push(timer.ms() * 1e3);
        }
        for n in READINGS_PER_ROUND..READINGS_PER_ROUND * 2 {
            let timer = Timer::start();
            let mut events = client::watch(client, &version).await.context("the server does not watch")?;
            version = create(client, &name(n)).await?;
            let event = events.frame().await;
            self.watch.push(timer.ms() * 1e3);
            event.ok_or_else(|| Failure::new("a watch ended early"))?.context("a watch failed")?;
        }
        for n in 0..READINGS_PER_ROUND * 2 {
            client::delete(client, &name(n)).await.context("the server does not delete")?;
        }
        Ok(())
    }
}

/// Creates a ConfigMap and gives its version.
async fn create(client: &Client, name: &str) -> Result<String, Failure> {
    let created = client::create(client, client::config_map(name, BYTES)).await;
    Ok(client::version_of(&created.context("the server does not create")?))
}
