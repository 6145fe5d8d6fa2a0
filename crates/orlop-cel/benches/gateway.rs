//! How long it takes to compile the rules of definitions and to judge objects by them, beside the Go original.
//!
//! `cargo bench -p orlop-cel -- CRDS OBJECTS [GO]`: a directory of definitions as YAML, a file with a JSON list of
//! `{"kind", "sent"}`, and the program of `tools/celbench`, which then runs in turns with this one. Without
//! arguments there is nothing to measure.

use orlop_cel::Budget;
use orlop_cel::rules::{Compiled, compile, validate};
use orlop_schema::structural::{Schema, default};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// How often each thing is measured in a turn; the median counts.
const ROUNDS: usize = 21;
/// How often both programs take their turn.
const TURNS: usize = 5;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let (crds, objects, go) = match args.as_slice() {
        [crds, objects] => (crds, objects, None),
        [crds, objects, go] => (crds, objects, Some(go)),
        _ => return ExitCode::SUCCESS,
    };
    let mut out = std::io::stdout();
    for _ in 0..TURNS {
        let ours = measure(crds, objects);
        let _ = writeln!(out, "orlop  {ours}");
        let Some(go) = go else { continue };
        let rounds = ROUNDS.to_string();
        let run = Command::new(go).args(["-crds", crds, "-objects", objects, "-rounds", &rounds]).output();
        let answer = run.ok().and_then(|run| serde_json::from_slice::<Value>(&run.stdout).ok());
        let Some(theirs) = answer else {
            let _ = writeln!(std::io::stderr(), "error: `{go}` did not answer");
            return ExitCode::FAILURE;
        };
        let ratio = |what: &str| theirs[what].as_f64().unwrap_or(0.0) / ours[what].as_f64().unwrap_or(1.0);
        let (compile, evaluate) = (ratio("compile_us"), ratio("evaluate_us"));
        let _ = writeln!(out, "cel-go {theirs}\ncompile {compile:.1} ×, evaluate {evaluate:.1} ×");
    }
    ExitCode::SUCCESS
}

fn measure(crds: &str, objects: &str) -> Value {
    let mut schemas = schemas(Path::new(crds));
    let text = std::fs::read_to_string(objects).expect("the objects can be read");
    let rows: Vec<Value> = serde_json::from_str(&text).expect("the objects are a list");
    let mut sent = Vec::new();
    for row in rows {
        let kind = row["kind"].as_str().unwrap_or_default().to_owned();
        let mut object = row["sent"].clone();
        default::default(&mut object, schemas.get(&kind).expect("every object has a definition"));
        sent.push((kind, object));
    }
    schemas.retain(|kind, _| sent.iter().any(|(used, _)| used == kind));
    let compile_all = || -> BTreeMap<&str, (&Schema, Compiled)> {
        let compiled = |(kind, schema)| Some((String::as_str(kind), (schema, compile(schema)?)));
        schemas.iter().filter_map(compiled).collect()
    };
    let compile_us = median(|| drop(black_box(compile_all())));
    let compiled = compile_all();
    let refuse = || {
        let refused = |(kind, object): &&(String, Value)| {
            compiled.get(kind.as_str()).is_some_and(|(schema, rules)| {
                !validate(rules, schema, object, None, &mut Budget::object()).errors.is_empty()
            })
        };
        sent.iter().filter(refused).count()
    };
    let evaluate_us = median(|| {
        black_box(refuse());
    });
    let rules: usize = schemas.values().map(count).sum();
    json!({"rules": rules, "objects": sent.len(), "refused": refuse(), "compile_us": compile_us, "evaluate_us": evaluate_us})
}

/// The v1 schemas of the definitions in a directory, by kind.
fn schemas(directory: &Path) -> BTreeMap<String, Schema> {
    let files = std::fs::read_dir(directory).expect("the definitions can be listed");
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let mut schemas = BTreeMap::new();
    for path in paths.filter(|path| path.extension().is_some_and(|end| end == "yaml")) {
        let text = std::fs::read_to_string(&path).expect("a definition can be read");
        let Ok(definition) = serde_saphyr::from_str::<Value>(&text) else { continue };
        let versions = definition["spec"]["versions"].as_array();
        let version = versions.into_iter().flatten().find(|version| version["name"] == "v1");
        if let (Some(kind), Some(version)) = (definition["spec"]["names"]["kind"].as_str(), version) {
            schemas.insert(kind.to_owned(), Schema::parse(&version["schema"]["openAPIV3Schema"]));
        }
    }
    schemas
}

fn count(schema: &Schema) -> usize {
    schema.rules.len() + schema.children().map(count).sum::<usize>()
}

/// The median time of a few rounds in microseconds.
#[expect(clippy::disallowed_methods, reason = "a stopwatch reads the real clock")]
fn median(mut work: impl FnMut()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e6
    };
    let mut rounds: Vec<f64> = (0..ROUNDS).map(round).collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2].round()
}
