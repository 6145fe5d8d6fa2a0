//! Tables of strategic merges, checked against the original.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::schema::Schema;

fn ty() -> ObjectType {
    let named = json!({"type": "array", "items": {"$ref": "#/components/schemas/a.b.Item"},
        "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"});
    let definitions = BTreeMap::from([
        (
            "a.b.Top".to_owned(),
            json!({"type": "object", "properties": {
                "str": {"type": "string"}, "num": {"type": "integer"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "maps": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}}},
                "inner": {"$ref": "#/components/schemas/a.b.Inner"},
                "replaced": {"allOf": [{"$ref": "#/components/schemas/a.b.Inner"}], "x-kubernetes-patch-strategy": "replace"},
                "list": named,
                "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
                "plain": {"type": "array", "items": {"type": "string"}},
                "keyless": {"type": "array", "items": {"$ref": "#/components/schemas/a.b.Item"}, "x-kubernetes-patch-strategy": "merge"},
            }}),
        ),
        (
            "a.b.Inner".to_owned(),
            json!({"type": "object", "properties": {
            "a": {"type": "string"}, "b": {"type": "string"}, "inner": {"$ref": "#/components/schemas/a.b.Inner"}}}),
        ),
        (
            "a.b.Item".to_owned(),
            json!({"type": "object", "properties": {
            "name": {"type": "string"}, "value": {"type": "string"}, "list": named,
            "emptyDir": {"type": "object"}, "secret": {"type": "object"}}}),
        ),
    ]);
    Schema::new(definitions).object_type("a.b.Top").unwrap()
}

#[test]
fn patches_merge_by_type() {
    let items = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
    let cases = [
        (json!({"str": "x"}), json!({"num": 1}), json!({"str": "x", "num": 1})),
        (json!({"str": "x"}), json!({"str": null, "num": null}), json!({})),
        (
            json!({"labels": {"a": "1"}}),
            json!({"labels": {"a": null, "b": "2"}}),
            json!({"labels": {"b": "2"}}),
        ),
        (json!({}), json!({"labels": {"a": null, "b": "2"}}), json!({"labels": {"b": "2"}})),
        (
            json!({"inner": {"a": "1"}}),
            json!({"inner": {"$patch": "replace", "b": "2"}}),
            json!({"inner": {"b": "2"}}),
        ),
        (json!({"inner": {"a": "1"}}), json!({"inner": {"$patch": "delete"}}), json!({"inner": {}})),
        (json!({}), json!({"inner": {"$patch": "merge", "a": "1"}, "str": "x"}), json!({"str": "x"})),
        (json!({"str": "x"}), json!({"$patch": "replace", "num": 1}), json!({"num": 1})),
        (json!({"str": "x"}), json!({"$patch": "delete"}), json!({})),
        (json!({"replaced": {"a": "1"}}), json!({"replaced": {"b": "2"}}), json!({"replaced": {"b": "2"}})),
        (json!({"plain": ["a"]}), json!({"plain": ["b"]}), json!({"plain": ["b"]})),
        (json!({"plain": ["a"]}), json!({"plain": []}), json!({"plain": []})),
        (json!({"set": ["a", "b"]}), json!({"set": ["c", "a"]}), json!({"set": ["c", "a", "b"]})),
        (
            json!({"set": ["a", "b", "c"]}),
            json!({"$deleteFromPrimitiveList/set": ["b"]}),
            json!({"set": ["a", "c"]}),
        ),
        (
            json!({"set": ["a", "b", "c"]}),
            json!({"$deleteFromPrimitiveList/set": ["b"], "set": ["d"]}),
            json!({"set": ["d", "a", "c"]}),
        ),
        (
            json!({"set": ["a", "b", "c"]}),
            json!({"$setElementOrder/set": ["c", "a"]}),
            json!({"set": ["b", "c", "a"]}),
        ),
        (
            json!({"list": [{"name": "a", "value": "1"}, {"name": "b"}]}),
            json!({"list": [{"name": "c"}, {"name": "a", "value": "2"}]}),
            json!({"list": [{"name": "c"}, {"name": "a", "value": "2"}, {"name": "b"}]}),
        ),
        (
            json!({"list": items(&["a", "b", "c"])}),
            json!({"list": [{"name": "b", "$patch": "delete"}]}),
            json!({"list": items(&["a", "c"])}),
        ),
        (
            json!({"list": items(&["a", "b"])}),
            json!({"list": [{"$patch": "replace"}, {"name": "z"}]}),
            json!({"list": items(&["z"])}),
        ),
        (
            json!({"list": items(&["a", "b", "c"])}),
            json!({"$setElementOrder/list": items(&["c", "a"]), "list": [{"name": "c", "value": "1"}]}),
            json!({"list": [{"name": "b"}, {"name": "c", "value": "1"}, {"name": "a"}]}),
        ),
        (
            json!({"list": [{"name": "a", "emptyDir": {}}]}),
            json!({"list": [{"name": "a", "$retainKeys": ["name", "secret"], "secret": {}}]}),
            json!({"list": [{"name": "a", "secret": {}}]}),
        ),
        (
            json!({"list": [{"name": "a", "list": items(&["x"])}]}),
            json!({"list": [{"name": "a", "list": [{"name": "y"}]}]}),
            json!({"list": [{"name": "a", "list": items(&["y", "x"])}]}),
        ),
        (json!({"list": []}), json!({"list": []}), json!({"list": []})),
        (
            json!({}),
            json!({"list": [{"name": "b", "$patch": "delete"}, {"name": "a"}]}),
            json!({"list": items(&["a"])}),
        ),
    ];
    let ty = ty();
    for (object, patch, want) in cases {
        assert_eq!(apply(&ty, object.clone(), patch.clone()), Ok(want), "{object} <- {patch}");
    }
}

