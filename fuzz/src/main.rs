//! The command: each target runs in a process of its own, so that not even an overflown stack or an endless loop
//! ends the run without the input that did it.

use clap::Parser;
use orlop_clock::Clock;
use orlop_fuzz::driver::{self, Finding, Plan, Report, Until};
use orlop_fuzz::targets::{TARGETS, target};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

/// One input may take this long.
const HANG: Duration = Duration::from_secs(5);
/// How often the supervisor looks.
const LOOK: Duration = Duration::from_millis(500);

/// Mutated inputs against everything that reads what strangers send
#[derive(Parser)]
#[command(name = "orlop-fuzz", about)]
struct Args {
    /// One target, or `all`
    #[arg(default_value = "all")]
    target: String,
    /// How long each target runs
    #[arg(long, default_value_t = 60, conflicts_with = "inputs")]
    seconds: u64,
    /// How many inputs each target runs, instead of a time
    #[arg(long)]
    inputs: Option<u64>,
    /// What all inputs follow from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run the input in this file, and nothing else
    #[arg(long)]
    input: Option<PathBuf>,
    /// Where inputs are written that did what none may
    #[arg(long, default_value = "target/fuzz-found")]
    found: PathBuf,
    /// Run in this process and note each input in this file first
    #[arg(long, hide = true)]
    notes: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match (&args.input, &args.notes) {
        (Some(input), _) => again(&args.target, input),
        (None, Some(notes)) => work(&args, notes),
        (None, None) => supervise(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = writeln!(io::stderr(), "error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    format!("no target `{name}`\nhint: `all`, or one of {}", names.join(", "))
}

/// Runs one input that was found.
fn again(name: &str, input: &Path) -> Result<(), String> {
    let mut target = target(name).ok_or_else(|| unknown(name))?;
    let bytes =
        std::fs::read(input).map_err(|error| format!("cannot read `{}`: {error}", input.display()))?;
    let answer = driver::one(&mut *target, &bytes)?;
    let _ = writeln!(io::stdout(), "{answer}");
    Ok(())
}

/// Runs a target in this process. What was found goes to stderr after the input is noted.
fn work(args: &Args, notes: &Path) -> Result<(), String> {
    let mut target = target(&args.target).ok_or_else(|| unknown(&args.target))?;
    let notes = std::fs::File::create(notes).map_err(|error| error.to_string())?;
    let until = args.inputs.map_or(Until::Seconds(args.seconds), Until::Inputs);
    let plan = Plan { seed: args.seed, until };
    let mut note = Vec::new();
    let before = |number: u64, input: &[u8]| {
        note.clear();
        note.extend((number + 1).to_le_bytes());
        note.extend((input.len() as u64).to_le_bytes());
        note.extend(input);
        // A run that cannot take notes is still a run.
        let _ = notes.write_all_at(&note, 0);
    };
    match driver::run(&mut *target, plan, &Clock::system(), before) {
        Ok(Report { inputs, classes, elapsed }) => {
            let rate = inputs as f64 / elapsed.as_secs_f64().max(0.001);
            let _ = writeln!(
                io::stdout(),
                "{:16} {inputs:>9} inputs  {rate:>8.0}/s  {classes:>5} classes",
                args.target
            );
            Ok(())
        }
        Err(Finding { what, .. }) => Err(what),
    }
}

/// The number of the last input and the input.
fn noted(notes: &Path) -> (u64, Vec<u8>) {
    let bytes = std::fs::read(notes).unwrap_or_default();
    let number = |at: usize| {
        bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    let end = 16_usize.saturating_add(number(8) as usize);
    (number(0), bytes.get(16..end).unwrap_or_default().to_vec())
}

#[tokio::main(flavor = "current_thread")]
async fn supervise(args: &Args) -> Result<(), String> {
    let names: Vec<&str> = match args.target.as_str() {
        "all" => TARGETS.iter().map(|(name, _)| *name).collect(),
        name => TARGETS.iter().map(|(known, _)| *known).filter(|known| *known == name).collect(),
    };
    if names.is_empty() {
        return Err(unknown(&args.target));
    }
    std::fs::create_dir_all(&args.found).map_err(|error| format!("`{}`: {error}", args.found.display()))?;
    let mut found = 0;
    for name in names {
        let notes = args.found.join(format!("{name}.notes"));
        if let Err(what) = watch(args, name, &notes).await {
            found += 1;
            let input = args.found.join(format!("{name}-{}.input", args.seed));
            let (number, bytes) = noted(&notes);
            std::fs::write(&input, bytes).map_err(|error| format!("`{}`: {error}", input.display()))?;
            let _ = writeln!(
                io::stderr(),
                "error: {name}: input {number}: {what}\nhint: `cargo run --release -p orlop-fuzz -- {name} --input {}`",
                input.display()
            );
        }
        let _ = std::fs::remove_file(&notes);
    }
    if found == 0 { Ok(()) } else { Err(format!("{found} targets found something")) }
}

/// Runs a target in a process of its own, and ends it if one input takes too long.
async fn watch(args: &Args, name: &str, notes: &Path) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = tokio::process::Command::new(program);
    command.arg(name).args(["--seed", &args.seed.to_string()]).arg("--notes").arg(notes);
    match args.inputs {
        Some(inputs) => command.args(["--inputs", &inputs.to_string()]),
        None => command.args(["--seconds", &args.seconds.to_string()]),
    };
    let mut worker =
        command.stdin(Stdio::null()).kill_on_drop(true).spawn().map_err(|error| error.to_string())?;
    let (mut last, mut unmoved) = (0, Duration::ZERO);
    loop {
        if let Ok(ended) = tokio::time::timeout(LOOK, worker.wait()).await {
            return match ended {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(format!("ended with {status}")),
                Err(error) => Err(error.to_string()),
            };
        }
        let (number, _) = noted(notes);
        unmoved = if number == last { unmoved + LOOK } else { Duration::ZERO };
        last = number;
        // Before the first input the target is still being made.
        if number > 0 && unmoved > HANG {
            let _ = worker.kill().await;
            return Err(format!("takes longer than {} s", HANG.as_secs()));
        }
    }
}
