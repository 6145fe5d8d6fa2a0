//! Properties that hold for any schema and any object, sensible or not.

use super::embedded::{Malformed, Place, tests::Strings};
use super::{Schema, default, default_check, embedded, lint, lists, prune, shape, validate};
use crate::field::Path;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(names(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]", Just("metadata".to_owned()), Just("kind".to_owned()), Just("apiVersion".to_owned())]
}

/// One keyword with a value that may or may not make sense.
fn keyword(inner: impl Strategy<Value = Value> + Clone + 'static) -> impl Strategy<Value = (String, Value)> {
    let schemas = prop::collection::btree_map(names(), inner.clone(), 0..3)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()));
    let list = prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array);
    let words = |words: &'static [&'static str]| prop::sample::select(words).prop_map(Value::from);
    prop_oneof![
        (
            Just("type".to_owned()),
            words(&["object", "array", "string", "integer", "number", "boolean", "null", "x"])
        ),
        (
            Just("format".to_owned()),
            words(&["date", "date-time", "int32", "float", "uri", "duration", "email"])
        ),
        (Just("pattern".to_owned()), words(&["^a", "(", "[a-c]+", "a**", r"\d"])),
        (Just("properties".to_owned()), schemas),
        (Just("items".to_owned()), prop_oneof![inner.clone(), list.clone()]),
        (
            Just("additionalProperties".to_owned()),
            prop_oneof![inner.clone(), any::<bool>().prop_map(Value::from)]
        ),
        (prop::sample::select(&["allOf", "anyOf", "oneOf"][..]).prop_map(str::to_owned), list),
        (Just("not".to_owned()), inner),
        (Just("default".to_owned()), values()),
        (Just("enum".to_owned()), prop::collection::vec(values(), 0..3).prop_map(Value::Array)),
        (
            prop::sample::select(
                &["maximum", "minimum", "multipleOf", "maxLength", "minItems", "maxProperties"][..]
            )
            .prop_map(str::to_owned),
            prop_oneof![(-3i64..5).prop_map(Value::from), any::<f64>().prop_map(Value::from)],
        ),
        (
            prop::sample::select(
                &[
                    "nullable",
                    "x-kubernetes-preserve-unknown-fields",
                    "x-kubernetes-embedded-resource",
                    "x-kubernetes-int-or-string",
                    "uniqueItems",
                ][..]
            )
            .prop_map(str::to_owned),
            any::<bool>().prop_map(Value::from),
        ),
        (Just("x-kubernetes-list-type".to_owned()), words(&["set", "map", "atomic", "x"])),
        (Just("x-kubernetes-list-map-keys".to_owned()), Just(json!(["a", "b"]))),
        (Just("required".to_owned()), Just(json!(["a", "z"]))),
    ]
}

fn schemas() -> impl Strategy<Value = Value> {
    Just(json!({"type": "object"})).prop_recursive(4, 24, 4, |inner| {
        prop::collection::vec(keyword(inner), 0..5)
            .prop_map(|keywords| Value::Object(keywords.into_iter().collect::<Map<_, _>>()))
    })
}

proptest! {
    #[test]
    fn pruning_twice_is_pruning_once(schema in schemas(), object in values()) {
        let schema = Schema::parse(&schema);
        let mut once = object;
        prune::prune(&mut once, &schema);
        let mut twice = once.clone();
        prop_assert!(prune::prune(&mut twice, &schema).is_empty());
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn dropping_nulls_twice_is_dropping_them_once(schema in schemas(), object in values()) {
        let schema = Schema::parse(&schema);
        let mut once = object;
        default::prune_nulls(&mut once, &schema);
        let mut twice = once.clone();
        default::prune_nulls(&mut twice, &schema);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn defaulting_twice_is_defaulting_once(schema in schemas(), object in values()) {
        let schema = Schema::parse(&schema);
        let mut once = object;
        default::default(&mut once, &schema);
        let mut twice = once.clone();
        default::default(&mut twice, &schema);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn nothing_panics(schema in schemas(), object in values(), old in values()) {
        let schema = Schema::parse(&schema);
        let path = Path::new("s");
        let _ = shape::check_supported(&schema);
        let _ = shape::check(&schema, &path);
        let _ = lint::check(&schema, &path);
        let _ = default_check::check(&schema, &path, &Strings);
        let _ = validate::validate(&object, &schema, None);
        let _ = validate::validate_update(&object, &schema, &old, Some(&path));
        let _ = lists::validate(&object, &schema);
        let _ = embedded::validate(&object, &schema, &path, Place::Resource, &Strings);
        let mut coerced = object;
        let _ = embedded::coerce(&mut coerced, &schema, &path, Place::Part, &Strings, Malformed::Dropped);
    }

    #[test]
    fn a_value_that_has_not_changed_is_forgiven_or_judged_as_before(schema in schemas(), object in values()) {
        let schema = Schema::parse(&schema);
        let before = validate::validate(&object, &schema, None).len();
        prop_assert!(validate::validate_update(&object, &schema, &object, None).len() <= before);
    }
}
