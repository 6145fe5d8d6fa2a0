//! Whether requests cost the same among many objects as among few.

use super::client;
use super::table::{Bar, Table};
use super::timer::{Timer, median};
use crate::failure::{Context as _, Failure};
use http_body_util::BodyExt as _;
use kube::Client;

const FEW: usize = 1_000;
const MANY: usize = 100_000;
const READINGS: usize = 1_000;
const BYTES: usize = 100;

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    let client = orlop_cluster::Cluster::start().client();
    fill(&client, 0..FEW).await?;
    let few = Costs::of(&client, "few").await?;
    fill(&client, FEW..MANY).await?;
    let many = Costs::of(&client, "many").await?;
    let rows = [
        ("create", few.create, many.create),
        ("get", few.get, many.get),
        ("watch: open, and see one write", few.watch, many.watch),
    ];
    for (what, few, many) in rows {
        let name = format!("{what}: {few:.1} µs among 1,000 objects, {many:.1} µs among 100,000");
        table.row(name, many / few, "×", Bar::AtMost(1.2));
    }
    Ok(())
}

async fn fill(client: &Client, numbers: std::ops::Range<usize>) -> Result<(), Failure> {
    for n in numbers {
        let body = client::config_map(&format!("map-{n}"), BYTES);
        client::create(client, body).await.context("the server does not create")?;
    }
    Ok(())
}

/// Median microseconds.
struct Costs {
    create: f64,
    get: f64,
    watch: f64,
}

impl Costs {
    async fn of(client: &Client, prefix: &str) -> Result<Self, Failure> {
        let (mut create, mut get, mut watch) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..READINGS {
            let body = client::config_map(&format!("{prefix}-{n}"), BYTES);
            let timer = Timer::start();
            client::create(client, body).await.context("the server does not create")?;
            create.push(timer.ms() * 1e3);
            let timer = Timer::start();
            client::get(client, &format!("map-{}", n % FEW)).await.context("the server does not get")?;
            get.push(timer.ms() * 1e3);
        }
        // Not from a list: reading everything would leave nothing of the rest in the processor's cache.
        let mut version = client::version(client).await.context("the server does not list")?;
        for n in 0..READINGS {
            let body = client::config_map(&format!("{prefix}-watched-{n}"), BYTES);
            let timer = Timer::start();
            let mut events = client::watch(client, &version).await.context("the server does not watch")?;
            let created = client::create(client, body).await.context("the server does not create")?;
            let event = events.frame().await;
            watch.push(timer.ms() * 1e3);
            event.ok_or_else(|| Failure::new("a watch ended early"))?.context("a watch failed")?;
            version = client::version_of(&created);
        }
        Ok(Self { create: median(&mut create), get: median(&mut get), watch: median(&mut watch) })
    }
}
