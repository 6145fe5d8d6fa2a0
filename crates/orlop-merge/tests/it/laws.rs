//! Laws that hold for all objects, sets and patches.

use std::collections::BTreeMap;

use orlop_merge::managed::{self, Request};
use orlop_merge::typed::{Duplicates, Typed};
use orlop_merge::{
    FieldSet, Filter, Force, ObjectType, OneVersion, Path, PathElement, Schema, UnknownFields,
};
use orlop_merge::{json_merge, json_patch, strategic};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Map, Value, json};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn object_type() -> ObjectType {
    let strings = json!({"type": "object", "additionalProperties": {"type": "string"}});
    Schema::custom_resource(
        Some(&json!({"type": "object", "properties": {
            "text": {"type": "string"},
            "map": strings,
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "atomic": {"type": "array", "items": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {
                    "name": {"type": "string"}, "value": {"type": "string"}, "map": strings}}},
        }})),
        UnknownFields::Refused,
    )
}

fn kind() -> OneVersion {
    OneVersion::custom("g/v1", object_type())
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(&NAMES[..]).prop_map(str::to_owned)
}

fn strings() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(name(), name(), 0..4).prop_map(|map| json!(map))
}

fn distinct_names() -> impl Strategy<Value = Vec<String>> {
    prop::collection::btree_set(name(), 0..4)
        .prop_map(|set| set.into_iter().collect::<Vec<_>>())
        .prop_shuffle()
}

fn items() -> impl Strategy<Value = Value> {
    let item = (prop::option::of(name()), prop::option::of(strings()));
    (distinct_names(), prop::collection::vec(item, 4)).prop_map(|(names, rest)| {
        let items = names.into_iter().zip(rest).map(|(name, (value, map))| {
            let mut item = json!({"name": name});
            if let Some(value) = value {
                item["value"] = value.into();
            }
            if let Some(map) = map {
                item["map"] = map;
            }
            item
        });
        Value::Array(items.collect())
    })
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        Just(json!(1.5)),
        name().prop_map(Value::from),
    ]
}

/// Any JSON, with keys that mean something to patches.
fn any_value() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(
        &[
            "a",
            "b",
            "0",
            "-1",
            "name",
            "items",
            "set",
            "map",
            "op",
            "path",
            "value",
            "from",
            "$patch",
            "$retainKeys",
            "$setElementOrder/items",
            "$deleteFromPrimitiveList/set",
            "f:a",
            "k:{\"a\":1}",
            "v:1",
            "i:0",
            ".",
        ][..],
    );
    scalar().prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(key.clone(), inner, 0..4).prop_map(|map| Value::Object(
                map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

/// A valid object, without ownership.
fn object() -> impl Strategy<Value = Value> {
    let free = prop::collection::btree_map(name(), prop_oneof![scalar(), strings()], 0..3)
        .prop_map(|map| json!(map));
    let fields = (
        prop::option::of(name()),
        prop::option::of(strings()),
        prop::option::of(distinct_names()),
        prop::option::of(prop::collection::vec(name(), 0..3)),
        prop::option::of(free),
        prop::option::of(items()),
    );
    fields.prop_map(|(text, map, set, atomic, free, items)| {
        let mut object = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                object.insert(key.into(), value);
            }
        };
        put("apiVersion", Some("g/v1".into()));
        put("kind", Some("K".into()));
        put("metadata", Some(json!({"name": "x"})));
        put("text", text.map(Value::from));
        put("map", map);
        put("set", set.map(|set| json!(set)));
        put("atomic", atomic.map(|atomic| json!(atomic)));
        put("free", free);
        put("items", items);
        Value::Object(object)
    })
}

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        4 => name().prop_map(|name| PathElement::field(&name)),
        1 => (name(), -2_i64..2).prop_map(|(name, value)| PathElement::key([("k", json!(value)), ("n", json!(name))])),
        1 => scalar().prop_map(PathElement::value),
        1 => (0_i64..3).prop_map(PathElement::Index),
    ]
}

fn set() -> impl Strategy<Value = FieldSet> {
    prop::collection::vec(prop::collection::vec(element(), 1..4).prop_map(Path), 0..8)
        .prop_map(|paths| paths.into_iter().collect())
}

fn apply(live: Option<&Value>, config: &Value, manager: &str, force: Force) -> Option<Value> {
    managed::apply(&kind(), live, config, force, &request(manager)).ok()
}

