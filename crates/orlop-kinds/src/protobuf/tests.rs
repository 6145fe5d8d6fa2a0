use super::*;
use crate::catalog::{Shape, catalog};
use crate::codec;
use serde_json::json;

#[test]
fn bytes_are_those_of_kubernetes() {
    let ty = catalog().type_of("", "v1", "ConfigMap").expect("built in");
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let value = codec::decode(ty, object).expect("valid").value;
    // ObjectMeta always has its strings, its generation and an empty creation time.
    let expected =
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x1b\x0a\x11\x0a\x01a\x12\x00\x1a\x00\x22\x00\x2a\x00\
        2\x008\x00B\x00\x12\x06\x0a\x01k\x12\x01v\x1a\x00\x22\x00";
    assert_eq!(encode(ty, &value), expected);
}

#[test]
fn objects_come_back_as_they_went() {
    for (group, kind, object) in [
        (
            "apps",
            "Deployment",
            json!({"metadata": {"name": "a", "labels": {"a": "b"}, "generation": 3,
                "creationTimestamp": "2020-01-02T03:04:05Z"},
                "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "strategy":
                    {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
                    "template": {"spec": {"securityContext": {"supplementalGroups": [1, -2]}, "containers": [
                        {"name": "c", "resources": {"limits": {"cpu": "100m"}}, "livenessProbe": {"grpc": {"port": 1}}}]}}}}),
        ),
        ("", "Secret", json!({"data": {"a": "eA==", "b": ""}})),
        ("coordination.k8s.io", "Lease", json!({"spec": {"renewTime": "1969-12-31T23:59:59.000001Z"}})),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            json!({"spec": {"group": "g", "names": {"plural": "p", "kind": "K"}, "scope": "Namespaced", "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
                    "maximum": 1.5, "default": {"a": 1}, "properties": {"a": {"additionalProperties": true},
                    "b": {"items": {"type": "string"}}}}}}]}}),
        ),
    ] {
        let ty = catalog().type_of(group, "v1", kind).expect(kind);
        let value = codec::decode(ty, object).expect(kind).value;
        let bytes = encode(ty, &value);
        assert_eq!(decode(ty, &open(&bytes).expect("an envelope")), Ok(value), "{kind}");
    }
}

#[test]
fn empty_objects_of_all_kinds_come_back() {
    for (ty, found) in catalog().types() {
        let numbered = matches!(&found.shape, Shape::Struct(s) if s.declared.iter().all(|d| d.number != 0 || d.name == "TypeMeta"));
        if numbered {
            let value = codec::zero(ty).clone();
            let bytes = encode(ty, &value);
            let mut back = decode(ty, &open(&bytes).expect("an envelope")).expect(found.go);
            codec::through_storage(ty, &mut back);
            let mut expected = value;
            codec::through_storage(ty, &mut expected);
            assert_eq!(back, expected, "{}", found.go);
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
        let ty = catalog().type_of("apps", "v1", "Deployment").expect("built in");
        let envelope = Envelope { api_version: String::new(), kind: String::new(), message: &bytes };
        let _ = decode(ty, &envelope);
        let _ = open(&bytes);
    }
}
