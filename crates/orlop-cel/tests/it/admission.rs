//! The environment of admission: what compiles, what it gives, what it costs.

use orlop_cel::admission::{Compiler, Declared, Expression, Fault, Input, POLICY_COST_MAX, Returns, Session};
use orlop_cel::{Authorizer, Budget, Check, CompileError, Decision, Subject, Value};
use serde_json::{Value as Json, json};

const ALL: Declared = Declared { params: true, authorizer: true, patches: true };

struct Weak;

impl Authorizer for Weak {
    fn authorize(&self, check: &Check) -> Decision {
        let trusted = check.subject != Subject::Requester;
        let allowed =
            trusted || check.verb == "get" && (check.resource == "pods" || check.path == "/healthz");
        let reason = if allowed { "" } else { "not held" };
        Decision { allowed, reason: reason.to_owned(), error: None }
    }
}

fn input() -> Input {
    Input {
        object: Value::dynamic(&json!({
            "metadata": {"name": "x", "labels": {"a-b": "c"}}, "spec": {"replicas": 3, "ratio": 0.5},
        })),
        old_object: Value::Null,
        request: Value::dynamic(&json!({
            "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE", "namespace": "ns",
            "userInfo": {"username": "u", "groups": ["g"]}, "dryRun": false, "options": {"kind": "CreateOptions"},
        })),
        params: Value::dynamic(&json!({"max": 2})),
        namespace: Value::dynamic(&json!({"metadata": {"name": "ns", "labels": {"env": "prod"}}})),
        resource: Check::resource("", "pods", "", "ns", "x"),
    }
}

fn compile(source: &str, returns: Returns) -> Result<Expression, CompileError> {
    let mut compiler = Compiler::composed();
    compiler.declare("n", "object.spec.replicas", ALL).expect("compiles");
    compiler.compile(source, ALL, returns)
}

fn evaluate(source: &str, returns: Returns) -> Result<Value, String> {
    let mut compiler = Compiler::composed();
    for (name, expression) in [
        ("n", "object.spec.replicas"),
        ("typed", "[1, 2].map(i, string(i))"),
        ("sum", "variables.n + 1"),
        ("fails", "object.none == 1"),
    ] {
        compiler.declare(name, expression, ALL).expect("compiles");
    }
    let expression = compiler.compile(source, ALL, returns);
    let input = input();
    let session = Session::new(&compiler, &input, Some(&Weak));
    session.evaluate(&expression, &mut Budget::of(POLICY_COST_MAX)).map_err(|fault| fault.to_string())
}

#[test]
fn expressions_hold() {
    for source in [
        "object.spec.replicas == 3 && object.spec.ratio < 1.0 && oldObject == null",
        "object.metadata.labels['a-b'] == 'c' && !has(object.metadata.annotations)",
        "request.operation == 'CREATE' && request.kind.kind == 'Pod' && !request.dryRun",
        "request.userInfo.groups.exists(g, g == 'g') && request.options.kind == 'CreateOptions'",
        "namespaceObject.metadata.labels['env'] == 'prod'",
        "object.spec.replicas > params.max",
        "variables.n == 3 && variables.sum == 4 && variables.typed[0] == '1' && has(variables.n)",
        "true || variables.fails",
        "authorizer.group('').resource('pods').namespace('a').name('b').subresource('log').check('get').allowed()",
        "!authorizer.group('').resource('secrets').check('get').allowed()",
        "authorizer.group('').resource('secrets').check('get').reason() == 'not held'",
        "!authorizer.path('/healthz').check('get').errored()",
        "authorizer.serviceAccount('ns', 'sa').group('apps').resource('deployments').check('delete').allowed()",
        "authorizer.requestResource.check('get').allowed() && !authorizer.requestResource.check('delete').allowed()",
        "authorizer.group('').resource('pods').fieldSelector('a=b').labelSelector('c').check('get').error() == ''",
        "jsonpatch.escapeKey('k8s.io/my~label') == 'k8s.io~1my~0label'",
        "Object{spec: Object.spec{a: 1}}.spec.a == 1",
        "object.metadata.?labels['x'].orValue('') == ''",
    ] {
        assert_eq!(evaluate(source, Returns::Bool).as_ref().map(Value::type_name), Ok("bool"), "{source}");
        assert!(matches!(evaluate(source, Returns::Bool), Ok(Value::Bool(true))), "{source}");
    }
}

