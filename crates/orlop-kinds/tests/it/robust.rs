//! No input makes the crate panic, however odd or deep.

use orlop_kinds::catalog::{TypeId, catalog};
use orlop_kinds::{codec, conversion, defaults, json, protobuf, strategy};
use proptest::prelude::*;
use serde_json::{Value, json};

/// All that happens to a write.
fn everything(group: &str, version: &str, kind: &str, ty: TypeId, value: &Value) {
    let _ = codec::from_unstructured(ty, value.clone());
    let mut object = codec::decode(ty, value.clone()).map_or_else(|_| value.clone(), |decoded| decoded.value);
    defaults::default_object(ty, &mut object);
    conversion::convert(ty, &mut object);
    conversion::to_version(kind, (group, version), ("autoscaling", "v1"), &mut object.clone());
    conversion::to_version(kind, (group, version), ("events.k8s.io", "v1"), &mut object.clone());
    let context =
        strategy::Context { now: "2020-01-01T00:00:00Z", user: Some(value), submitted: Some(value) };
    strategy::prepare_create(group, version, kind, &mut object, &context);
    for sub in [None, Some("status"), Some("approval"), Some("resize"), Some("ephemeralcontainers")] {
        strategy::prepare_update(group, kind, sub, &mut object.clone(), value, &context);
        strategy::prepare_update(group, kind, sub, &mut value.clone(), &object, &context);
    }
    codec::through_storage(ty, &mut object);
    let bytes = protobuf::encode(ty, &object);
    let _ = protobuf::open(&bytes).map(|envelope| protobuf::decode(ty, &envelope));
}

fn every_kind(check: impl Fn(&str, &str, &str, TypeId)) {
    for group in catalog().groups() {
        for version in &group.versions {
            for resource in &version.resources {
                let (g, v) = resource.kind_group_version(&group.name, &version.name);
                if let Some(ty) = catalog().type_of(g, v, &resource.kind) {
                    check(g, v, &resource.kind, ty);
                }
            }
        }
    }
}

/// Values that often have the names that rules look for.
fn values() -> impl Strategy<Value = Value> {
    let names = "spec|status|metadata|template|labels|containers|resources|limits|cpu|strategy|type|ports|name|\
                 volumes|data|stringData|annotations|rollingUpdate|metrics|behavior|webhooks|versions|conditions|\
                 selector|jobTemplate|items|affinity|podIPs|finalizers|names|kind|generation|a";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-zA-Z0-9%.:-]{0,8}".prop_map(Value::from),
        Just(json!("RollingUpdate")),
        Just(json!("LoadBalancer")),
        Just(json!("1.5Gi")),
    ];
    leaf.prop_recursive(7, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn odd_objects_do_not_panic(value in values()) {
        every_kind(|group, version, kind, ty| everything(group, version, kind, ty, &value));
    }
}

#[test]
fn deep_objects_do_not_exhaust_the_stack() {
    let levels = json::DEPTH_MAX / 2 - 5;
    let schema = format!("{}{}", r#"{"properties":{"a":"#.repeat(levels), "{}") + &"}}".repeat(levels);
    let text = format!(r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#);
    let ty = catalog().type_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition").expect("built in");
    let decoded = codec::decode_json(ty, text.as_bytes()).expect("deep but valid");
    everything("apiextensions.k8s.io", "v1", "CustomResourceDefinition", ty, &decoded.value);
}
