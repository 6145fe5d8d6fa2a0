//! Sequences of writes and the managed fields that follow, as the real server answers them.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::schema::{ObjectType, Schema, UnknownFields};
use crate::updater::OneVersion;

const VERSION: &str = "v1";

fn config_maps() -> OneVersion {
    let strings = json!({"type": "object", "additionalProperties": {"type": "string", "default": ""}});
    let definitions = BTreeMap::from([
        (
            "ConfigMap".to_owned(),
            json!({"type": "object", "properties": {
                "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "data": strings,
                "metadata": {"default": {}, "allOf": [{"$ref": "#/components/schemas/ObjectMeta"}]},
            }}),
        ),
        (
            "ObjectMeta".to_owned(),
            json!({"type": "object", "properties": {
                "name": {"type": "string"}, "namespace": {"type": "string"}, "uid": {"type": "string"},
                "labels": strings, "annotations": strings,
                "managedFields": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic"},
            }}),
        ),
    ]);
    OneVersion::built_in(VERSION, Schema::new(definitions).object_type("ConfigMap").unwrap())
}

fn object(data: &Value) -> Value {
    json!({"apiVersion": VERSION, "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data})
}

/// The managed fields without what all entries share.
fn owners(object: &Value) -> Vec<String> {
    let entries = entries::entries_of(object).map(Vec::as_slice).unwrap_or_default();
    entries
        .iter()
        .map(|entry| {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or("-").to_owned();
            format!("{} {} {} {}", text("manager"), text("operation"), text("time"), entry["fieldsV1"])
        })
        .collect()
}

struct Server {
    kind: OneVersion,
    live: Option<Value>,
    clock: u32,
}

impl Server {
    fn new() -> Self {
        Self { kind: config_maps(), live: None, clock: 0 }
    }

    fn store(&mut self, mut object: Value) -> Vec<String> {
        object["metadata"]["uid"] = "u".into();
        let owners = owners(&object);
        self.live = Some(object);
        owners
    }

    fn update(&mut self, manager: &str, new: Value) -> Vec<String> {
        self.clock += 1;
        let now = format!("2026-01-01T00:00:{:02}Z", self.clock);
        let request = request(manager, &now);
        let object = update(&self.kind, self.live.as_ref(), new, &request);
        self.store(object)
    }

    fn apply(&mut self, manager: &str, data: &Value, force: Force) -> Result<Vec<String>, String> {
        self.clock += 1;
        let now = format!("2026-01-01T00:00:{:02}Z", self.clock);
        let request = request(manager, &now);
        let object = apply(&self.kind, self.live.as_ref(), &object(data), force, &request)
            .map_err(|error| error.to_string())?;
        Ok(self.store(object))
    }
}

fn request<'a>(manager: &'a str, now: &'a str) -> Request<'a> {
    Request { manager, subresource: "", api_version: VERSION, kind: "ConfigMap", now, reset: &Filter::All }
}

#[test]
fn a_create_owns_its_maps() {
    let mut server = Server::new();
    let got = server.update("curl", object(&json!({"a": "1"})));
    assert_eq!(got, [r#"curl Update 2026-01-01T00:00:01Z {"f:data":{".":{},"f:a":{}}}"#]);
}

#[test]
fn updates_steal_and_times_move_only_with_changes() {
    let mut server = Server::new();
    server.apply("m1", &json!({"a": "1", "b": "1"}), Force::No).unwrap();
    let got = server.update("m2", object(&json!({"a": "2", "b": "1"})));
    assert_eq!(
        got,
        [
            r#"m1 Apply 2026-01-01T00:00:01Z {"f:data":{"f:b":{}}}"#,
            r#"m2 Update 2026-01-01T00:00:02Z {"f:data":{"f:a":{}}}"#,
        ]
    );
    let unchanged = server.live.clone().unwrap();
    assert_eq!(server.update("m3", unchanged), got);
}

#[test]
fn applies_conflict_unless_forced() {
    let mut server = Server::new();
    server.apply("m1", &json!({"a": "1"}), Force::No).unwrap();
    let refused = server.apply("m2", &json!({"a": "2"}), Force::No);
    assert_eq!(refused.unwrap_err(), "Apply failed with 1 conflict: conflict with \"m1\": .data.a");
    let got = server.apply("m2", &json!({"a": "2"}), Force::Yes).unwrap();
    assert_eq!(got, [r#"m2 Apply 2026-01-01T00:00:03Z {"f:data":{"f:a":{}}}"#]);
    // The object does not change, so the new entry has no time.
    let got = server.apply("m1", &json!({}), Force::No).unwrap();
    assert_eq!(
        got,
        [r#"m1 Apply - {"f:data":{}}"#, r#"m2 Apply 2026-01-01T00:00:03Z {"f:data":{"f:a":{}}}"#,]
    );
    server.update("curl", object(&json!({"a": "3", "b": "3"})));
    let refused = server.apply("m1", &json!({"a": "4", "b": "4"}), Force::No);
    assert_eq!(
        refused.unwrap_err(),
        "Apply failed with 2 conflicts: conflicts with \"curl\" using v1:\n- .data.a\n- .data.b"
    );
}

#[test]
fn shared_fields_stay_until_the_last_owner_drops_them() {
    let mut server = Server::new();
    server.apply("m1", &json!({"a": "1", "b": "1"}), Force::No).unwrap();
    server.apply("m2", &json!({"a": "1"}), Force::No).unwrap();
    server.apply("m1", &json!({"b": "1"}), Force::No).unwrap();
    assert_eq!(server.live.as_ref().unwrap()["data"], json!({"a": "1", "b": "1"}));
    server.apply("m2", &json!({}), Force::No).unwrap();
    assert_eq!(server.live.as_ref().unwrap()["data"], json!({"b": "1"}));
}

#[test]
fn the_first_apply_credits_who_was_before() {
    let mut server = Server::new();
    server.update("curl", object(&json!({"a": "1"})));
    let mut untracked = server.live.clone().unwrap();
    untracked["metadata"]["managedFields"] = json!([]);
    assert_eq!(server.update("curl", untracked), [""; 0]);
    let got = server.apply("m1", &json!({"a": "1", "b": "2"}), Force::No).unwrap();
    assert_eq!(
        got,
        [
            r#"m1 Apply 2026-01-01T00:00:03Z {"f:data":{"f:a":{},"f:b":{}}}"#,
            r#"before-first-apply Update 2026-01-01T00:00:03Z {"f:data":{".":{},"f:a":{}}}"#,
        ]
    );
}

#[test]
fn many_updaters_become_ancient() {
    let mut server = Server::new();
    let mut data = serde_json::Map::new();
    let mut got = Vec::new();
    for index in 1..=12 {
        data.insert(format!("k{index:02}"), "1".into());
        got = server.update(&format!("m{index:02}"), object(&Value::Object(data.clone())));
    }
    assert_eq!(got.len(), 10);
    assert_eq!(
        got[0],
        r#"ancient-changes Update 2026-01-01T00:00:03Z {"f:data":{".":{},"f:k01":{},"f:k02":{},"f:k03":{}}}"#
    );
}

#[test]
fn requests_may_bring_their_own_managed_fields() {
    let mut server = Server::new();
    server.update("curl", object(&json!({"a": "1"})));
    let live = server.live.clone().unwrap();
    let with = |entries: Value| {
        let mut object = live.clone();
        object["metadata"]["managedFields"] = entries;
        object
    };
    let entry = |manager: &str| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}})
    };
    assert_eq!(
        server.update("x", with(json!([entry("renamed")]))),
        [r#"renamed Update - {"f:data":{"f:a":{}}}"#]
    );
    let mut invalid = entry("y");
    invalid["fieldsType"] = "Nope".into();
    assert_eq!(server.update("x", with(json!([invalid]))), [r#"renamed Update - {"f:data":{"f:a":{}}}"#]);
    assert_eq!(server.update("x", with(json!([{}]))), [""; 0]);
    let mut other_version = entry("z");
    other_version["apiVersion"] = "v9".into();
    assert_eq!(server.update("x", with(json!([other_version]))), [""; 0]);
}

#[test]
fn kubectl_takes_over_what_it_applied_client_side() {
    let mut server = Server::new();
    let mut new = object(&json!({"a": "1", "b": "1"}));
    new["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": object(&json!({"a": "1"})).to_string()});
    server.update("kubectl-client-side-apply", new);
    let refused = server.apply("kubectl", &json!({"a": "2", "b": "2"}), Force::No);
    assert_eq!(
        refused.unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .data.b"
    );
    server.apply("kubectl", &json!({"a": "<2>"}), Force::No).unwrap();
    let annotations = &server.live.as_ref().unwrap()["metadata"]["annotations"];
    assert_eq!(
        annotations["kubectl.kubernetes.io/last-applied-configuration"],
        "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"\\u003c2\\u003e\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\"}}\n"
    );
}

#[test]
fn wrong_configurations_are_refused() {
    let kind = config_maps();
    let request = request("m1", "2026-01-01T00:00:00Z");
    let cases = [
        (json!({}), "invalid object type: /, Kind="),
        (json!({"apiVersion": "v2", "kind": "ConfigMap"}), "invalid object type: /v2, Kind=ConfigMap"),
        (json!({"apiVersion": "a/b", "kind": "X"}), "invalid object type: a/b, Kind=X"),
        (json!({"apiVersion": "a/b/c", "kind": "X"}), "invalid object type: /, Kind="),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"managedFields": []}}),
            "metadata.managedFields must be nil",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "n"}, "foo": 1}),
            "failed to create typed patch object (n/x; /v1, Kind=ConfigMap): .foo: field not declared in schema",
        ),
    ];
    for (patch, want) in cases {
        let got = apply(&kind, None, &patch, Force::No, &request);
        assert_eq!(got.unwrap_err().to_string(), want);
    }
}

