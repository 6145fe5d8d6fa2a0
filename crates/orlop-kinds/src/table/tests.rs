use super::*;

/// Names, types, formats and priorities of columns as a server said them.
const COLUMNS: &str = include_str!("columns.tsv");

fn at(time: &str) -> i128 {
    age::nanos(time).unwrap()
}

#[test]
fn columns_are_those_of_a_real_server() {
    let mut known = 0;
    for line in COLUMNS.lines() {
        let (kind, expected) = line.split_once('\t').unwrap();
        let columns = Printer::built_in(kind).columns().as_array().unwrap();
        let found = columns.iter().map(|c| {
            let text = |field: &str| c[field].as_str().unwrap().to_owned();
            format!("{}|{}|{}|{}", text("name"), text("type"), text("format"), c["priority"])
        });
        assert_eq!(found.collect::<Vec<_>>().join("\t"), expected, "{kind}");
        known += 1;
    }
    assert_eq!(known, 59);
}

#[test]
fn every_row_has_a_cell_for_every_column() {
    for (kind, _) in kinds::KINDS {
        let printer = Printer::built_in(kind);
        let columns = printer.columns().as_array().unwrap().len();
        let extra = usize::from(*kind == "IPAddress");
        for object in [json!({}), json!({"metadata": {"name": "x"}, "spec": [], "status": 1})] {
            assert_eq!(printer.row(&object, 0).cells.len(), columns + extra, "{kind}");
        }
    }
}

#[test]
fn cells_show_what_the_original_shows() {
    let meta = |name: &str| json!({"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"});
    for (kind, mut object, expected) in [
        ("ConfigMap", json!({"data": {"a": "1"}, "binaryData": {"b": "AA=="}}), json!(["x", 2, "5m"])),
        ("Role", json!({}), json!(["x", "2026-01-01T00:00:00Z"])),
        (
            "Deployment",
            json!({"spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": {"spec":
                {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]}}},
                "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}}),
            json!(["x", "1/3", 2, 1, "5m", "c,d", "i,j", "a=b"]),
        ),
        (
            "Service",
            json!({"spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "externalIPs": ["1.1.1.1"],
                "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}, {"port": 81, "protocol": "UDP"}]},
                "status": {"loadBalancer": {"ingress": [{"hostname": "h"}, {"ip": "2.2.2.2"}]}}}),
            json!([
                "x",
                "LoadBalancer",
                "10.0.0.1",
                "2.2.2.2,h,1.1.1.1",
                "80:30000/TCP,81/UDP",
                "5m",
                "<none>"
            ]),
        ),
        (
            "Job",
            json!({"spec": {"parallelism": 2}, "status": {"startTime": "2026-01-01T00:01:00Z",
                "conditions": [{"type": "Suspended", "status": "True"}]}}),
            json!(["x", "Suspended", "0/1 of 2", "4m", "5m", "", "", "<none>"]),
        ),
        (
            "Node",
            json!({"spec": {"unschedulable": true}, "status": {"conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"kubeletVersion": "v1", "kernelVersion": "6", "architecture": "amd64"},
                "addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]}}),
            json!([
                "x",
                "Ready,SchedulingDisabled",
                "<none>",
                "5m",
                "v1",
                "10.0.0.2",
                "<none>",
                "<unknown>",
                "6 (amd64)",
                "<unknown>"
            ]),
        ),
        (
            "HorizontalPodAutoscaler",
            json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3, "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}},
                {"type": "Pods", "pods": {"target": {"averageValue": "1k"}}},
                {"type": "External", "external": {"target": {"value": "3"}}}]},
                "status": {"currentMetrics": [{"resource": {"current": {"averageUtilization": 5}}}]}}),
            json!(["x", "Deployment/d", "cpu: 5%/80%, <unknown>/1k + 1 more...", "<unset>", 3, 0, "5m"]),
        ),
        (
            "ResourceQuota",
            json!({"status": {"hard": {"pods": "5", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "1"}}}),
            json!(["x", "cpu: 0/1, pods: 1/5", "limits.cpu: 0/2", "5m"]),
        ),
        (
            "Ingress",
            json!({"spec": {"rules": [{"host": "a"}, {}, {"host": "b"}, {"host": "c"}, {}], "tls": [{}]}}),
            json!(["x", "<none>", "a,b,c + 2 more...", "", "80, 443", "5m"]),
        ),
        (
            "Endpoints",
            json!({"subsets": [{"addresses": [{"ip": "1.1.1.1"}, {"ip": "::1"}], "ports": [{"port": 1}, {"port": 2}]}]}),
            json!(["x", "1.1.1.1:1,[::1]:1,1.1.1.1:2 + 1 more...", "5m"]),
        ),
    ] {
        object["metadata"] = meta("x");
        let row = Printer::built_in(kind).row(&object, at("2026-01-01T00:05:00Z"));
        let cells: Vec<Value> = row.cells;
        assert_eq!(Value::Array(cells), expected, "{kind}");
    }
}

