//! Real programs and real figures: `parity` replays recorded answers, `bench` measures,
//! `crash` kills.

mod bench;
mod crash;
mod failure;
mod output;
mod parity;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Conformance and benchmark runs of the embedded server
#[derive(Parser)]
#[command(name = "orlop-conformance", about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Replay answers recorded from a real kube-apiserver
    Parity(parity::Args),
    /// Measure start, throughput, fan-out, memory and growth
    Bench(bench::Args),
    /// Kill a cluster that is kept in a directory, again and again, and see that nothing is lost
    Crash(crash::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Parity(args) => parity::run(&args).await,
        Command::Bench(args) => bench::run(&args).await,
        Command::Crash(args) => crash::run(&args).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::FAILURE
        }
    }
}
