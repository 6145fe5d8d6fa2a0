//! Which OpenAPI schemas give which merge types.

use serde_json::json;

use super::*;

fn definitions() -> BTreeMap<String, Value> {
    let all = json!({
        "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
        "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
        "Top": {
            "type": "object",
            "required": ["items", "count"],
            "properties": {
                "spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "default": {}},
                "pointer": {"$ref": "#/definitions/Spec"},
                "atomic": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "x-kubernetes-map-type": "atomic"},
                "items": {"type": "array", "items": {"type": "string"}},
                "count": {"type": "integer", "default": 0},
                "time": {"type": "string", "format": "date-time", "default": {}},
                "gone": {"$ref": "#/components/schemas/Nowhere"},
            },
        },
        "Spec": {"type": "object", "properties": {"self": {"$ref": "#/components/schemas/Spec"}}},
    });
    let Value::Object(all) = all else { return BTreeMap::new() };
    all.into_iter().collect()
}

fn describe(schema: &Schema, ty: &TypeRef) -> String {
    let Some(atom) = schema.resolve(ty) else { return "missing".into() };
    let mut out = Vec::new();
    if let Some(scalar) = atom.scalar {
        out.push(format!("{scalar:?}"));
    }
    if let Some(list) = atom.list {
        out.push(format!("{}list{:?}", if list.associative { "associative " } else { "" }, list.list.keys));
    }
    if let Some(map) = atom.map {
        let open = if map.map.element.is_some() { "open " } else { "" };
        out.push(format!("{}{open}map[{}]", if map.atomic { "atomic " } else { "" }, map.map.fields.len()));
    }
    out.join(" ")
}

#[test]
fn schemas_convert_to_types() {
    let any = "Untyped list[] open map[0]";
    let cases = [
        (json!({}), any),
        (json!({"x-kubernetes-int-or-string": true}), any),
        (json!({"type": "integer"}), "Numeric"),
        (json!({"type": "number", "format": "double"}), "Numeric"),
        (json!({"type": "boolean"}), "Boolean"),
        (json!({"type": "string"}), "String"),
        (json!({"type": "string", "format": "byte"}), "String"),
        (json!({"type": "string", "format": "int-or-string"}), "Untyped"),
        (json!({"type": "string", "format": "date-time"}), "Untyped"),
        (json!({"type": "object"}), "open map[0]"),
        (json!({"type": "object", "properties": {"a": {}}}), "map[1]"),
        (
            json!({"type": "object", "properties": {"a": {}}, "x-kubernetes-preserve-unknown-fields": true}),
            "open map[1]",
        ),
        (json!({"type": "object", "additionalProperties": false}), "map[0]"),
        (json!({"type": "object", "additionalProperties": true}), "open map[0]"),
        (json!({"type": "object", "x-kubernetes-map-type": "atomic"}), "atomic open map[0]"),
        (json!({"type": "array", "items": {}}), "list[]"),
        (json!({"type": "array", "items": {}, "x-kubernetes-list-type": "set"}), "associative list[]"),
        (
            json!({"type": "array", "items": {}, "x-kubernetes-list-type": "map",
                   "x-kubernetes-list-map-keys": ["a", "b"]}),
            "associative list[\"a\", \"b\"]",
        ),
        (
            json!({"type": "array", "items": {}, "x-kubernetes-patch-strategy": "merge,retainKeys",
                   "x-kubernetes-patch-merge-key": "name"}),
            "associative list[\"name\"]",
        ),
        (
            json!({"type": "array", "items": {}, "x-kubernetes-list-type": "atomic",
                   "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"}),
            "list[]",
        ),
    ];
    let schema = Schema::new(BTreeMap::new());
    for (open_api, want) in cases {
        let ty = TypeRef::Inline(Box::new(convert::inline(&schema, &open_api, false)));
        assert_eq!(describe(&schema, &ty), want, "{open_api}");
    }
}

#[test]
fn references_resolve_when_used() {
    let schema = Schema::new(definitions());
    let top = schema.object_type("Top").unwrap();
    let fields = &schema.resolve(top.root()).unwrap().map.unwrap().map.fields;
    let cases = [("spec", "map[1]"), ("pointer", "map[1]"), ("atomic", "atomic map[1]"), ("gone", "missing")];
    for (field, want) in cases {
        assert_eq!(describe(&schema, &fields[field].ty), want, "{field}");
    }
    assert!(schema.object_type("Nowhere").is_none());
    for (name, want) in [
        ("io.k8s.apimachinery.pkg.api.resource.Quantity", "Untyped"),
        ("io.k8s.apimachinery.pkg.runtime.RawExtension", "Untyped list[] atomic open map[0]"),
    ] {
        assert_eq!(describe(&schema, schema.object_type(name).unwrap().root()), want);
    }
}

#[test]
fn the_empty_object_has_structs_but_no_pointers() {
    let top = Schema::new(definitions()).object_type("Top").unwrap();
    assert_eq!(Value::Object(top.empty()), json!({"spec": {}, "items": null, "count": 0}));
}

#[test]
fn custom_resources_get_object_metadata() {
    let open_api = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"template": {
            "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
        }}},
    }});
    let ty = Schema::custom_resource(Some(&open_api), UnknownFields::Refused);
    let schema = ty.schema();
    let root = schema.resolve(ty.root()).unwrap().map.unwrap().map;
    assert_eq!(describe(schema, ty.root()), "map[4]");
    let metadata = schema.resolve(&root.fields["metadata"].ty).unwrap().map.unwrap().map;
    for (field, want) in [
        ("labels", "open map[0]"),
        ("finalizers", "associative list[]"),
        ("ownerReferences", "associative list[\"uid\"]"),
        ("managedFields", "list[]"),
        ("creationTimestamp", "Untyped"),
    ] {
        assert_eq!(describe(schema, &metadata.fields[field].ty), want, "{field}");
    }
    let spec = schema.resolve(&root.fields["spec"].ty).unwrap().map.unwrap().map;
    assert_eq!(describe(schema, &spec.fields["template"].ty), "open map[3]");

    let schemaless = Schema::custom_resource(None, UnknownFields::Refused);
    assert_eq!(describe(schemaless.schema(), schemaless.root()), "Untyped list[] open map[0]");
}
