//! Sessions: commands and what they print, as one would see them on a terminal.
//!
//! A line `$ …` is a command (`kubectl` is left out; `helm …` is helm, `timeout N …` is ended after N seconds); the lines up to the next one are its output: stdout, then
//! stderr, then `(exit N)` unless it succeeded. `[..]` stands for anything in a line, a line `...` for any lines,
//! `[URL]` for the server. A line `# …` before a command is a comment. With `ORLOP_RECORD=1` a session that
//! differs is rewritten with what was printed. With `ORLOP_KUBECONFIG` it is played against that cluster, which is
//! how the sessions were compared with a real kube-apiserver.

use crate::kubectl::{Kubectl, words};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;

/// Plays a session against a cluster of its own.
pub(crate) async fn play(name: &str) {
    play_with(name, None).await;
}

/// Plays a session in which `helm` is that program.
pub(crate) async fn play_with(name: &str, helm: Option<&Path>) {
    let Some(kubectl) = Kubectl::start(name).await else { return };
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/sessions/{name}.session"));
    let text = std::fs::read_to_string(&path).expect("a session has its file");
    let mut recorded = String::new();
    let mut differences = String::new();
    for step in steps(&text) {
        let printed = run(&kubectl, helm, step.command).await.replace(&kubectl.url, "[URL]");
        let expected: Vec<&str> = step.output.trim_end().lines().collect();
        let actual: Vec<&str> = printed.trim_end().lines().collect();
        let matched = lines_match(&expected, &actual);
        let keep = if matched { step.output.trim_end() } else { printed.trim_end() };
        let _ = write!(
            recorded,
            "{}$ {}\n{keep}{}",
            step.comment,
            step.command,
            if keep.is_empty() { "\n" } else { "\n\n" }
        );
        if !matched {
            let _ = writeln!(
                differences,
                "$ {}\n--- expected\n{}\n--- printed\n{printed}",
                step.command,
                step.output.trim_end()
            );
        }
    }
    if differences.is_empty() {
        return;
    }
    if std::env::var_os("ORLOP_RECORD").is_some() {
        std::fs::write(&path, recorded.trim_end().to_owned() + "\n").expect("a session can be written");
        return;
    }
    panic!("session `{name}` went otherwise:\n{differences}");
}

struct Step<'a> {
    comment: String,
    command: &'a str,
    output: String,
}

fn steps(text: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut comment = String::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { comment: std::mem::take(&mut comment), command, output: String::new() });
        } else if line.starts_with("# ") {
            comment.push_str(line);
            comment.push('\n');
        } else if let Some(step) = steps.last_mut() {
            // What looks like a comment but stands before no command was printed.
            step.output.push_str(&std::mem::take(&mut comment));
            step.output.push_str(line);
            step.output.push('\n');
        }
    }
    steps
}

/// Runs a command and gives what it prints.
async fn run(kubectl: &Kubectl, helm: Option<&Path>, line: &str) -> String {
    let arguments = words(line);
    match (arguments.first().map(String::as_str), helm) {
        (Some("helm"), Some(helm)) => {
            printed(&kubectl.other(helm, &arguments[1..]).output().await.expect("helm can be run"))
        }
        (Some("timeout"), _) => {
            let seconds = arguments.get(1).and_then(|word| word.parse().ok()).expect("timeout has a number");
            printed(&ended_after(kubectl.command(&arguments[2..]), Duration::from_secs(seconds)).await)
        }
        _ => printed(&kubectl.run(&arguments).await),
    }
}

/// What a command printed until it was ended.
async fn ended_after(mut command: Command, time: Duration) -> Output {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kubectl can be run");
    if tokio::time::timeout(time, child.wait()).await.is_err() {
        child.start_kill().expect("kubectl can be ended");
    }
    child.wait_with_output().await.expect("kubectl can be read")
}

fn printed(output: &Output) -> String {
    let mut text = String::new();
    for stream in [&output.stdout, &output.stderr] {
        text.push_str(&String::from_utf8_lossy(stream));
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if !output.status.success() {
        let _ = writeln!(text, "(exit {})", output.status.code().unwrap_or(-1));
    }
    text
}

/// Whether lines match a pattern in which a line `...` stands for any number of lines.
fn lines_match(pattern: &[&str], lines: &[&str]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((&"...", rest)) => (0..=lines.len()).any(|skipped| lines_match(rest, &lines[skipped..])),
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, others)| line_matches(first, line.trim_end()) && lines_match(rest, others)),
    }
}

/// Whether a line matches a pattern in which `[..]` stands for any text.
fn line_matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.trim_end().split("[..]");
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(before) = last.replace(part) {
            let Some((_, after)) = rest.split_once(before) else { return false };
            rest = after;
        }
    }
    last.map_or(rest.is_empty(), |end| rest.ends_with(end))
}

#[test]
fn patterns_match_what_they_stand_for() {
    let cases = [
        ("a", "a", true),
        ("a", "ab", false),
        ("a[..]", "abc", true),
        ("[..]c", "abc", true),
        ("a[..]b[..]c", "a1b2c", true),
        ("a[..]b[..]c", "a1c", false),
        ("[..]", "", true),
        ("a\n...\nd", "a\nb\nc\nd", true),
        ("a\n...\nd", "a\nb\nc", false),
        ("...", "", true),
    ];
    for (pattern, text, matches) in cases {
        let (pattern_lines, lines): (Vec<_>, Vec<_>) = (pattern.lines().collect(), text.lines().collect());
        let single = pattern == "[..]" && text.is_empty();
        assert_eq!(single || lines_match(&pattern_lines, &lines), matches, "{pattern:?} {text:?}");
    }
}
