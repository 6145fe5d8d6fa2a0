//! Whether requests cost the same among many objects as among few.

use super::client::{self, Target};
use super::table::{Bar, Table};
use super::timer::{Timer, median};
use crate::failure::Failure;
use orlop_apiserver::{ApiServer, User};

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
    target: Target,
    create: Vec<f64>,
    get: Vec<f64>,
    watch: Vec<f64>,
}

impl Readings {
    async fn among(objects: usize) -> Result<Self, Failure> {
        let target = Target::Service(ApiServer::builder().build().service_as(User::admin()));
        for n in 0..objects {
            create(&target, &format!("map-{n}")).await?;
        }
        Ok(Self { target, create: Vec::new(), get: Vec::new(), watch: Vec::new() })
    }

    /// Takes one round of readings. What a round creates is deleted after it: few stay few.
    async fn take(&mut self, round: usize) -> Result<(), Failure> {
        let target = &self.target;
        let name = |n: usize| format!("round-{round}-{n}");
        let mut version = String::new();
        for n in 0..READINGS_PER_ROUND {
            let timer = Timer::start();
            version = create(target, &name(n)).await?;
            self.create.push(timer.ms() * 1e3);
            let timer = Timer::start();
            target.get(&format!("map-{n}")).await?;
            self.get.push(timer.ms() * 1e3);
        }
        for n in READINGS_PER_ROUND..READINGS_PER_ROUND * 2 {
            let timer = Timer::start();
            let mut events = target.watch(&version).await?;
            version = create(target, &name(n)).await?;
            events.next().await?;
            self.watch.push(timer.ms() * 1e3);
        }
        for n in 0..READINGS_PER_ROUND * 2 {
            target.delete(&name(n)).await?;
        }
        Ok(())
    }
}

/// Creates a ConfigMap and gives its version.
async fn create(target: &Target, name: &str) -> Result<String, Failure> {
    Ok(client::version_of(&target.create(client::config_map(name, BYTES)).await?))
}
