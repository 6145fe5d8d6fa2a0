//! Pods: what their containers are doing, in one word.

use super::age;
use super::cell::{View, at, text_at};
use serde_json::{Value, json};

/// The cells of a pod.
pub(super) fn cells(view: &View<'_>) -> Vec<Value> {
    let summary = Summary::of(view);
    let or_none = |text: &str| Value::from(if text.is_empty() { "<none>" } else { text });
    // The single address counts if both are given and differ.
    let ip = match view.text("status.podIP") {
        "" => view.items("status.podIPs").first().map_or("", |first| text_at(first, "ip")),
        ip => ip,
    };
    vec![
        view.text("metadata.name").into(),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.clone().into(),
        summary.restarts_text(view).into(),
        view.age("metadata.creationTimestamp").into(),
        or_none(ip),
        or_none(view.text("spec.nodeName")),
        or_none(view.text("status.nominatedNodeName")),
        readiness_gates(view).into(),
    ]
}

/// The conditions of a pod's row: whether the pod is done.
pub(super) fn conditions(view: &View<'_>) -> Option<Value> {
    let (reason, message) = match view.text("status.phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

#[derive(Default)]
struct Summary {
    ready: usize,
    total: usize,
    reason: String,
    restarts: i64,
    /// When a container was last found dead, in nanoseconds since 1970.
    restarted: Option<i128>,
}

impl Summary {
    fn of(view: &View<'_>) -> Self {
        let reason = match (view.text("status.reason"), is_gated(view)) {
            (_, true) => "SchedulingGated",
            ("", false) => view.text("status.phase"),
            (reason, false) => reason,
        };
        let init = view.items("spec.initContainers");
        let mut summary = Self {
            total: view.items("spec.containers").len() + init.iter().filter(|c| restarts_always(c)).count(),
            reason: reason.to_owned(),
            ..Self::default()
        };
        let mut sidecars = (0, None);
        let initializing = summary.add_init_containers(view, init, &mut sidecars);
        if !initializing || view.is("Initialized") {
            (summary.restarts, summary.restarted) = sidecars;
            summary.add_containers(view);
        }
        let is_terminal = matches!(view.text("status.phase"), "Succeeded" | "Failed");
        if view.is_deleting() && view.text("status.reason") == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if view.is_deleting() && !is_terminal {
            "Terminating".clone_into(&mut summary.reason);
        }
        summary
    }

    /// Goes through the init containers up to one that has not done its part; tells whether there is one.
    fn add_init_containers(
        &mut self,
        view: &View<'_>,
        specs: &[Value],
        sidecars: &mut (i64, Option<i128>),
    ) -> bool {
        for (index, status) in view.items("status.initContainerStatuses").iter().enumerate() {
            let is_sidecar =
                specs.iter().rfind(|spec| spec["name"] == status["name"]).is_some_and(restarts_always);
            self.count_restarts(status);
            if is_sidecar {
                sidecars.0 += restart_count(status);
                sidecars.1 = sidecars.1.max(last_finished(status));
            }
            let terminated = present(status, "state.terminated");
            if terminated.is_some_and(|end| exit_code(end) == 0) {
                continue;
            }
            if is_sidecar && status["started"] == true {
                self.ready += usize::from(status["ready"] == true);
                continue;
            }
            let waiting = text_at(status, "state.waiting.reason");
            let why = match terminated {
                Some(end) => end_reason(end),
                None if !waiting.is_empty() && waiting != "PodInitializing" => waiting.to_owned(),
                None => format!("{index}/{}", specs.len()),
            };
            self.reason = format!("Init:{why}");
            return true;
        }
        false
    }

    fn add_containers(&mut self, view: &View<'_>) {
        let mut has_running = false;
        let mut failure = None;
        for status in view.items("status.containerStatuses").iter().rev() {
            self.count_restarts(status);
            let waiting = text_at(status, "state.waiting.reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(end) = present(status, "state.terminated") {
                self.reason = end_reason(end);
                if exit_code(end) != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if status["ready"] == true && present(status, "state.running").is_some() {
                has_running = true;
                self.ready += 1;
            }
        }
        if self.reason != "Completed" {
            return;
        }
        let is_ready =
            view.items("status.conditions").iter().any(|c| c["type"] == "Ready" && c["status"] == "True");
        if has_running && is_ready {
            "Running".clone_into(&mut self.reason);
        } else if let Some(failure) = failure {
            self.reason = failure;
        } else if has_running {
            "NotReady".clone_into(&mut self.reason);
        }
    }

    fn count_restarts(&mut self, status: &Value) {
        self.restarts += restart_count(status);
        self.restarted = self.restarted.max(last_finished(status));
    }

    fn restarts_text(&self, view: &View<'_>) -> String {
        match self.restarted {
            Some(time) if self.restarts != 0 => {
                format!("{} ({} ago)", self.restarts, age::human(view.now_nanos - time))
            }
            _ => self.restarts.to_string(),
        }
    }
}

fn is_gated(view: &View<'_>) -> bool {
    let mut conditions = view.items("status.conditions").iter();
    conditions.any(|c| c["type"] == "PodScheduled" && c["reason"] == "SchedulingGated")
}

fn restarts_always(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn restart_count(status: &Value) -> i64 {
    status["restartCount"].as_i64().unwrap_or_default()
}

fn last_finished(status: &Value) -> Option<i128> {
    age::nanos(text_at(status, "lastState.terminated.finishedAt"))
}

fn exit_code(end: &Value) -> i64 {
    end["exitCode"].as_i64().unwrap_or_default()
}

fn end_reason(end: &Value) -> String {
    match (text_at(end, "reason"), end["signal"].as_i64().unwrap_or_default()) {
        ("", 0) => format!("ExitCode:{}", exit_code(end)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn present<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    Some(at(value, path)).filter(|found| !found.is_null())
}

fn readiness_gates(view: &View<'_>) -> String {
    let gates = view.items("spec.readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| view.is(text_at(gate, "conditionType"))).count();
    format!("{open}/{}", gates.len())
}
