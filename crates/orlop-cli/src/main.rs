//! The `orlop` command: flags, terminal and processes; no logic that a library user could want.

mod cluster;
mod demo;
mod shell;

use clap::{Parser, Subcommand};
use shell::Shell;
use std::process::ExitCode;

/// orlop, the operator SDK for Rust
#[derive(Parser)]
#[command(name = "orlop", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a server, define a kind, watch a change, and stop
    Demo,
    /// Run an embedded Kubernetes on this machine
    #[command(subcommand)]
    Cluster(cluster::Command),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let shell = Shell::new();
    let result = match cli.command {
        Command::Demo => demo::run(&shell),
        Command::Cluster(command) => cluster::run(command, &shell),
    };
    match result.and_then(|()| shell.finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => Shell::fail(&failure),
    }
}
