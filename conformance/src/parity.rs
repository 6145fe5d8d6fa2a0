//! `parity`: answers recorded from a real kube-apiserver, replayed against the embedded one, with a ratchet.
//!
//! The corpus brings its own player; this command starts a server for it, chooses the chapters, and compares the
//! share of exact steps in each chapter with what was recorded in `parity-score.json`. A share never falls.

use crate::failure::{Context as _, Failure};
use crate::output::{data, say};
use orlop_cluster::{Cluster, User};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use tokio::process::Command;
use tokio::task::JoinSet;

const TOKEN: &str = "parity";
const HOME: &str = env!("CARGO_MANIFEST_DIR");

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The corpus: a directory with `parity.py` and `cases`
    #[arg(long, value_name = "DIR", default_value = "../shared/parity")]
    corpus: PathBuf,
    /// Only these chapters; the score is then only compared, not recorded
    #[arg(long, value_name = "NAME")]
    chapter: Vec<String>,
    /// Write the score if no chapter is worse than before
    #[arg(long)]
    record: bool,
    /// With --record, write the score even if it is worse
    #[arg(long, requires = "record")]
    force: bool,
    /// Where every step's difference is written, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Cases in parallel
    #[arg(long, default_value_t = 4)]
    jobs: u8,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let chapters = if args.chapter.is_empty() { all_chapters(&args.corpus)? } else { args.chapter.clone() };
    let report = args
        .json
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("orlop-parity-{}.json", std::process::id())));
    replay(args, &chapters, &report).await?;
    let text = std::fs::read(&report).context(format_args!("cannot read `{}`", report.display()))?;
    let played: Value = serde_json::from_slice(&text).context("the player's report is not JSON")?;
    if args.json.is_none() {
        let _ = std::fs::remove_file(&report);
    }
    let score = Score::of(&played);
    let path = Path::new(HOME).join("parity-score.json");
    let recorded = Score::load(&path)?;
    data(format_args!("exact {:.2} %, at least semantic {:.2} %", score.exact, score.semantic));
    let worse = score.below(&recorded);
    for line in &worse {
        say(format_args!("worse than recorded: {line}"));
    }
    if args.record && args.chapter.is_empty() && (worse.is_empty() || args.force) {
        score.save(&path)?;
        say(format_args!("recorded in `{}`", path.display()));
    } else if !worse.is_empty() {
        return Err(Failure::new("the server answers less like kube-apiserver than it did"));
    }
    Ok(())
}

/// The chapters that the corpus has cases for and the server is meant to pass.
fn all_chapters(corpus: &Path) -> Result<Vec<String>, Failure> {
    let cases = corpus.join("cases");
    let entries = std::fs::read_dir(&cases).context(format_args!("no corpus in `{}`", corpus.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut chapters: Vec<String> =
        names.filter_map(|name| Some(name.strip_suffix(".jsonl.gz")?.to_owned())).collect();
    chapters.sort();
    Ok(chapters)
}

/// Starts a server and lets the corpus's own player play; its table goes to stdout.
async fn replay(args: &Args, chapters: &[String], report: &Path) -> Result<(), Failure> {
    let cluster = Cluster::builder().server(|server| server.token(TOKEN, User::admin())).start();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let serving = cluster.serve(address).await.context("cannot serve the API")?;
    let mut player = Command::new("python3");
    player.arg(args.corpus.join("parity.py")).args(["replay", "--profile", "apiserver", "--token", TOKEN]);
    player.args(["--server", serving.url(), "--jobs", &args.jobs.to_string()]);
    player.arg("--json").arg(report).arg("--deviations").arg(Path::new(HOME).join("deviations.txt"));
    player.args(chapters.iter().flat_map(|chapter| ["--chapter", chapter]));
    let mut server = JoinSet::new();
    server.spawn(serving.run(std::future::pending()));
    let status = player.status().await.context("cannot run `python3`")?;
    // 1 says that cases failed, which the score is about; anything else is a player that did not play.
    match status.code() {
        Some(0 | 1) => Ok(()),
        _ => Err(Failure::new(format!("the player ended with {status}"))),
    }
}

/// Shares in percent.
#[derive(Default)]
struct Score {
    exact: f64,
    semantic: f64,
    /// Exact steps by chapter.
    chapters: BTreeMap<String, f64>,
}

impl Score {
    /// The score of a player's report.
    fn of(report: &Value) -> Self {
        let mut levels: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for case in report["cases"].as_array().into_iter().flatten() {
            let steps = case["steps"].as_array().into_iter().flatten().filter_map(Value::as_str);
            levels.entry(case["chapter"].as_str().unwrap_or_default()).or_default().extend(steps);
        }
        let all: Vec<&str> = levels.values().flatten().copied().collect();
        Self {
            exact: share(&all, &["exact"]),
            semantic: share(&all, &["exact", "semantic"]),
            chapters: levels
                .iter()
                .map(|(chapter, l)| ((*chapter).to_owned(), share(l, &["exact"])))
                .collect(),
        }
    }

    fn load(path: &Path) -> Result<Self, Failure> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).context(format_args!("cannot read `{}`", path.display())),
        };
        let value: Value =
            serde_json::from_str(&text).context(format_args!("`{}` is not JSON", path.display()))?;
        let number = |value: &Value| value.as_f64().unwrap_or_default();
        let chapters = value["chapters"].as_object().into_iter().flatten();
        Ok(Self {
            exact: number(&value["exact"]),
            semantic: number(&value["semantic"]),
            chapters: chapters.map(|(chapter, share)| (chapter.clone(), number(share))).collect(),
        })
    }

    fn save(&self, path: &Path) -> Result<(), Failure> {
        let chapters: Map<String, Value> =
            self.chapters.iter().map(|(chapter, share)| (chapter.clone(), json!(share))).collect();
        let value = json!({"exact": self.exact, "semantic": self.semantic, "chapters": chapters});
        std::fs::write(path, format!("{value:#}\n"))
            .context(format_args!("cannot write `{}`", path.display()))
    }

    /// Chapters in which this score is below another one.
    fn below(&self, other: &Self) -> Vec<String> {
        if self.chapters.is_empty() {
            return vec!["nothing was played".to_owned()];
        }
        let pairs = self
            .chapters
            .iter()
            .filter_map(|(chapter, share)| Some((chapter, share, other.chapters.get(chapter)?)));
        pairs
            .filter(|(_, now, before)| now < before)
            .map(|(chapter, now, before)| format!("{chapter}: {now:.2} % exact, recorded {before:.2} %"))
            .collect()
    }
}

/// The share of steps that have one of the levels, in percent, cut after two digits so that it can be compared.
fn share(steps: &[&str], levels: &[&str]) -> f64 {
    let hits = steps.iter().filter(|step| levels.contains(step)).count();
    if steps.is_empty() { 0.0 } else { (hits * 10_000 / steps.len()) as f64 / 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_never_falls() {
        let report = |steps: [&str; 2]| json!({"cases": [{"chapter": "crud", "steps": steps}]});
        let (good, bad) = (Score::of(&report(["exact", "exact"])), Score::of(&report(["exact", "semantic"])));
        assert_eq!(bad.below(&good), ["crud: 50.00 % exact, recorded 100.00 %"]);
        assert!(good.below(&bad).is_empty());
        assert_eq!((bad.exact, bad.semantic), (50.0, 100.0));
    }
}
