use super::*;
use serde_json::json;

fn ty(kind: &str) -> TypeId {
    let (gv, kind) = kind.rsplit_once('/').unwrap_or(("v1", kind));
    let (group, version) = gv.split_once('/').unwrap_or(("", gv));
    catalog().type_of(group, version, kind).expect(kind)
}

#[test]
fn values_take_the_form_of_their_go_type() {
    for (kind, given, expected) in [
        (
            "ConfigMap",
            json!({"data": {"a": null, "b": "x"}, "immutable": null, "binaryData": {}}),
            json!({"metadata": {}, "data": {"a": "", "b": "x"}}),
        ),
        (
            "Pod",
            json!({"spec": {"containers": null, "hostNetwork": false, "volumes": []}}),
            json!({"metadata": {}, "spec": {"containers": null}, "status": {}}),
        ),
        (
            "Pod",
            json!({"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": 1, "memory": "1.5Gi"}}}]}}),
            json!({"metadata": {}, "spec": {"containers": [
                {"name": "a", "resources": {"limits": {"cpu": "1", "memory": "1536Mi"}}}]}, "status": {}}),
        ),
        (
            "apps/v1/Deployment",
            json!({"metadata": {"creationTimestamp": null, "labels": {}}, "spec": {"replicas": 0}}),
            json!({"metadata": {}, "spec": {"replicas": 0, "selector": null, "strategy": {}, "template": {
                "metadata": {}, "spec": {"containers": null}}}, "status": {}}),
        ),
        (
            "Event",
            json!({"lastTimestamp": "2020-01-01T01:00:00+01:00", "eventTime": "2020-01-01T00:00:00.5Z"}),
            json!(null),
        ),
        (
            "Secret",
            json!({"data": {"a": "eHh=", "b": ""}}),
            json!({"metadata": {}, "data": {"a": "eHg=", "b": ""}}),
        ),
        (
            "Service",
            json!({"spec": {"ports": [{"port": 1, "targetPort": "x"}, {"port": 2}]}}),
            json!({"metadata": {}, "status": {"loadBalancer": {}}, "spec": {"ports": [
                {"port": 1, "targetPort": "x"}, {"port": 2, "targetPort": 0}]}}),
        ),
    ] {
        match decode(ty(kind), given.clone()) {
            Ok(decoded) => assert_eq!(decoded.value, expected, "{given}"),
            Err(error) => assert!(expected.is_null(), "{given}: {error}"),
        }
    }
}

#[test]
fn type_errors_read_as_in_go() {
    let spec = |spec: Value| json!({"spec": spec});
    let container = |container: Value| json!({"spec": {"containers": [container]}});
    for (kind, given, error) in [
        (
            "ConfigMap",
            json!({"data": {"a": 1}}),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            "ConfigMap",
            json!({"data": "x"}),
            "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string",
        ),
        ("ConfigMap", json!([]), "json: cannot unmarshal array into Go value of type v1.ConfigMap"),
        (
            "apps/v1/Deployment",
            spec(json!({"replicas": 1.5})),
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "Pod",
            container(json!({"image": 1})),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
        ),
        (
            "Pod",
            spec(json!({"ephemeralContainers": [{"image": true}]})),
            "json: cannot unmarshal bool into Go struct field EphemeralContainer.spec.ephemeralContainers.EphemeralContainerCommon.image of type string",
        ),
        (
            "Pod",
            container(json!({"resources": {"limits": {"cpu": "abc"}}})),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ("Secret", json!({"data": {"a": "!"}}), "illegal base64 data at input byte 0"),
        (
            "Service",
            spec(json!({"ports": [{"targetPort": true}]})),
            "json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32",
        ),
        (
            "Pod",
            json!({"metadata": {"creationTimestamp": "x"}}),
            r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
        ),
    ] {
        assert_eq!(decode(ty(kind), given.clone()), Err(DecodeError(error.to_owned())), "{given}");
    }
}

#[test]
fn strict_errors_come_in_document_order() {
    let text = br#"{"spec":{"zz":{"a":1,"a":2},"containers":[{"name":"a","name":"b","x":1}],"aa":1},
        "metadata":{"labels":{"l":"1","l":"2"}},"bad":1}"#;
    let decoded = decode_json(ty("Pod"), text).expect("decodes");
    assert_eq!(
        decoded.strict,
        [
            r#"unknown field "spec.zz""#,
            r#"duplicate field "spec.containers[0].name""#,
            r#"unknown field "spec.containers[0].x""#,
            r#"unknown field "spec.aa""#,
            r#"duplicate field "metadata.labels.l""#,
            r#"unknown field "bad""#,
        ]
    );
}

#[test]
fn decoding_twice_changes_nothing() {
    for (id, ty) in catalog().types() {
        if matches!(ty.shape, Shape::Struct(_)) {
            let once = decode(id, json!({})).expect(ty.go).value;
            assert_eq!(&once, zero(id), "{}", ty.go);
            assert_eq!(decode(id, once.clone()).expect(ty.go).value, once, "{}", ty.go);
        }
    }
}