/// Two versions that name one field differently.
struct TwoVersions {
    types: [(&'static str, ObjectType); 2],
}

impl TwoVersions {
    fn new() -> Self {
        let ty = |field: &str| {
            let open_api =
                json!({"type": "object", "properties": {field: {"type": "string"}, "c": {"type": "string"}}});
            Schema::custom_resource(Some(&open_api), UnknownFields::Refused)
        };
        Self { types: [("g/v1", ty("a")), ("g/v2", ty("b"))] }
    }
}

impl Versions for TwoVersions {
    fn object_type(&self, api_version: &str) -> Option<&ObjectType> {
        self.types.iter().find(|(version, _)| *version == api_version).map(|(_, ty)| ty)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let mut object = object.clone();
        let (from, to) = if api_version == "g/v2" { ("a", "b") } else { ("b", "a") };
        if let Value::Object(map) = &mut object {
            if let Some(value) = map.remove(from) {
                map.insert(to.into(), value);
            }
            map.insert("apiVersion".into(), api_version.into());
        }
        Ok(object)
    }
}

#[test]
fn ownership_crosses_versions() {
    let kind = TwoVersions::new();
    let request = |manager, api_version| Request {
        manager,
        subresource: "",
        api_version,
        kind: "K",
        now: "2026-01-01T00:00:00Z",
        reset: &Filter::All,
    };
    let v1 = |a: &str| json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}, "a": a});
    let v2 = |b: &str| json!({"apiVersion": "g/v2", "kind": "K", "metadata": {"name": "x"}, "b": b});
    let live = apply(&kind, None, &v1("1"), Force::No, &request("m1", "g/v1")).unwrap();
    let refused = apply(&kind, Some(&live), &v2("2"), Force::No, &request("m2", "g/v2"));
    assert_eq!(refused.unwrap_err().to_string(), "Apply failed with 1 conflict: conflict with \"m1\": .a");
    // The same manager moves to the new version, and what it no longer says goes.
    let moved = json!({"apiVersion": "g/v2", "kind": "K", "metadata": {"name": "x"}, "c": "1"});
    let live = apply(&kind, Some(&live), &moved, Force::No, &request("m1", "g/v2")).unwrap();
    assert_eq!(live.get("b"), None);
    assert_eq!(live["c"], "1");
    assert_eq!(owners(&live), [r#"m1 Apply 2026-01-01T00:00:00Z {"f:c":{}}"#]);
}

#[test]
fn reset_fields_are_nobodys() {
    let kind = config_maps();
    let reset = Filter::exclude(&[&["data"]]);
    let request = Request { reset: &reset, ..request("m1", "2026-01-01T00:00:00Z") };
    let mut patch = object(&json!({"a": "1"}));
    patch["metadata"]["labels"] = json!({"l": "1"});
    let live = apply(&kind, None, &patch, Force::No, &request).unwrap();
    assert_eq!(owners(&live), [r#"m1 Apply 2026-01-01T00:00:00Z {"f:metadata":{"f:labels":{"f:l":{}}}}"#]);
}
