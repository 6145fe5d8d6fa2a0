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

/// A value of a type, filled from numbers that follow each other; deep types stay empty.
fn filled(ty: TypeId, seed: &mut u64, depth: usize) -> Value {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let number = *seed >> 33;
    match &catalog().get(ty).shape {
        Shape::Struct(owner) if depth < 9 => {
            let mut all = serde_json::Map::new();
            for declared in owner.declared.iter().filter(|declared| declared.name != "TypeMeta") {
                let value = filled(declared.ty, seed, depth + 1);
                match value {
                    Value::Object(inner) if declared.inline => all.extend(inner),
                    value => {
                        all.insert(declared.name.to_owned(), value);
                    }
                }
            }
            Value::Object(all)
        }
        Shape::Struct(_) | Shape::Any => json!({}),
        Shape::Pointer(_) if number.is_multiple_of(3) || depth >= 9 => Value::Null,
        Shape::Pointer(inner) => filled(*inner, seed, depth),
        // An empty list is no list in protobuf.
        Shape::List(_) | Shape::Map(_) if depth >= 9 || number.is_multiple_of(3) => Value::Null,
        Shape::List(inner) => (0..number % 3).map(|_| filled(*inner, seed, depth + 1)).collect(),
        Shape::Map(inner) => {
            let entries = (0..number % 3).map(|n| (format!("k{n}"), filled(*inner, seed, depth + 1)));
            Value::Object(entries.filter(|(_, value)| !value.is_null()).collect())
        }
        Shape::String => format!("s{}", number % 1000).into(),
        Shape::Bool => number.is_multiple_of(2).into(),
        Shape::Int(least, most) => ((number as i64 - (1 << 30)).clamp(*least, *most)).into(),
        Shape::Float => (number as f64 / 8.0).into(),
        Shape::Bytes => "AAEC".into(),
        Shape::Time => "2020-01-02T03:04:05Z".into(),
        Shape::MicroTime => "2020-01-02T03:04:05.000006Z".into(),
        Shape::Duration => "1m0s".into(),
        Shape::Quantity => format!("{}m", number % 1000).into(),
        Shape::IntOrString if number.is_multiple_of(2) => "50%".into(),
        Shape::IntOrString => (number as i32).into(),
        Shape::Raw | Shape::Json => json!({"a": [1, "b"]}),
        Shape::Fields => json!({"f:a": {}}),
        Shape::SchemaOrBool(_) => number.is_multiple_of(2).into(),
        Shape::SchemaOrList(inner) => filled(*inner, seed, depth + 3),
        Shape::SchemaOrStrings(_) => json!(["a", "b"]),
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(16))]
    #[test]
    fn objects_of_every_kind_come_back(seed in proptest::num::u64::ANY) {
        let mut seed = seed;
        for group in catalog().groups() {
            for (version, resource) in group.versions.iter().flat_map(|v| v.resources.iter().map(move |r| (v, r))) {
                let (g, v) = resource.kind_group_version(&group.name, &version.name);
                let Some(ty) = catalog().type_of(g, v, &resource.kind) else { continue };
                let value = codec::decode(ty, filled(ty, &mut seed, 0)).expect("of its type").value;
                let bytes = encode(ty, &value);
                let back = decode(ty, &open(&bytes).expect("an envelope"));
                proptest::prop_assert_eq!(back, Ok(value), "{} {}", v, resource.kind);
            }
        }
    }
}

#[test]
fn lists_written_by_item_are_lists_written_at_once() {
    let item = |name: &str| json!({"metadata": {"name": name}, "data": {"k": "v"}});
    let metadata = json!({"resourceVersion": "7", "continue": "c", "remainingItemCount": 3});
    let list = catalog().type_of("", "v1", "ConfigMapList").expect("built in");
    let whole = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": [item("a"), item("b")]});
    let whole = codec::decode(list, whole).expect("valid").value;
    let mut writer = ListWriter::new(catalog().type_of("", "v1", "ConfigMap").expect("built in"), &metadata);
    writer.push(&item("a"));
    writer.push(&item("b"));
    assert_eq!(writer.finish("v1", "ConfigMapList"), encode(list, &whole));
    for (_, found) in catalog().types().filter(|(_, found)| found.go.ends_with("List")) {
        if let Shape::Struct(owner) = &found.shape
            && owner.declared.iter().any(|declared| declared.name == "items")
        {
            let number = |name: &str| owner.declared.iter().find(|d| d.name == name).map(|d| d.number);
            assert_eq!((number("metadata"), number("items")), (Some(1), Some(2)), "{}", found.go);
        }
    }
}
