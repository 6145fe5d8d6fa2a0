//! Commands that stay and report.

use crate::kubectl::{Kubectl, words};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn get_watch_prints_what_is_there_and_each_change() {
    let Some(kubectl) = Kubectl::start("get_watch").await else { return };
    kubectl.ok("create configmap one --from-literal=key=1").await;
    let arguments = words(
        "get configmaps --watch --output-watch-events -o jsonpath='{.type} {.object.metadata.name} {.object.data.key}{\"\\n\"}'",
    );
    let mut child = kubectl.command(&arguments).stdout(Stdio::piped()).spawn().expect("kubectl can be run");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
    let mut next = async || lines.next_line().await.expect("kubectl can be read").unwrap_or_default();
    assert_eq!(next().await, "ADDED one 1");
    kubectl.ok("create configmap two --from-literal=key=2").await;
    assert_eq!(next().await, "ADDED two 2");
    kubectl.ok("patch configmap one --type=merge -p '{\"data\":{\"key\":\"3\"}}'").await;
    assert_eq!(next().await, "MODIFIED one 3");
    kubectl.ok("delete configmap two").await;
    assert_eq!(next().await, "DELETED two 2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn wait_ends_when_the_condition_comes() {
    let Some(kubectl) = Kubectl::start("wait_for_condition").await else { return };
    kubectl.ok("create -f deployment.yaml").await;
    let waiting =
        kubectl.command(&words("wait --for=condition=Available deployment/web --timeout=30s")).output();
    let status = r#"{"status":{"conditions":[{"type":"Available","status":"True"}]}}"#;
    let patch = format!("patch deployment web --subresource=status --type=merge -p '{status}'");
    let (waited, _) = tokio::join!(waiting, kubectl.ok(&patch));
    let waited = waited.expect("kubectl can be run");
    assert_eq!(String::from_utf8_lossy(&waited.stdout), "deployment.apps/web condition met\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn delete_waits_until_the_finalizer_is_gone() {
    let Some(kubectl) = Kubectl::start("delete_wait").await else { return };
    kubectl.ok("create configmap held").await;
    kubectl
        .ok("patch configmap held --type=merge -p '{\"metadata\":{\"finalizers\":[\"example.com/hold\"]}}'")
        .await;
    let deleting = kubectl.command(&words("delete configmap held --wait --timeout=30s")).output();
    let releasing = async {
        kubectl.ok("wait --for=jsonpath='{.metadata.deletionTimestamp}' configmap/held --timeout=30s").await;
        kubectl.ok("patch configmap held --type=merge -p '{\"metadata\":{\"finalizers\":null}}'").await;
    };
    let (deleted, ()) = tokio::join!(deleting, releasing);
    let deleted = deleted.expect("kubectl can be run");
    assert_eq!(String::from_utf8_lossy(&deleted.stdout), "configmap \"held\" deleted\n");
    assert_eq!(kubectl.ok("get configmaps -o name").await, "");
}
