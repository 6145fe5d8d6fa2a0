use super::*;

const NOW: Context<'static> = Context { now: "2020-01-01T00:00:00Z", user: None, submitted: None };

#[test]
fn every_stored_kind_has_a_strategy() {
    for group in catalog().groups() {
        for version in &group.versions {
            for resource in &version.resources {
                if resource.subresource().is_none() && resource.allows("update") {
                    assert!(strategy(&group.name, &resource.kind).is_some(), "{}", resource.kind);
                }
            }
        }
    }
}

#[test]
fn creation_clears_status_and_starts_generations() {
    for (group, kind, given, expected) in [
        (
            "apps",
            "Deployment",
            json!({"metadata": {"generation": 7}, "status": {"replicas": 3}}),
            json!({"metadata": {"generation": 1}, "status": {}}),
        ),
        ("", "ConfigMap", json!({"metadata": {"generation": 7}}), json!({"metadata": {"generation": 7}})),
        (
            "",
            "Namespace",
            json!({"metadata": {"name": "a"}, "spec": {}}),
            json!({"metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "a"}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}),
        ),
        (
            "",
            "PersistentVolume",
            json!({"metadata": {}}),
            json!({"metadata": {}, "status": {"phase": "Pending", "lastPhaseTransitionTime": NOW.now}}),
        ),
        (
            "",
            "Pod",
            json!({"metadata": {}, "spec": {"containers": [
                {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}}]}}),
            json!({"metadata": {"generation": 1}, "spec": {"containers": [
                {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}}]},
                "status": {"phase": "Pending", "qosClass": "Guaranteed"}}),
        ),
        (
            "apps",
            "DaemonSet",
            json!({"metadata": {}}),
            json!({"metadata": {"generation": 1, "annotations": {"deprecated.daemonset.template.generation": "1"}},
                "status": {"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0,
                    "numberReady": 0}}),
        ),
        (
            "",
            "PersistentVolumeClaim",
            json!({"metadata": {}, "spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}}}),
            json!({"metadata": {}, "status": {"phase": "Pending"}, "spec": {
                "dataSource": {"kind": "PersistentVolumeClaim", "name": "a"},
                "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a"}}}),
        ),
        (
            "",
            "PersistentVolumeClaim",
            json!({"metadata": {}, "spec": {"dataSource": {"apiGroup": "x", "kind": "Y", "name": "a"}}}),
            json!({"metadata": {}, "status": {"phase": "Pending"}, "spec": {}}),
        ),
        (
            "coordination.k8s.io",
            "Lease",
            json!({"metadata": {}, "spec": {"strategy": "x", "holderIdentity": "a"}}),
            json!({"metadata": {}, "spec": {"holderIdentity": "a"}}),
        ),
    ] {
        let mut object = given.clone();
        prepare_create(group, "v1", kind, &mut object, &NOW);
        assert_eq!(object, expected, "{kind}");
    }
}

#[test]
fn jobs_select_their_own_pods() {
    let mut job = json!({
        "metadata": {"name": "a", "uid": "u", "labels": {"app": "x"}},
        "spec": {"manualSelector": false, "template": {"metadata": {"labels": {"app": "x"}}}},
    });
    let submitted = json!({"metadata": {"name": "a"}});
    let context = Context { submitted: Some(&submitted), ..NOW };
    prepare_create("batch", "v1", "Job", &mut job, &context);
    let labels = json!({"app": "x", "job-name": "a", "batch.kubernetes.io/job-name": "a", "controller-uid": "u",
        "batch.kubernetes.io/controller-uid": "u"});
    assert_eq!(job["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(job["metadata"]["labels"], labels);
    assert_eq!(job["spec"]["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}));
}

#[test]
fn updates_keep_what_the_writer_may_not_change() {
    let old = json!({"metadata": {"generation": 1, "labels": {"a": "1"}}, "spec": {"replicas": 1},
        "status": {"replicas": 1}});
    for (group, kind, sub, new, expected) in [
        (
            "apps",
            "ReplicaSet",
            None,
            json!({"metadata": {}, "spec": {"replicas": 2}, "status": {}}),
            json!({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": {"replicas": 1}}),
        ),
        (
            "apps",
            "ReplicaSet",
            Some("status"),
            json!({"metadata": {}, "spec": {"replicas": 2}, "status": {"replicas": 5}}),
            json!({"metadata": {"generation": 1}, "spec": {"replicas": 1}, "status": {"replicas": 5}}),
        ),
        (
            "apps",
            "Deployment",
            Some("status"),
            json!({"metadata": {"annotations": {"a": "b"}}, "spec": {}, "status": {}}),
            json!({"metadata": {"generation": 1, "labels": {"a": "1"}, "annotations": {"a": "b"}},
                "spec": {"replicas": 1}, "status": {}}),
        ),
        (
            "apps",
            "Deployment",
            None,
            json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"replicas": 1}, "status": {}}),
            json!({"metadata": {"generation": 2, "annotations": {"a": "b"}}, "spec": {"replicas": 1},
                "status": {"replicas": 1}}),
        ),
        (
            "",
            "ConfigMap",
            None,
            json!({"metadata": {"generation": 9}, "data": {}}),
            json!({"metadata": {"generation": 1}, "data": {}}),
        ),
    ] {
        let mut object = new.clone();
        prepare_update(group, kind, sub, &mut object, &old, &NOW);
        assert_eq!(object, expected, "{kind} {sub:?}");
    }
}

#[test]
fn services_lose_what_their_new_type_does_not_have() {
    let spec = json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
        "allocateLoadBalancerNodePorts": true, "externalTrafficPolicy": "Cluster",
        "ports": [{"port": 1, "nodePort": 30000}]});
    let old =
        json!({"metadata": {}, "spec": spec, "status": {"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}}});
    let mut new = old.clone();
    new["spec"]["type"] = json!("ClusterIP");
    prepare_update("", "Service", None, &mut new, &old, &NOW);
    let expected = json!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
        "ports": [{"port": 1}]});
    assert_eq!((&new["spec"], &new["status"]), (&expected, &json!({"loadBalancer": {}})));
}

#[test]
fn only_pods_that_run_end_gracefully() {
    let running = json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}, "status": {}});
    let waiting = json!({"spec": {"terminationGracePeriodSeconds": 30}});
    let ended = json!({"spec": {"nodeName": "n"}, "status": {"phase": "Failed"}});
    for (kind, object, requested, expected) in [
        ("ConfigMap", &running, Some(5), None),
        ("Pod", &running, None, Some(30)),
        ("Pod", &running, Some(5), Some(5)),
        ("Pod", &running, Some(-5), Some(1)),
        ("Pod", &waiting, Some(5), Some(0)),
        ("Pod", &ended, Some(5), Some(0)),
    ] {
        assert_eq!(grace_period("", kind, object, requested), expected, "{kind} {requested:?}");
    }
}
