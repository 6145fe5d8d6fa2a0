use super::*;
use crate::field::go_float;
use serde_json::json;

fn texts(errors: &[FieldError]) -> Vec<String> {
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}

#[test]
fn values_are_judged_in_the_words_of_kubernetes() {
    for (schema, value, errors) in [
        (json!({"type": "string"}), json!("x"), vec![]),
        (
            json!({"type": "string"}),
            json!(1),
            vec![r#"v: Invalid value: "integer": v in body must be of type string: "integer""#],
        ),
        (
            json!({"type": "integer"}),
            json!(1.5),
            vec![
                r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in v"#,
                r#"v: Invalid value: "number": v in body must be of type integer: "number""#,
            ],
        ),
        (json!({"type": "integer"}), json!(1.0), vec![]),
        (json!({"type": "number"}), json!(3), vec![]),
        (
            json!({"type": "string"}),
            json!(null),
            vec![r#"v: Invalid value: "null": v in body must be of type string: "null""#],
        ),
        (json!({"type": "string", "nullable": true}), json!(null), vec![]),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(2_147_483_648_i64),
            vec![r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in v"#],
        ),
        (
            json!({"type": "number", "format": "float"}),
            json!(1e39),
            vec![r#"<nil>: Invalid value: "": Checked value must be of type number with format float in v"#],
        ),
        (
            json!({"type": "integer", "minimum": 1, "maximum": 3}),
            json!(0),
            vec!["v: Invalid value: 0: v in body should be greater than or equal to 1"],
        ),
        (
            json!({"type": "integer", "maximum": 3, "exclusiveMaximum": true}),
            json!(3),
            vec!["v: Invalid value: 3: v in body should be less than 3"],
        ),
        (
            json!({"type": "number", "multipleOf": 0.5}),
            json!(1.25),
            vec!["v: Invalid value: 1.25: v in body should be a multiple of 0.5"],
        ),
        (
            json!({"type": "string", "maxLength": 2}),
            json!("abc"),
            vec!["v: Too long: may not be more than 2 bytes"],
        ),
        (
            json!({"type": "string", "minLength": 2, "pattern": "^a"}),
            json!("b"),
            vec![r#"v: Invalid value: "b": v in body should be at least 2 chars long"#],
        ),
        (
            json!({"type": "string", "pattern": "^a"}),
            json!("b"),
            vec![r#"v: Invalid value: "b": v in body should match '^a'"#],
        ),
        (
            json!({"type": "string", "format": "date"}),
            json!("x"),
            vec![r#"v: Invalid value: "x": v in body must be of type date: "x""#],
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            vec![r#"v: Unsupported value: "c": supported values: "a", "b""#],
        ),
        (
            json!({"type": "integer", "enum": [1, 2]}),
            json!(3),
            vec![r#"v: Unsupported value: 3: supported values: "1", "2""#],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 1, "minItems": 1}),
            json!(["a", 1]),
            vec![
                "v: Too many: 2: must have at most 1 item",
                r#"v[1]: Invalid value: "integer": v[1] in body must be of type string: "integer""#,
            ],
        ),
        (
            json!({"type": "object", "maxProperties": 1, "required": ["c"],
                "additionalProperties": {"type": "integer"}}),
            json!({"a": 1, "b": "x"}),
            vec![
                r#"v.b: Invalid value: "string": v.b in body must be of type integer: "string""#,
                "v.c: Required value",
                "v: Too many: 2: must have at most 1 item",
            ],
        ),
        (
            json!({"type": "object", "additionalProperties": false}),
            json!({"a": 1}),
            vec![r#"v: Invalid value: "a": v.a in body is a forbidden property"#],
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            vec![r#"v: Invalid value: "boolean": v in body must be of type integer,string: "boolean""#],
        ),
        (
            json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({}),
            vec![
                r#"<nil>: Invalid value: "": "v" must validate at least one schema (anyOf)"#,
                "v.a: Required value",
            ],
        ),
        (
            json!({"type": "integer", "oneOf": [{"minimum": 1}, {"minimum": 2}]}),
            json!(3),
            vec![
                r#"<nil>: Invalid value: "": "v" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
            ],
        ),
        (
            json!({"type": "integer", "allOf": [{"minimum": 5}], "not": {"maximum": 9}}),
            json!(3),
            vec![
                r#"<nil>: Invalid value: "": "v" must not validate the schema (not)"#,
                r#"<nil>: Invalid value: "": "v" must validate all the schemas (allOf). None validated"#,
                "v: Invalid value: 3: v in body should be greater than or equal to 5",
            ],
        ),
    ] {
        let whole = Schema::parse(&json!({"type": "object", "properties": {"v": schema}}));
        assert_eq!(texts(&validate(&json!({"v": value}), &whole, None)), errors, "{schema} {value}");
    }
}

#[test]
fn what_was_wrong_before_and_has_not_changed_is_forgiven() {
    let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
        "items": {"type": "object", "properties": {"n": {"type": "string"}, "v": {"type": "string", "maxLength": 1}}}});
    let schema = Schema::parse(&json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1},
        "l": {"type": "array", "items": {"type": "string", "maxLength": 1}},
        "m": map,
        "o": {"type": "object", "required": ["x"], "properties": {"x": {}, "y": {"type": "string"}}},
        "p": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "maxProperties": 0},
    }}));
    for (old, new, errors) in [
        (json!({"a": "xx"}), json!({"a": "xx", "o": {"x": 1}}), vec![]),
        (json!({"a": "xx"}), json!({"a": "xy"}), vec!["a: Too long: may not be more than 1 byte"]),
        (json!({"l": ["xx"]}), json!({"l": ["xx"]}), vec![]),
        (
            json!({"l": ["xx"]}),
            json!({"l": ["xx", "y"]}),
            vec!["l[0]: Too long: may not be more than 1 byte"],
        ),
        (
            json!({"m": [{"n": "a", "v": "xx"}]}),
            json!({"m": [{"n": "b", "v": "x"}, {"n": "a", "v": "xx"}]}),
            vec![],
        ),
        (
            json!({"m": [{"n": "a", "v": "xx"}]}),
            json!({"m": [{"n": "c", "v": "xx"}]}),
            vec!["m[0].v: Too long: may not be more than 1 byte"],
        ),
        (json!({"o": {"y": "1"}}), json!({"o": {"y": "1"}}), vec![]),
        (json!({"o": {"y": "1"}}), json!({"o": {"y": "2"}}), vec!["o.x: Required value"]),
        (json!({"p": {"z": 1}}), json!({"p": {"z": 1}}), vec!["p: Too many: 1: must have at most 0 items"]),
    ] {
        assert_eq!(texts(&validate_update(&new, &schema, &old, None)), errors, "{old} -> {new}");
    }
}

#[test]
fn paths_are_relative_to_the_prefix() {
    let schema =
        Schema::parse(&json!({"type": "object", "required": ["a"], "properties": {"b": {"type": "string"}}}));
    let errors = validate(&json!({"b": 1}), &schema, Some(&Path::new("status")));
    assert_eq!(
        texts(&errors),
        [
            "status.a: Required value",
            r#"status.b: Invalid value: "integer": b in body must be of type string: "integer""#,
        ]
    );
}

#[test]
fn floats_are_spelled_as_in_go() {
    for (float, text) in
        [(5.0, "5"), (0.5, "0.5"), (1e21, "1e+21"), (1e20, "100000000000000000000"), (1e-7, "1e-07")]
    {
        assert_eq!(go_float(float), text);
    }
}