#[test]
fn errors_say_what_the_original_says() {
    use StrategicError::{BadRequest, Internal, Unprocessable};
    let object = json!({"str": "x", "inner": {"a": "1"}, "list": [{"name": "a"}], "set": ["a"], "keyless": [{"name": "a"}],
        "maps": {"a": {"b": "c"}}});
    let cases = [
        (json!([]), BadRequest("json: cannot unmarshal array into Go value of type map[string]interface {}".into())),
        (json!({"$patch": "nope", "num": 1}), Internal("unknown patch type: nope in map: map[$patch:nope num:1]".into())),
        (json!({"inner": {"$patch": 5}}), Internal("unknown patch type: %!s(int64=5) in map: map[$patch:5]".into())),
        (json!({"inner": {"$patch": "merge"}}), Internal("unknown patch type: merge in map: map[$patch:merge]".into())),
        (json!({"list": [{"value": "x"}]}), Internal("map: map[value:x] does not contain declared merge key: name".into())),
        (json!({"list": [{"$patch": "delete"}]}), Internal("map: map[$patch:delete] does not contain declared merge key: name".into())),
        (json!({"list": [{"name": "a", "$patch": "merge"}]}), Internal("merging lists cannot yet be specified in the patch".into())),
        (json!({"list": [{"name": "a", "$patch": "x"}]}), Internal("unknown patch type: x in map: map[$patch:x name:a]".into())),
        (json!({"list": ["x"]}), Internal("list element types are not identical: [[map[name:a]] [x]]".into())),
        (json!({"set": [1]}), Internal("list element types are not identical: [[a] [1]]".into())),
        (json!({"keyless": [{"name": "b"}]}), Internal("cannot merge lists without merge key for struct".into())),
        (json!({"maps": {"a": {"b": "d"}}}), Internal("merging an object in json but data type is not struct, instead is: map".into())),
        (json!({"inner": {"$retainKeys": "a"}}), BadRequest("invalid patch format of retainKeys".into())),
        (json!({"inner": {"$retainKeys": ["a"], "b": "1"}}), BadRequest("invalid patch format of retainKeys".into())),
        (json!({"$deleteFromPrimitiveList": ["a"]}), BadRequest("invalid patch format of primitive list".into())),
        (json!({"$setElementOrder": ["a"]}), BadRequest("invalid patch format of setElementOrder list".into())),
        (json!({"$setElementOrder/list": "a"}), Internal("expected a []interface {}, but received a string".into())),
        (json!({"$setElementOrder/none": ["a"]}), Internal("unable to find api field in struct Top for the json field \"none\"".into())),
        (
            json!({"$setElementOrder/list": [{"name": "a"}], "list": [{"name": "z"}]}),
            Internal("The order in patch list:\n[map[name:z]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n".into()),
        ),
    ];
    let ty = ty();
    for (patch, want) in cases {
        assert_eq!(apply(&ty, object.clone(), patch.clone()), Err(want), "{patch}");
    }
    let lists = apply(&ty, json!({"set": []}), json!({"set": [["a"]]}));
    assert_eq!(lists, Err(Unprocessable("lists of lists are not supported".into())));
}