#[test]
fn failures_have_the_servers_words() {
    for (source, expected) in [
        ("object.none == 1", "expression 'object.none == 1' resulted in error: no such key: none"),
        ("oldObject.a == 1", "expression 'oldObject.a == 1' resulted in error: no such key: a"),
        (
            "variables.fails",
            "expression 'variables.fails' resulted in error: composited variable \"fails\" fails to evaluate: no such \
             key: none",
        ),
        (
            "authorizer.path(' ').check('get').allowed()",
            "expression 'authorizer.path(' ').check('get').allowed()' resulted in error: path must not be empty",
        ),
        (
            "authorizer.serviceAccount('NS', 'a').path('/').check('get').allowed()",
            "expression 'authorizer.serviceAccount('NS', 'a').path('/').check('get').allowed()' resulted in error: \
             Invalid service account namespace",
        ),
    ] {
        assert_eq!(evaluate(source, Returns::Bool).map(|_| ()), Err(expected.to_owned()), "{source}");
    }
}

#[test]
fn what_does_not_check_is_refused() {
    for (source, returns, expected) in [
        ("object.spec.replicas", Returns::Bool, "must evaluate to bool but got dyn"),
        ("1", Returns::String, "must evaluate to string but got int"),
        ("1", Returns::StringOrNull, "must evaluate to one of [string null_type] but got int"),
        ("{'a': 1}", Returns::Object, "must evaluate to Object but got map(string, int)"),
        ("[Object{}]", Returns::Patches, "must evaluate to list(JSONPatch) but got list(Object)"),
        (
            "request.none == 1",
            Returns::Bool,
            "compilation failed: ERROR: <input>:1:8: undefined field 'none'\n | request.none == 1\n | .......^",
        ),
        (
            "variables.none",
            Returns::Bool,
            "compilation failed: ERROR: <input>:1:10: undefined field 'none'\n | variables.none\n | .........^",
        ),
        (
            "JSONPatch{op: 1}",
            Returns::Patches,
            "compilation failed: ERROR: <input>:1:13: expected type of field 'op' is 'string' but provided type is \
             'int'\n | JSONPatch{op: 1}\n | ............^",
        ),
    ] {
        let error = compile(source, returns).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(error, Err(expected.to_owned()), "{source}");
    }
    let plain = Compiler::plain();
    for source in
        ["params == null", "authorizer.path('/').check('get').allowed()", "variables.a", "Object{} == 1"]
    {
        let error = plain.compile(source, Declared::default(), Returns::Bool).expect_err(source).to_string();
        assert!(error.contains("undeclared reference to"), "{source}: {error}");
    }
}

#[test]
fn patches_become_json() {
    let json = |source: &str, returns: Returns, read: fn(&Value) -> Result<Json, String>| {
        evaluate(source, returns).and_then(|value| read(&value))
    };
    assert_eq!(
        json(
            "Object{metadata: Object.metadata{labels: {'a': 'b'}}, spec: Object.spec{?x: optional.none(), n: 1}}",
            Returns::Object,
            Value::to_configuration
        ),
        Ok(json!({"metadata": {"labels": {"a": "b"}}, "spec": {"n": 1}}))
    );
    assert_eq!(
        json("Object{spec: Object.wrong{}}", Returns::Object, Value::to_configuration),
        Err("type mismatch: unexpected type name \"Object.wrong\", expected \"Object.spec\", which matches field \
             name path from root Object type"
            .to_owned())
    );
    assert_eq!(
        json(
            "[JSONPatch{op: 'add', path: '/a', value: {'b': [1]}}] + (object.spec.replicas > 5 ? [] : \
             [JSONPatch{op: 'copy', from: '/x', path: '/y'}, JSONPatch{op: 'add', path: '/z', value: null}])",
            Returns::Patches,
            Value::to_patch
        ),
        Ok(json!([
            {"op": "add", "path": "/a", "value": {"b": [1]}}, {"op": "copy", "path": "/y", "from": "/x"},
            {"op": "add", "path": "/z", "value": null},
        ]))
    );
}

