//! Tables of typed operations, checked against structured-merge-diff.

use serde_json::json;

use super::*;
use crate::schema::UnknownFields;

fn ty() -> ObjectType {
    Schema::custom_resource(
        Some(&json!({"type": "object", "properties": {
            "str": {"type": "string"}, "num": {"type": "integer"}, "bool": {"type": "boolean"},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "iors": {"x-kubernetes-int-or-string": true},
            "struct": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "object"}}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "atomicMap": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "atomic": {"type": "array", "items": {"type": "string"}},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"],
                "items": {"type": "object", "properties": {
                    "k": {"type": "integer"}, "p": {"type": "string", "default": "TCP"}, "v": {"type": "string"},
                    "inner": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                }}},
            "named": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}, "v": {"type": "string"}}}},
        }})),
        UnknownFields::Refused,
    )
}

#[test]
fn typing_errors_say_what_the_original_says() {
    let cases = [
        (json!({"str": "x", "num": 1.5, "bool": true, "iors": "1", "any": {"x": [1]}}), ""),
        (json!({"str": null, "num": null, "map": null, "list": null, "struct": null}), ""),
        (json!({"foo": 1}), ".foo: field not declared in schema"),
        (json!({"struct": {"z": 1}}), ".struct.z: field not declared in schema"),
        (json!({"str": 1}), ".str: expected string, got &value.valueUnstructured{Value:1}"),
        (
            json!({"str": {"a": [1, null]}}),
            ".str: expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"a\":[]interface {}{1, interface {}(nil)}}}",
        ),
        (json!({"num": "x"}), ".num: expected numeric (int or float), got string"),
        (json!({"num": {}}), ".num: expected numeric (int or float), got map[string]interface {}"),
        (json!({"num": []}), ".num: expected numeric (int or float), got []interface {}"),
        (json!({"num": true}), ".num: expected numeric (int or float), got bool"),
        (json!({"bool": "x"}), ".bool: expected boolean, got &{x}"),
        (json!({"struct": "x"}), ".struct: expected map, got &{x}"),
        (json!({"map": [1, "b"]}), ".map: expected map, got &{[1 b]}"),
        (json!({"set": {"a": 1}}), ".set: expected list, got &{map[a:1]}"),
        (
            json!({"map": {"a": "x", "b": 2}}),
            ".map.b: expected string, got &value.valueUnstructured{Value:2}",
        ),
        (json!({"atomic": ["a", 1]}), ".atomic[1]: expected string, got &value.valueUnstructured{Value:1}"),
        (json!({"set": ["a", "a"]}), ".set: duplicate entries for key [=\"a\"]"),
        (
            json!({"set": [{}]}),
            ".set: element 0: associative list without keys has an element that's a map type",
        ),
        (json!({"set": [[]]}), ".set: element 0: not supported: associative list with lists as elements"),
        (
            json!({"set": [null]}),
            ".set: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            json!({"list": [{"k": 1}, {"k": 1, "p": "TCP"}]}),
            ".list: duplicate entries for key [k=1,p=\"TCP\"]",
        ),
        (json!({"list": [{"v": "x"}, {"k": 1}]}), ""),
        (
            json!({"named": [{"v": "x"}]}),
            ".named: element 0: associative list with keys has an element that omits all key fields [\"name\"] (and doesn't have default values for any key fields)",
        ),
        (
            json!({"named": [null]}),
            ".named: element 0: associative list with keys may not have a null element",
        ),
        (
            json!({"named": ["x"]}),
            ".named: element 0: associative list with keys may not have non-map elements",
        ),
        (json!({"list": [{"k": 1, "zz": 1}]}), ".list[k=1,p=\"TCP\"].zz: field not declared in schema"),
        (
            json!({"num": "x", "str": 1}),
            "errors:\n  .num: expected numeric (int or float), got string\n  .str: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (json!([1]), "expected map, got &{[1]}"),
        (
            json!({"metadata": {"name": 1}}),
            ".metadata.name: expected string, got &value.valueUnstructured{Value:1}",
        ),
    ];
    let ty = ty();
    for (value, want) in cases {
        let got = Typed::new(&ty).validate(&value, Duplicates::Refused);
        assert_eq!(got.err().map(|error| error.to_string()).unwrap_or_default(), want, "{value}");
    }
    assert!(Typed::new(&ty).validate(&json!({"set": ["a", "a"]}), Duplicates::Allowed).is_ok());
}

#[test]
fn objects_own_what_they_say() {
    let cases = [
        (json!({"str": "x", "num": null}), ".num\n.str"),
        (json!({"struct": {"a": "x"}}), ".struct.a"),
        (json!({"struct": {}}), ".struct"),
        (json!({"struct": null}), ".struct"),
        (json!({"struct": {"b": {"x": 1, "y": {"z": 1}}}}), ".struct.b.x\n.struct.b.y\n.struct.b.y.z"),
        (json!({"map": {"a": "x"}}), ".map.a"),
        (json!({"map": {}}), ".map"),
        (json!({"atomicMap": {"a": "x"}}), ".atomicMap"),
        (json!({"set": []}), ""),
        (json!({"atomic": []}), ".atomic"),
        (json!({"set": ["b", "a"]}), ".set[=\"a\"]\n.set[=\"b\"]"),
        (json!({"set": ["b", "b"]}), ".set[=\"b\"]"),
        (
            json!({"list": [{"k": 1, "v": "x"}]}),
            ".list[k=1,p=\"TCP\"]\n.list[k=1,p=\"TCP\"].k\n.list[k=1,p=\"TCP\"].v",
        ),
        (json!({"list": [{"k": 1, "v": "x"}, {"k": 1}]}), ".list[k=1,p=\"TCP\"]"),
        (json!({"any": {"a": [1], "b": {"c": 1}}}), ".any.a\n.any.b\n.any.b.c"),
    ];
    let ty = ty();
    for (value, want) in cases {
        assert_eq!(Typed::new(&ty).field_set(&value).to_string(), want, "{value}");
    }
}

#[test]
fn comparisons_name_the_changed_paths() {
    let cases = [
        (json!({"str": "x"}), json!({"str": "x"}), "", "", ""),
        (json!({"num": 1}), json!({"num": 1.0}), "", "", ""),
        (json!({"str": "x"}), json!({"str": "y", "num": 1}), "", ".str", ".num"),
        (json!({}), json!({"struct": {"a": "x"}}), "", "", ".struct\n.struct.a"),
        (json!({"struct": {}}), json!({"struct": {"a": "x"}}), "", "", ".struct.a"),
        (json!({"struct": {"a": "x"}}), json!({"struct": null}), ".struct.a", "", ""),
        (json!({"struct": {}}), json!({"struct": null}), "", ".struct", ""),
        (json!({"set": null}), json!({"set": ["a"]}), "", "", ".set[=\"a\"]"),
        (
            json!({"list": [{"k": 1, "v": "x"}]}),
            json!({}),
            ".list\n.list[k=1,p=\"TCP\"]\n.list[k=1,p=\"TCP\"].k\n.list[k=1,p=\"TCP\"].v",
            "",
            "",
        ),
        (json!({"set": ["a", "b"]}), json!({"set": ["b", "a"]}), "", "", ""),
        (json!({"atomic": ["a", "b"]}), json!({"atomic": ["b", "a"]}), "", ".atomic", ""),
        (json!({"any": {"a": 1}}), json!({"any": "x"}), ".any.a", ".any", ""),
        (json!({"any": "x"}), json!({"any": {"a": 1}}), "", ".any", ".any.a"),
        (json!({"any": [1]}), json!({"any": {"a": 1}}), "", ".any", ".any.a"),
        (json!({"set": ["a", "a"]}), json!({"set": ["a", "a"]}), "", "", ""),
        (json!({"set": ["a", "a"]}), json!({"set": ["a"]}), ".set[=\"a\"]", "", ".set[=\"a\"]"),
        (json!({"set": ["a"]}), json!({"set": ["a", "a"]}), ".set[=\"a\"]", "", ".set[=\"a\"]"),
        (json!({"set": ["a", "a"]}), json!({"set": ["a", "a", "a"]}), "", ".set[=\"a\"]", ""),
    ];
    let ty = ty();
    for (old, new, removed, modified, added) in cases {
        let got = Typed::new(&ty).compare(&old, &new);
        let got = [got.removed, got.modified, got.added].map(|set| set.to_string());
        assert_eq!(got, [removed, modified, added], "{old} -> {new}");
    }
}

#[test]
fn merging_keeps_live_order_for_untouched_items() {
    let set = |items: &[&str]| json!({"set": items});
    let cases = [
        (set(&["a", "b"]), set(&["b", "a"]), set(&["b", "a"])),
        (set(&["a", "b", "c", "d"]), set(&["d", "b"]), set(&["a", "c", "d", "b"])),
        (set(&["a", "b", "c"]), set(&["x", "b"]), set(&["a", "x", "b", "c"])),
        (set(&["a", "b"]), set(&["c"]), set(&["a", "b", "c"])),
        (set(&["a", "a", "b"]), set(&["a"]), set(&["a", "b"])),
        (set(&["a", "a", "b"]), set(&["b"]), set(&["a", "a", "b"])),
        (json!({"set": ["a"]}), json!({"set": null}), json!({"set": ["a"]})),
        (json!({"set": []}), json!({"set": null}), json!({"set": null})),
        (json!({"map": {"a": "1"}}), json!({"map": null}), json!({"map": {"a": "1"}})),
        (json!({"map": {"a": "1"}}), json!({"map": {"b": "2"}}), json!({"map": {"a": "1", "b": "2"}})),
        (
            json!({"atomicMap": {"a": "1"}}),
            json!({"atomicMap": {"b": "2"}}),
            json!({"atomicMap": {"b": "2"}}),
        ),
        (json!({"any": {"a": 1}}), json!({"any": "x"}), json!({"any": "x"})),
        (
            json!({"list": [{"k": 1, "v": "x", "inner": ["a"]}, {"k": 2}]}),
            json!({"list": [{"k": 1, "v": "y", "inner": ["b"]}]}),
            json!({"list": [{"k": 1, "v": "y", "inner": ["a", "b"]}, {"k": 2}]}),
        ),
    ];
    let ty = ty();
    for (live, config, want) in cases {
        assert_eq!(Typed::new(&ty).merge(&live, &config), want, "{live} <- {config}");
    }
}

#[test]
fn items_are_removed_and_extracted() {
    let object = json!({"str": "x", "struct": {"a": "1", "b": {"x": 1}}, "set": ["a", "b"], "atomic": ["z"],
        "list": [{"k": 1, "v": "x"}, {"k": 2, "v": "y"}]});
    let cases = [
        (
            json!({"f:str": {}}),
            json!({"struct": {"a": "1", "b": {"x": 1}}, "set": ["a", "b"], "atomic": ["z"],
            "list": [{"k": 1, "v": "x"}, {"k": 2, "v": "y"}]}),
            json!({"str": "x"}),
        ),
        (
            json!({"f:struct": {"f:a": {}}, "f:set": {"v:\"a\"": {}}, "f:atomic": {}, "f:str": {},
            "f:list": {"k:{\"k\":1,\"p\":\"TCP\"}": {}, "k:{\"k\":2,\"p\":\"TCP\"}": {"f:v": {}}}}),
            json!({"struct": {"b": {"x": 1}}, "set": ["b"], "list": [{"k": 2}]}),
            json!({"str": "x", "struct": {"a": "1"}, "set": ["a"], "atomic": ["z"], "list": [{"k": 1, "v": "x"}, {"v": "y"}]}),
        ),
        (
            json!({"f:set": {"v:\"a\"": {}, "v:\"b\"": {}}, "f:list": {}, "f:atomic": {}, "f:struct": {}, "f:str": {}}),
            json!({"set": null}),
            json!({"set": ["a", "b"], "list": null, "atomic": ["z"], "struct": null, "str": "x"}),
        ),
    ];
    let ty = ty();
    for (items, removed, extracted) in cases {
        let items = FieldSet::from_fields_v1(&items).unwrap();
        assert_eq!(Typed::new(&ty).remove_items(object.clone(), &items), removed, "without\n{items}");
        assert_eq!(Typed::new(&ty).extract_items(&object, &items), extracted, "only\n{items}");
    }
}

#[test]
fn ownership_collapses_where_the_type_became_atomic() {
    let cases = [
        (json!({"f:atomicMap": {"f:a": {}}}), Some(json!({"f:atomicMap": {}}))),
        (json!({"f:atomic": {"v:\"x\"": {}}, "f:str": {}}), Some(json!({"f:atomic": {}, "f:str": {}}))),
        (json!({"f:atomicMap": {}}), None),
        (json!({"f:map": {"f:a": {}}, "f:any": {"f:x": {"f:y": {}}}, "f:unknown": {"f:x": {}}}), None),
    ];
    let ty = ty();
    for (fields, want) in cases {
        let set = FieldSet::from_fields_v1(&fields).unwrap();
        assert_eq!(Typed::new(&ty).reconcile(&set).map(|set| set.to_fields_v1()), want, "{fields}");
    }
}
