//! Measurements in a process of their own.

use super::{memory, start};
use crate::failure::{Context as _, Failure};
use crate::output::data;
use serde_json::Value;
use tokio::process::Command;

/// What a probe measures.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Probe {
    /// Start of the first and further servers.
    Start,
    /// Memory of many objects.
    Memory,
}

/// Measures in this process and prints the figures as JSON.
pub(crate) async fn answer(probe: Probe) -> Result<(), Failure> {
    let figures = match probe {
        Probe::Start => start::probe().await?,
        Probe::Memory => memory::probe().await?,
    };
    data(figures);
    Ok(())
}

/// Starts this program as a probe and reads its figures.
pub(crate) async fn ask(probe: &str) -> Result<Value, Failure> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let output = Command::new(program)
        .args(["bench", "--probe", probe])
        .stderr(std::process::Stdio::inherit())
        .output()
        .await
        .context("cannot start a probe")?;
    serde_json::from_slice(&output.stdout).context(format_args!("the probe `{probe}` gave no figures"))
}