#[test]
fn three_checks_are_too_many_for_one_expression_and_variables_are_paid_for() {
    let check = "authorizer.path('/').check('get').allowed()";
    let three = format!("{check} || {check} || {check}");
    let error = evaluate(&three, Returns::Bool).map(|_| ());
    assert_eq!(
        error,
        Err(format!(
            "expression '{three}' resulted in error: operation cancelled: actual cost limit exceeded"
        ))
    );
    let mut compiler = Compiler::composed();
    compiler.declare("c", check, ALL).expect("compiles");
    let expression = compiler.compile("variables.c || variables.c", ALL, Returns::Bool);
    let input = input();
    let session = Session::new(&compiler, &input, Some(&Weak));
    let mut budget = Budget::of(700_000);
    assert!(session.evaluate(&expression, &mut budget).is_ok(), "a variable is worked out once");
    assert!(budget.left().is_some_and(|left| left < 350_000), "{budget:?}");
    let fresh = Session::new(&compiler, &input, Some(&Weak));
    assert_eq!(fresh.evaluate(&expression, &mut budget).map(|_| ()), Err(Fault::OutOfBudget));
}

#[test]
fn long_chains_of_variables_end_in_an_error() {
    let mut compiler = Compiler::composed();
    compiler.declare("v0", "1", ALL).expect("compiles");
    for index in 1..2000 {
        let expression = format!("variables.v{} + 1", index - 1);
        compiler.declare(&format!("v{index}"), &expression, ALL).expect("compiles");
    }
    let input = input();
    let session = Session::new(&compiler, &input, None);
    for (name, fine) in [("v50", true), ("v1999", false)] {
        let expression = compiler.compile(&format!("variables.{name} > 0"), ALL, Returns::Bool);
        assert_eq!(session.evaluate(&expression, &mut Budget::of(POLICY_COST_MAX)).is_ok(), fine, "{name}");
    }
}

/// Frames are largest without optimisation, and a server's thread has two mebibytes.
#[test]
fn the_deepest_variables_fit_a_small_stack() {
    let run = || {
        let mut compiler = Compiler::composed();
        compiler.declare("v0", "1", ALL).expect("compiles");
        for index in 1..5 {
            let expression = format!("variables.v{}{}", index - 1, " + 1".repeat(150));
            compiler.declare(&format!("v{index}"), &expression, ALL).expect("compiles");
        }
        let input = input();
        for (name, fine) in [("v2", true), ("v4", false)] {
            let session = Session::new(&compiler, &input, None);
            let expression = compiler.compile(&format!("variables.{name} > 0"), ALL, Returns::Bool);
            assert_eq!(
                session.evaluate(&expression, &mut Budget::of(POLICY_COST_MAX)).is_ok(),
                fine,
                "{name}"
            );
        }
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run).expect("a thread");
    thread.join().expect("no overflow");
}

/// What the original answers, cost included: a line per expression, without namespace, params and authorizer.
#[test]
fn the_original_answers_the_same() {
    let mut compiler = Compiler::composed();
    for (name, expression) in [
        ("n", "object.spec.replicas"),
        ("typed", "[1, 2].map(i, string(i))"),
        ("sum", "variables.n + 1"),
        ("fails", "object.none == 1"),
    ] {
        compiler.declare(name, expression, ALL).expect("compiles");
    }
    let input = Input {
        object: Value::dynamic(&json!({
            "metadata": {"name": "x", "labels": {"a-b": "c"}}, "spec": {"replicas": 3, "ratio": 0.5}, "n": null,
        })),
        request: Value::dynamic(&json!({
            "uid": "", "kind": {"group": "", "version": "", "kind": ""}, "operation": "", "name": "x",
            "resource": {"group": "", "version": "", "resource": ""}, "userInfo": {},
            "object": null, "oldObject": null, "options": null,
        })),
        params: Value::Null,
        namespace: Value::Null,
        ..input()
    };
    let mut wrong = Vec::new();
    for line in include_str!("admission.jsonl").lines() {
        let [source, expected]: [String; 2] = serde_json::from_str(line).expect("a line is a pair");
        let expression = compiler.compile(&source, ALL, Returns::Bool);
        let session = Session::new(&compiler, &input, None);
        let mut budget = Budget::of(POLICY_COST_MAX);
        let found = match session.evaluate(&expression, &mut budget) {
            Ok(Value::Bool(value)) => {
                format!("{value} cost {}", POLICY_COST_MAX - budget.left().unwrap_or_default())
            }
            Ok(other) => other.type_name().to_owned(),
            Err(fault) => fault.to_string(),
        };
        if found != expected {
            wrong.push(format!("{source}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
