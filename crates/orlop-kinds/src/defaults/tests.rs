use super::*;
use crate::codec;
use serde_json::json;

fn defaulted(kind: &str, object: Value) -> Value {
    let (gv, kind) = kind.rsplit_once('/').unwrap_or(("v1", kind));
    let (group, version) = gv.split_once('/').unwrap_or(("", gv));
    let ty = catalog().type_of(group, version, kind).expect(kind);
    let mut value = codec::decode(ty, object).expect(kind).value;
    default_object(ty, &mut value);
    value
}

#[test]
fn every_row_of_the_table_names_a_field() {
    for (model, path, text) in table::CONSTANTS {
        let ty = named(catalog(), model).unwrap_or_else(|| panic!("{model}"));
        let path: Vec<&str> = path.split('.').collect();
        assert!(target(catalog(), ty, &path).is_some(), "{model} {path:?}");
        assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
    }
    for (model, _) in rules::COMPUTED {
        assert!(named(catalog(), model).is_some(), "{model}");
    }
}

#[test]
fn defaults_depend_on_the_kind_they_stand_in() {
    let container = json!({"name": "a", "image": "a:1", "resources": {"limits": {"cpu": "1"}}});
    let pod = defaulted("Pod", json!({"spec": {"containers": [container]}}));
    assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"], json!({"cpu": "1"}));
    assert_eq!(pod["spec"]["enableServiceLinks"], true);
    assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
    let template = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
    let deployment = defaulted("apps/v1/Deployment", template);
    let spec = &deployment["spec"]["template"]["spec"];
    assert_eq!(spec["containers"][0]["resources"], json!({"limits": {"cpu": "1"}}));
    assert_eq!(spec["enableServiceLinks"], Value::Null);
    assert_eq!(
        deployment["spec"]["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}})
    );
}

#[test]
fn zero_is_a_value_where_go_has_a_pointer() {
    let deployment = defaulted("apps/v1/Deployment", json!({"spec": {"replicas": 0}}));
    assert_eq!(deployment["spec"]["replicas"], 0);
    let probe = json!({"spec": {"containers": [{"livenessProbe": {"periodSeconds": 0}}]}});
    assert_eq!(defaulted("Pod", probe)["spec"]["containers"][0]["livenessProbe"]["periodSeconds"], 10);
}

#[test]
fn defaulting_twice_changes_nothing() {
    for group in catalog().groups() {
        for version in &group.versions {
            for resource in &version.resources {
                let (g, v) = resource.kind_group_version(&group.name, &version.name);
                let Some(ty) = catalog().type_of(g, v, &resource.kind) else { continue };
                let mut once = codec::decode(ty, json!({})).expect("empty").value;
                default_object(ty, &mut once);
                let mut twice = once.clone();
                default_object(ty, &mut twice);
                assert_eq!(once, twice, "{}", resource.kind);
            }
        }
    }
}
