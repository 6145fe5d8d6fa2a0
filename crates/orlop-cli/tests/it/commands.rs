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
        "says ADDED",
        "says MODIFIED",
        "should be greater than or equal to 0",
        "says DELETED",
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

#[test]
fn a_number_of_another_process_is_not_taken_for_a_cluster() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let state = format!(
        r#"{{"url": "https://127.0.0.1:1", "pid": {}, "kubeconfig": "/nowhere"}}"#,
        std::process::id()
    );
    std::fs::write(home.path().join("cluster.json"), state).expect("the file can be written");
    let down = run(home.path(), &["cluster", "down"]);
    assert_eq!(down.status.code(), Some(4), "this test is still alive, and no cluster runs");
}

#[test]
fn two_that_start_at_once_are_one_cluster() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let start = || {
        let mut command = orlop(home.path());
        command.args(["cluster", "up", "--detach"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program can be started")
    };
    let outputs = [start(), start()].map(|child| child.wait_with_output().expect("the program ends"));
    let started = outputs.iter().filter(|output| output.status.success()).count();
    assert_eq!(started, 1, "{outputs:?}");
    assert!(run(home.path(), &["cluster", "down"]).status.success());
}

#[test]
fn a_kubeconfig_of_somebody_else_is_not_overwritten() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let path = home.path().join("config");
    std::fs::write(&path, "kind: Config\nusers: [{name: precious}]\n").expect("the file can be written");
    let arguments = ["cluster", "up", "--detach", "--kubeconfig", path.to_str().expect("the path is text")];
    let refused = run(home.path(), &arguments);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("exists and is not from orlop"), "{}", text(&refused.stderr));
    assert!(std::fs::read_to_string(&path).expect("it is there").contains("precious"));
    std::fs::write(&path, "").expect("the file can be written");
    for _ in 0..2 {
        let output = run(home.path(), &arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(run(home.path(), &["cluster", "down"]).status.success());
    }
}