#[test]
fn a_pods_status_is_what_its_containers_do() {
    let running = json!({"name": "c", "ready": true, "restartCount": 0, "state": {"running": {}}});
    let done = json!({"name": "d", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}});
    let failed = json!({"name": "e", "state": {"terminated": {"exitCode": 3}}});
    let crashing = json!({"name": "c", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"finishedAt": "2026-01-01T00:00:00Z"}}});
    let ready = json!([{"type": "Ready", "status": "True"}]);
    for (status, deleting, expected) in [
        (json!({"phase": "Pending"}), false, ("0/2", "Pending", "0")),
        (json!({"phase": "Running", "containerStatuses": [running]}), false, ("1/2", "Running", "0")),
        (
            json!({"phase": "Running", "containerStatuses": [crashing]}),
            false,
            ("0/2", "CrashLoopBackOff", "2 (5m ago)"),
        ),
        (
            json!({"phase": "Running", "conditions": ready, "containerStatuses": [done, running]}),
            false,
            ("1/2", "Running", "0"),
        ),
        (json!({"phase": "Running", "containerStatuses": [done, running]}), false, ("1/2", "NotReady", "0")),
        (json!({"phase": "Running", "containerStatuses": [done, failed]}), false, ("0/2", "ExitCode:3", "0")),
        (
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
            false,
            ("0/2", "SchedulingGated", "0"),
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}),
            false,
            ("0/2", "Init:0/1", "0"),
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated":
            {"exitCode": 1, "signal": 9}}}]}),
            false,
            ("0/2", "Init:Signal:9", "0"),
        ),
        (json!({"phase": "Running", "containerStatuses": [running]}), true, ("1/2", "Terminating", "0")),
        (json!({"phase": "Running", "reason": "NodeLost"}), true, ("0/2", "Unknown", "0")),
        (json!({"phase": "Failed", "reason": "Evicted"}), true, ("0/2", "Evicted", "0")),
    ] {
        let mut pod = json!({"metadata": {"name": "x"}, "status": status,
            "spec": {"containers": [{"name": "c"}, {"name": "d"}], "initContainers": [{"name": "i"}]}});
        if deleting {
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        let row = Printer::built_in("Pod").row(&pod, at("2026-01-01T00:05:00Z"));
        let expected = [expected.0, expected.1, expected.2].map(Value::from);
        assert_eq!(row.cells[1..4], expected, "{status}");
        assert_eq!(row.conditions.is_some(), status["phase"] == "Failed");
    }
}

#[test]
fn custom_columns_show_values_of_their_type() {
    let columns = json!([
        {"name": "S", "type": "string", "jsonPath": ".spec.s"},
        {"name": "I", "type": "integer", "jsonPath": ".spec.i", "priority": 1},
        {"name": "N", "type": "number", "jsonPath": ".spec.n"},
        {"name": "B", "type": "boolean", "jsonPath": ".spec.s"},
        {"name": "O", "type": "string", "jsonPath": ".spec.o", "description": "an object"},
        {"name": "D", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "X", "type": "date", "jsonPath": ".spec.s"},
        {"name": "Z", "type": "string", "jsonPath": ".spec.z"},
        {"name": "bad", "type": "string", "jsonPath": ".spec["},
        {"name": "after", "type": "string", "jsonPath": ".spec.s"},
    ]);
    let printer = Printer::custom(Some(&columns));
    assert_eq!(printer.columns().as_array().unwrap().len(), 9);
    assert_eq!(
        printer.columns()[1]["description"],
        "Custom resource definition column (in JSONPath format): .spec.s"
    );
    let object = json!({"metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"s": "a", "i": 3.7, "n": 2, "o": {"a": "<"}}});
    let row = printer.row(&object, at("2026-01-01T00:00:09Z"));
    let expected = json!(["x", "a", 3, 2, null, "{\"a\":\"\\u003c\"}", "9s", "<invalid>", null]);
    assert_eq!(Value::Array(row.cells), expected);
    assert_eq!(Printer::custom(None).columns()[1]["name"], "Age");
}
