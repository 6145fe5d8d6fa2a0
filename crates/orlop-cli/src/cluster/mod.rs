//! `orlop cluster`: an embedded Kubernetes on a port of this machine.

mod state;
mod up;

use crate::shell::{EXIT_UNREACHABLE, Failure, Shell};
use clap::Subcommand;
use state::State;
use std::path::PathBuf;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start a cluster; in the foreground unless --detach is given
    Up(up::Args),
    /// Say whether a cluster runs, and where
    Status,
    /// Print the kubeconfig of the running cluster
    Kubeconfig,
    /// Stop the running cluster
    Down,
}

pub(crate) fn run(command: Command, shell: &Shell) -> Result<(), Failure> {
    match command {
        Command::Up(args) => up::run(&args, shell),
        Command::Status => status(shell),
        Command::Kubeconfig => kubeconfig(shell),
        Command::Down => down(shell),
    }
}

fn running() -> Result<State, Failure> {
    State::running()?.ok_or_else(|| {
        Failure::new("no cluster is running")
            .hint("start one with `orlop cluster up --detach`")
            .code(EXIT_UNREACHABLE)
    })
}

fn status(shell: &Shell) -> Result<(), Failure> {
    let state = running()?;
    shell.data(format_args!("running {} (pid {})", state.url, state.pid));
    shell.say(format_args!("kubeconfig: {}", state.kubeconfig.display()));
    Ok(())
}

fn kubeconfig(shell: &Shell) -> Result<(), Failure> {
    let path: PathBuf = running()?.kubeconfig;
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::new(format!("cannot read `{}`", path.display())).because(error))?;
    shell.data(text.trim_end());
    Ok(())
}

fn down(shell: &Shell) -> Result<(), Failure> {
    let state = running()?;
    state.stop()?;
    shell.say(format_args!("stopped {}", state.url));
    Ok(())
}
