//! A program with client-go as a client: informers in JSON and protobuf, server-side apply, leader election, lost
//! history (`clients/go`).

use crate::kubectl::serve;
use crate::program::GO_CLIENT;
use orlop_apiserver::Limits;
use orlop_cluster::Cluster;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::task::JoinSet;

/// How many events the server of this test keeps.
const HISTORY: usize = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn client_go_finds_a_kubernetes() {
    let Some(program) = GO_CLIENT.get("client_go_finds_a_kubernetes") else { return };
    let limits = Limits { events_max: HISTORY, ..Limits::default() };
    let cluster = Cluster::builder().server(|server| server.limits(limits)).start();
    let mut server = JoinSet::new();
    let (_, kubeconfig) = serve(&cluster, &mut server).await;
    let home = TempDir::new().expect("a temporary directory can be made");
    std::fs::write(home.path().join("kubeconfig"), kubeconfig).expect("a file can be written");
    let output = Command::new(program)
        .env_clear()
        .env("HOME", home.path())
        .env("KUBECONFIG", home.path().join("kubeconfig"))
        .env("ORLOP_HISTORY", HISTORY.to_string())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("the program can be run");
    let said = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{why}");
    assert_eq!(said.lines().filter(|line| line.starts_with("ok ")).count(), 36, "{said}");
}
