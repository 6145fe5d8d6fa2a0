//! Commands, their output and their exit codes.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn orlop(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orlop"));
    command.env("ORLOP_HOME", home).env_remove("KUBECONFIG").env_remove("ORLOP_TOKEN").stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    orlop(home).args(arguments).output().expect("the program can be started")
}

#[test]
fn the_demo_ends_by_itself() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let output = run(home.path(), &["demo"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in [
        "started",
        "`Shell`",
        "\"ADDED\"",
        "\"MODIFIED\"",
        "should be greater than or equal to 0",
        "\"DELETED\"",
    ] {
        assert!(shown.contains(part), "{part} is missing in\n{shown}");
    }
}

#[test]
fn without_a_cluster_the_commands_say_how_to_start_one() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for command in ["status", "kubeconfig", "down"] {
        let output = run(home.path(), &["cluster", command]);
        assert_eq!(output.status.code(), Some(4), "{command}");
        assert_eq!(
            text(&output.stderr),
            "error: no cluster is running\nhint: start one with `orlop cluster up --detach`\n"
        );
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn usage_errors_exit_with_2() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for arguments in [
        &["clustre"][..],
        &["cluster", "up", "--nodes=3"],
        &["cluster", "up", "--controllers=all"],
        &["cluster", "up", "--port=99999"],
    ] {
        assert_eq!(run(home.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_cluster_in_the_foreground_says_ready_and_ends_on_sigterm() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let kubeconfig = home.path().join("kc.yaml");
    let mut child = orlop(home.path())
        .args(["cluster", "up", "--port", "0", "--controllers=none", "--nodes=0", "--kubeconfig"])
        .arg(&kubeconfig)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut output = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("the program prints a line");
    assert!(line.starts_with("ready https://127.0.0.1:"), "{line}");
    let config = std::fs::read_to_string(&kubeconfig).expect("the kubeconfig is written");
    for part in ["client-certificate-data", "client-key-data", "certificate-authority-data", "token"] {
        assert!(config.contains(part), "{part} is missing in the kubeconfig");
    }
    let status = run(home.path(), &["cluster", "status"]);
    assert!(text(&status.stdout).contains(line.trim_start_matches("ready ").trim()));
    let down = run(home.path(), &["cluster", "down"]);
    assert!(down.status.success(), "{}", text(&down.stderr));
    assert!(child.wait().expect("the program ends").success());
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("the output ends");
    assert_eq!(rest, "", "stdout is one line");
    assert_eq!(run(home.path(), &["cluster", "status"]).status.code(), Some(4));
}

#[test]
fn a_detached_cluster_outlives_its_command() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let output = run(home.path(), &["cluster", "up", "--detach"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("ready https://"));
    let again = run(home.path(), &["cluster", "up", "--detach"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("a cluster is running"));
    assert!(text(&run(home.path(), &["cluster", "kubeconfig"]).stdout).contains("current-context"));
    assert!(run(home.path(), &["cluster", "down"]).status.success());
}
