//! No text makes the compiler or the evaluator panic, and depth is bounded.

use orlop_cel::admission::{Compiler, Declared, Input, POLICY_COST_MAX, Returns, Session};
use orlop_cel::{Budget, Env, Node, OldSelf, Output, Program, Value};
use orlop_schema::structural::Schema;
use proptest::prelude::*;
use serde_json::json;

fn schema() -> Schema {
    Schema::parse(&json!({"type": "object", "properties": {
        "s": {"type": "string"}, "i": {"type": "integer"}, "l": {"type": "array", "items": {"type": "integer"}},
        "m": {"type": "object", "additionalProperties": {"type": "string"}}, "x": {"x-kubernetes-int-or-string": true}}}))
}

fn run(source: &str) -> Option<Value> {
    let schema = schema();
    let env = Env::crd(&schema, Node::Inner).ok()?;
    let program = Program::compile(source, &env, OldSelf::Required, Output::Bool).ok()?;
    let object = json!({"s": "ä1", "i": -3, "l": [1, 2, i64::MIN], "m": {"k": "v"}, "x": "5"});
    program.evaluate(&schema, &object, None, &mut Budget::object()).ok()
}

/// Words of which most sequences nearly parse.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "self",
        ".s",
        ".i",
        ".l",
        ".m",
        ".x",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "<",
        "&&",
        "||",
        "!",
        "?",
        ":",
        ",",
        "'a'",
        "\"ä\"",
        "1",
        "2u",
        "3.5",
        "0",
        "-9223372036854775808",
        "true",
        "null",
        "has(self.s)",
        ".size()",
        ".all(x, x > 0)",
        ".map(x, x)",
        ".sum()",
        ".max()",
        ".substring(1)",
        ".split('')",
        ".indexOf('1', 5)",
        ".lastIndexOf('', 9)",
        ".slice(0, 9)",
        "duration('1h')",
        "timestamp(0)",
        "quantity('1')",
        ".orValue(1)",
        ".?i",
        "[?0]",
        " in ",
        "dyn(self.x)",
        ".format([1])",
        ".replace('', 'x')",
        ".flatten()",
        ".sortBy(x, -x)",
        "lists.range(3)",
        ".transformMap(k, v, v)",
        "string(",
        "int(",
    ]);
    prop::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,60}") {
        run(&text);
    }

    #[test]
    fn no_near_expression_panics(text in words()) {
        run(&text);
        run(&format!("string(dyn({text})) == ''"));
        run(&format!("dyn({text}) == dyn({text})"));
    }
}

#[test]
fn depth_is_bounded() {
    let nest = |n: usize, open: &str, core: &str, close: &str| {
        format!("{}{core}{}", open.repeat(n), close.repeat(n))
    };
    for n in [40, 49, 110, 150, 300, 5000] {
        run(&nest(n, "(", "true", ")"));
        run(&nest(n, "[", "", "]"));
        run(&nest(n, "[1].all(x, ", "true", ")"));
        run(&nest(n, "[1].map(x, ", "x", ")"));
        run(&nest(n, "!", "true", ""));
        run(&nest(n, "true ? true : ", "true", ""));
        run(&nest(n, "", "self.l", "[0]"));
        run(&nest(n, "1 + ", "1 == 1", ""));
        run(&nest(n, "{'a': ", "1", "}"));
        run(&nest(n, "optional.of(", "1", ").optMap(x, x)"));
        assert!(matches!(run(&nest(n, "true && ", "true", "")), Some(Value::Bool(true))));
    }
    assert!(matches!(run(&nest(45, "(", "true", ")")), Some(Value::Bool(true))));
}

#[test]
fn runaway_rules_are_stopped() {
    let cases = [
        "lists.range(9000000000000).size() > 0",
        "lists.range(100000).map(x, x).size() > 0",
        "lists.range(3000).all(x, lists.range(3000).all(y, true))",
    ];
    for source in cases {
        assert!(run(source).is_none(), "{source}");
    }
}

/// The same for policies: dynamic objects, patches and questions.
fn policy_words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "object",
        ".a",
        "['b']",
        ".?c",
        "oldObject",
        "request",
        ".name",
        "variables",
        ".v",
        "authorizer",
        ".group('')",
        ".resource('r')",
        ".check('get')",
        ".allowed()",
        "Object",
        "{",
        "a:",
        "?b:",
        "}",
        "JSONPatch",
        "{op:",
        "'x'",
        ",",
        "1",
        "==",
        "+",
        "&&",
        "?",
        ":",
        "[",
        "]",
        "(",
        ")",
        "has(object.a)",
        ".map(x, x)",
        "null",
        "params",
        "namespaceObject",
        ".spec",
        "jsonpatch.escapeKey('/')",
        "type",
        ".orValue(1)",
    ]);
    prop::collection::vec(word, 1..12).prop_map(|words| words.concat())
}

fn run_policy(source: &str) {
    let declared = Declared { params: true, authorizer: true, patches: true };
    let mut compiler = Compiler::composed();
    let _ = compiler.declare("v", source, declared);
    let input = Input {
        object: Value::dynamic(&json!({"a": {"b": [1, null]}, "c": 1.5})),
        old_object: Value::Null,
        request: Value::dynamic(&json!({"name": "n"})),
        params: Value::Null,
        namespace: Value::Null,
        resource: orlop_cel::Check::resource("", "r", "", "", ""),
    };
    let session = Session::new(&compiler, &input, None);
    for source in [source, "variables.v == 1"] {
        let compiled = compiler.compile(source, declared, Returns::Anything);
        if let Ok(value) = session.evaluate(&compiled, &mut Budget::of(POLICY_COST_MAX)) {
            let _ = (value.to_json(), value.to_patch(), value.to_configuration());
        }
    }
}

proptest! {
    #[test]
    fn no_policy_panics(source in policy_words()) {
        run_policy(&source);
    }
}
