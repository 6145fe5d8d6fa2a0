//! helm waits for what its hooks start.

use crate::kubectl::{Kubectl, words};
use crate::program::{HELM_3, HELM_4, Program};

/// What a finished Job says.
const DONE: &str = r#"{"status":{"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T00:00:01Z","succeeded":1,"conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}}"#;

/// Upgrades a release whose hook is a Job, and finishes that Job as its controller does.
async fn upgrade(test: &str, helm: &'static Program) {
    let Some(helm) = helm.get(test) else { return };
    let Some(kubectl) = Kubectl::start(test).await else { return };
    let run = async |line: &str| {
        let output = kubectl.other(helm, &words(line)).output().await.expect("helm can be run");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run("install one shop").await;
    let finishing = async {
        kubectl.ok("wait --for=create job/one-migrate --timeout=30s").await;
        kubectl.ok(&format!("patch job one-migrate --subresource=status --type=merge -p '{DONE}'")).await;
    };
    tokio::join!(run("upgrade one shop --set replicas=3 --timeout 30s"), finishing);
    assert_eq!(kubectl.ok("get deployment one -o jsonpath='{.spec.replicas}'").await, "3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn helm_4_waits_for_its_hook() {
    upgrade("helm_4_waits_for_its_hook", &HELM_4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn helm_3_waits_for_its_hook() {
    upgrade("helm_3_waits_for_its_hook", &HELM_3).await;
}
