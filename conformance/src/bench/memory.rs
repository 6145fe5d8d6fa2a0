//! What objects cost in memory.

use super::client::{self, Target};
use super::table::{Bar, Table};
use super::{probe, process};
use crate::failure::Failure;
use orlop_apiserver::{ApiServer, User};
use orlop_clock::{Clock, ManualClock, SignedDuration};
use serde_json::{Value, json};

const OBJECTS: usize = 100_000;
const BYTES: usize = 1024;
/// Longer than the server keeps history.
const HISTORY: SignedDuration = SignedDuration::from_secs(80);

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    let figures = probe::ask("memory").await?;
    let number = |name: &str| figures[name].as_f64().unwrap_or(f64::NAN);
    table.row("100,000 ConfigMaps of 1 KiB: their JSON", number("json") / 1e6, "MB", Bar::None);
    table.row("growth of resident memory", number("growth") / 1e6, "MB", Bar::None);
    table.row("growth relative to the JSON", number("growth") / number("json"), "×", Bar::AtMost(2.5));
    Ok(())
}

/// Figures of this process.
pub(crate) async fn probe() -> Result<Value, Failure> {
    let clock = ManualClock::new(Clock::system().now());
    let server = ApiServer::builder().clock(clock.clone().into()).build();
    let target = Target::Service(server.service_as(User::admin()));
    target.create(client::config_map("warm", BYTES)).await?;
    let before = process::rss("self");
    let mut json_bytes = 0;
    for n in 0..OBJECTS {
        let body = client::config_map(&format!("map-{n}"), BYTES);
        json_bytes += target.create(body).await?.len();
    }
    // History is forgotten at the next write after its time.
    clock.advance(HISTORY);
    target.create(client::config_map("last", BYTES)).await?;
    let growth = process::rss("self").saturating_sub(before);
    Ok(json!({"json": json_bytes, "growth": growth}))
}