fn request(manager: &str) -> Request<'_> {
    Request {
        manager,
        subresource: "",
        api_version: "g/v1",
        kind: "K",
        now: "2026-01-01T00:00:00Z",
        reset: &Filter::All,
    }
}

fn without_ownership(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

/// Objects and ownership regardless of the order of items and of entry times.
fn unordered(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(unordered).collect();
            items.sort_by_key(ToString::to_string);
            Value::Array(items)
        }
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| *key != "time")
            .map(|(key, value)| (key.clone(), unordered(value)))
            .collect(),
        scalar => scalar.clone(),
    }
}

/// The object without empty lists and maps: an empty list of items is nobody's, and emptied containers become null.
fn without_empty(value: Value) -> Value {
    let full = |value: &Value| {
        !value.as_array().is_some_and(Vec::is_empty) && !value.as_object().is_some_and(Map::is_empty)
    };
    match value {
        Value::Object(map) => {
            let entries = map.into_iter().map(|(key, value)| (key, without_empty(value)));
            Value::Object(entries.filter(|(_, value)| full(value)).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_empty).filter(full).collect()),
        scalar => scalar,
    }
}

/// The object with only one half of the fields of its type.
fn half(object: &Value, first: bool) -> Value {
    let Value::Object(map) = object else { return object.clone() };
    let mine = |key: &str| ["text", "map", "atomic"].contains(&key) == first;
    let shared = |key: &str| ["apiVersion", "kind", "metadata"].contains(&key);
    map.iter()
        .filter(|(key, _)| shared(key) || mine(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The same cases in each run, unless the environment asks for more or others.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(7386),
        chosen @ RngSeed::Fixed(_) => chosen,
    };
    ProptestConfig { rng_seed, failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn applying_again_changes_nothing(start in object(), config in object()) {
        let live = managed::update(&kind(), None, start, &request("starter"));
        let once = apply(Some(&live), &config, "m", Force::Yes).unwrap();
        let twice = apply(Some(&once), &config, "m", Force::Yes).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn what_is_applied_is_there(start in object(), config in object()) {
        let live = managed::update(&kind(), None, start, &request("starter"));
        let applied = apply(Some(&live), &config, "m", Force::Yes).unwrap();
        let ty = object_type();
        let (said, found) = (Typed::new(&ty).field_set(&config), Typed::new(&ty).field_set(&applied));
        // A null or an empty container that the configuration says may be filled by others.
        for path in said.paths() {
            let parent = Path(path.0[..path.0.len() - 1].to_vec());
            let filled = found.paths().iter().any(|other| other.0.starts_with(&path.0));
            prop_assert!(found.contains(&path.0) || filled || found.contains(&parent.0), "{} of\n{}", path, found);
        }
    }

    #[test]
    fn disjoint_applies_commute(a in object(), b in object()) {
        let (a, b) = (half(&without_empty(a), true), half(&without_empty(b), false));
        let ab = apply(apply(None, &a, "a", Force::No).as_ref(), &b, "b", Force::No).unwrap();
        let ba = apply(apply(None, &b, "b", Force::No).as_ref(), &a, "a", Force::No).unwrap();
        prop_assert_eq!(unordered(&ab), unordered(&ba));
    }

    #[test]
    fn dropping_all_leaves_what_others_own(a in object(), b in object()) {
        let (a, b) = (without_empty(a), without_empty(b));
        let nothing = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}});
        let only_a = apply(None, &a, "a", Force::No).unwrap();
        if let Some(both) = apply(Some(&only_a), &b, "b", Force::No) {
            let left = apply(Some(&both), &nothing, "b", Force::No).unwrap();
            prop_assert_eq!(unordered(&without_ownership(left)), unordered(&a));
        }
    }

    #[test]
    fn merging_keeps_untouched_items_in_order(live in items(), config in items()) {
        let ty = object_type();
        let merged = Typed::new(&ty).merge(&json!({"items": live}), &json!({"items": config}));
        let names = |list: &Value| -> Vec<String> {
            list.as_array().into_iter().flatten().map(|item| item["name"].to_string()).collect()
        };
        let touched = names(&config);
        let untouched = |list: &Value| -> Vec<String> {
            names(list).into_iter().filter(|name| !touched.contains(name)).collect()
        };
        prop_assert_eq!(untouched(&merged["items"]), untouched(&live));
        let order: Vec<String> = names(&merged["items"]).into_iter().filter(|name| touched.contains(name)).collect();
        prop_assert_eq!(order, touched);
    }

    #[test]
    fn equal_objects_do_not_differ(a in object(), b in object()) {
        let ty = object_type();
        let ty = Typed::new(&ty);
        prop_assert!(ty.compare(&a, &a).is_same());
        let (forth, back) = (ty.compare(&a, &b), ty.compare(&b, &a));
        prop_assert_eq!(forth.added, back.removed);
        prop_assert_eq!(forth.modified, back.modified);
    }

    #[test]
    fn an_update_owns_what_it_changed(a in object(), b in object()) {
        let live = managed::update(&kind(), None, a.clone(), &request("a"));
        let mut live = live;
        live["metadata"]["uid"] = "u".into();
        let mut b = b;
        b["metadata"]["uid"] = "u".into();
        let new = managed::update(&kind(), Some(&live), b.clone(), &request("b"));
        prop_assert_eq!(without_ownership(new.clone()), b);
        let again = managed::update(&kind(), Some(&new), new.clone(), &request("c"));
        prop_assert_eq!(again, new);
    }

    #[test]
    fn sets_obey_their_algebra(a in set(), b in set(), c in set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.union(&a), a.clone());
        prop_assert_eq!(a.difference(&a), FieldSet::new());
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert_eq!(a.difference(&b).difference(&c), a.difference(&b.union(&c)));
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert!(a.recursive_difference(&b).is_subset(&a.difference(&b)));
        prop_assert!(a.is_subset(&a.union(&b)));
        prop_assert_eq!(a.is_subset(&b), a.difference(&b).is_empty());
        prop_assert_eq!(a.len(), a.paths().len());
        prop_assert_eq!(a.paths().into_iter().collect::<FieldSet>(), a);
    }

    #[test]
    fn fields_v1_round_trips(a in set()) {
        prop_assert_eq!(FieldSet::from_fields_v1(&a.to_fields_v1()).unwrap(), a);
    }

    #[test]
    fn a_merge_patch_of_the_difference_makes_the_new(old in object(), new in object()) {
        // A merge patch cannot write nulls.
        let (old, new) = (without_nulls(old), without_nulls(new));
        let patch = json_merge::diff(&old, &new);
        prop_assert_eq!(json_merge::apply(old, &patch).unwrap(), new);
    }

    #[test]
    fn nothing_panics(a in any_value(), b in any_value(), good in object()) {
        let ty = object_type();
        let kind = kind();
        let request = request("m");
        let _ = FieldSet::from_fields_v1(&a).map(|set| set.to_fields_v1());
        let _ = json_patch::check_fields(&b);
        let mut odd = good.clone();
        odd["metadata"] = a.clone();
        odd["items"] = b.clone();
        for (left, right) in [(&a, &b), (&good, &a), (&a, &good), (&odd, &good), (&good, &odd), (&odd, &odd)] {
            let _ = json_merge::apply(left.clone(), right);
            let _ = json_patch::apply(left.clone(), right);
            let _ = json_patch::apply(left.clone(), &json!([right]));
            let _ = strategic::apply(&ty, left.clone(), right.clone());
            let _ = managed::apply(&kind, Some(left), right, Force::Yes, &request);
            let _ = managed::update(&kind, Some(left), right.clone(), &request);
            let typed = Typed::new(&ty);
            let _ = typed.validate(left, Duplicates::Refused);
            let set = typed.field_set(left);
            let _ = (typed.compare(left, right), typed.merge(left, right));
            let _ = (typed.remove_items(right.clone(), &set), typed.extract_items(right, &set));
            let _ = typed.reconcile(&set);
        }
        let schema = Schema::new(BTreeMap::from([("a".to_owned(), a), ("b".to_owned(), b.clone())]));
        let _ = schema.object_type("a").map(|ty| (ty.empty(), Typed::new(&ty).field_set(&good)));
        let _ = Typed::new(&Schema::custom_resource(Some(&b), UnknownFields::Preserved)).field_set(&good);
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        scalar => scalar,
    }
}

#[test]
fn depth_is_bounded() {
    let mut deep = json!("x");
    for _ in 0..=orlop_merge::DEPTH_MAX {
        deep = json!({"a": deep});
    }
    let kind = kind();
    let object = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}, "free": deep});
    assert!(managed::apply(&kind, None, &object, Force::No, &request("m")).is_err());
    assert_eq!(managed::update(&kind, None, object.clone(), &request("m")), object);
    assert!(json_merge::apply(json!({}), &object).is_err());
    assert!(json_patch::apply(object.clone(), &json!([])).is_err());
    assert!(strategic::apply(&object_type(), json!({}), object).is_err());
}
