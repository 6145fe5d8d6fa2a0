//! Rules of definitions and the answers of the real server to them.

use orlop_cel::Budget;
use orlop_cel::rules::{check, compile, validate};
use orlop_schema::field::Path;
use orlop_schema::structural::Schema;
use serde_json::{Value as Json, json};

fn spec_schema(rules: Json) -> Schema {
    Schema::parse(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {
            "a": {"type": "integer"}, "b": {"type": "integer"}, "s": {"type": "string"},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "l": {"type": "array", "items": {"type": "string"}}
        },
        "x-kubernetes-validations": rules
    }}}))
}

const BUDGET: &str = "exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)";

#[test]
fn definitions_are_refused_with_the_words_of_the_server() {
    let operand = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
    let table = [
        ("self.a > 1 && self.b < 5", None),
        ("!has(self.a) || self.a > 1", None),
        ("has(self)", Some("compilation failed: ERROR: <input>:1:5: invalid argument to has() macro\n | has(self)\n | ....^".to_owned())),
        (
            "self.a >",
            Some(format!("compilation failed: ERROR: <input>:1:9: Syntax error: mismatched input '<EOF>' expecting {operand}\n | self.a >\n | ........^")),
        ),
        ("self.zz == 1", Some("compilation failed: ERROR: <input>:1:5: undefined field 'zz'\n | self.zz == 1\n | ....^".to_owned())),
        (
            "self.s.matches('(')",
            Some("compilation failed: ERROR: <input>:1:16: invalid matches argument\n | self.s.matches('(')\n | ...............^".to_owned()),
        ),
        (
            "[1, 'a'].size() > 0",
            Some("compilation failed: ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a'].size() > 0\n | ....^".to_owned()),
        ),
        ("self.a", Some("cel expression must evaluate to a bool".to_owned())),
        ("self.l.all(x, self.l.all(y, self.l.all(z, x == y && y == z)))", Some(format!("estimated rule cost {BUDGET}"))),
        ("self.l.all(x, x.contains('a'))", Some(format!("estimated rule cost {BUDGET}"))),
    ];
    for (rule, expected) in table {
        let found = check(&spec_schema(json!([{"rule": rule}])), &Path::new("s"));
        assert_eq!(found.first().map(|error| error.detail.clone()), expected, "{rule}");
    }
}

#[test]
fn a_refused_rule_is_printed_whole() {
    let found = check(&spec_schema(json!([{"rule": "self.zz > 1"}])), &Path::new("s"));
    assert_eq!(
        found[0].to_string(),
        "s.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.zz \\u003e 1\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:5: undefined field 'zz'\n | self.zz > 1\n | ....^"
    );
}

#[test]
fn too_much_cost_is_told_three_times() {
    let found = check(
        &spec_schema(json!([{"rule": "true", "messageExpression": "'x' + string(self.a)"}])),
        &Path::new("s"),
    );
    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
    let at = "s.properties[spec].x-kubernetes-validations[0].messageExpression";
    assert_eq!(
        texts,
        [
            format!("{at}: Forbidden: estimated messageExpression cost {BUDGET}"),
            format!(
                "{at}: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            ),
            format!(
                "s: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema {BUDGET}"
            ),
        ]
    );
}

#[test]
fn objects_are_judged() {
    let table = [
        (
            json!({"rule": "self.a <= self.b", "message": "a must not exceed b"}),
            json!({"a": 3, "b": 2}),
            None,
            vec!["spec: Invalid value: a must not exceed b"],
        ),
        (
            json!({"rule": "self.a <= self.b", "message": "m"}),
            json!({"a": 3}),
            None,
            vec!["spec: Invalid value: \"object\": no such key: b evaluating rule: m"],
        ),
        (
            json!({"rule": "self.s == 'x'"}),
            json!({"s": "y"}),
            None,
            vec!["spec: Invalid value: failed rule: self.s == 'x'"],
        ),
        (
            json!({"rule": "self.s == 'x'", "messageExpression": "'is ' + self.s"}),
            json!({"s": "y"}),
            None,
            vec!["spec: Invalid value: is y"],
        ),
        (json!({"rule": "self.a == oldSelf.a"}), json!({"a": 1}), None, vec![]),
        (
            json!({"rule": "self.a == oldSelf.a"}),
            json!({"a": 1}),
            Some(json!({"a": 2})),
            vec!["spec: Invalid value: failed rule: self.a == oldSelf.a"],
        ),
        (
            json!({"rule": "oldSelf.hasValue() || self.a == 1", "optionalOldSelf": true}),
            json!({"a": 2}),
            None,
            vec!["spec: Invalid value: failed rule: oldSelf.hasValue() || self.a == 1"],
        ),
        (
            json!({"rule": "false", "reason": "FieldValueForbidden", "fieldPath": ".a"}),
            json!({"a": 2}),
            None,
            vec!["spec.a: Forbidden: failed rule: false"],
        ),
    ];
    for (rule, spec, old, expected) in table {
        let schema = spec_schema(json!([rule]));
        let compiled = compile(&schema).unwrap();
        let old = old.map(|old| json!({"spec": old}));
        let found = validate(&compiled, &schema, &json!({"spec": spec}), old.as_ref(), &mut Budget::object());
        let texts: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected, "{rule}");
    }
}

#[test]
fn unchanged_data_only_warns() {
    let schema = Schema::parse(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 10"}]}, "b": {"type": "string"}}}}}),
    );
    let compiled = compile(&schema).unwrap();
    let object = json!({"spec": {"a": 1, "b": "1"}});
    let found =
        validate(&compiled, &schema, &object, Some(&json!({"spec": {"a": 1}})), &mut Budget::object());
    assert_eq!(found.warnings, ["spec.a: Invalid value: 1: failed rule: self > 10"]);
    assert!(found.errors.is_empty());
}
