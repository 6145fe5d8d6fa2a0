//! Admission policies: what they refuse, warn of and change, and that they do so from the write that makes them.

use crate::client::{APPLY, Client, JSON_PATCH, MERGE_PATCH, Object as _, admin, builder};
use crate::objects::{
    CONFIG_MAPS, DEFINITIONS, PODS, RBAC, WIDGETS, binding, config_map, named, pod, widget, widgets,
};
use orlop_apiserver::User;
use serde_json::{Value, json};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";

fn rules(resources: &str, operations: &[&str]) -> Value {
    let (group, resource) = resources.split_once(':').unwrap_or(("", resources));
    json!({"resourceRules": [{
        "apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": operations,
    }]})
}

/// Creates a validating policy for ConfigMaps with these fields in its spec, and a binding with these.
async fn validating(client: &Client, spec: Value, bound: Value) {
    let mut whole = json!({"matchConstraints": rules("configmaps", &["*"])});
    merge(&mut whole, spec);
    let policy = json!({"metadata": {"name": "p"}, "spec": whole});
    client.create(&format!("{POLICIES}/validatingadmissionpolicies"), &policy).await;
    let mut whole = json!({"policyName": "p", "validationActions": ["Deny"]});
    merge(&mut whole, bound);
    let binding = json!({"metadata": {"name": "b"}, "spec": whole});
    client.create(&format!("{POLICIES}/validatingadmissionpolicybindings"), &binding).await;
}

/// Creates a mutating policy for ConfigMaps with these fields in its spec, and a binding.
async fn mutating(client: &Client, name: &str, spec: Value) {
    let mut whole = json!({
        "matchConstraints": rules("configmaps", &["CREATE", "UPDATE"]), "reinvocationPolicy": "Never",
    });
    merge(&mut whole, spec);
    let policy = json!({"metadata": {"name": name}, "spec": whole});
    client.create(&format!("{POLICIES}/mutatingadmissionpolicies"), &policy).await;
    let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
    client.create(&format!("{POLICIES}/mutatingadmissionpolicybindings"), &binding).await;
}

fn merge(into: &mut Value, fields: Value) {
    let Value::Object(fields) = fields else { return };
    for (name, value) in fields {
        into[name] = value;
    }
}

fn apply(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patch(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

#[tokio::test(start_paused = true)]
async fn a_policy_says_why_it_denies() {
    let denied = |why: &str| {
        format!(
            "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: {why}"
        )
    };
    for (spec, bound, code, why) in [
        (json!({"validations": [{"expression": " 1 > 2 "}]}), json!({}), 422, "failed expression: 1 > 2"),
        (json!({"validations": [{"expression": "false", "message": " no "}]}), json!({}), 422, "no"),
        (
            json!({"validations": [{
                "expression": "false", "message": "no", "messageExpression": "'not ' + object.metadata.name",
            }]}),
            json!({}),
            422,
            "not x",
        ),
        (
            json!({"validations": [{"expression": "false", "message": "no", "messageExpression": "'a\\nb'"}]}),
            json!({}),
            422,
            "no",
        ),
        (
            json!({"validations": [{"expression": "false", "message": "no", "reason": "Forbidden"}]}),
            json!({}),
            403,
            "no",
        ),
        (
            json!({"validations": [{"expression": "object.data.none == ''"}]}),
            json!({}),
            422,
            "expression 'object.data.none == ''' resulted in error: no such key: none",
        ),
        (
            json!({
                "variables": [{"name": "a", "expression": "object.data"}, {"name": "b", "expression": "variables.a.key"}],
                "validations": [{"expression": "variables.b == 'other'", "messageExpression": "'is ' + variables.b"}],
            }),
            json!({}),
            422,
            "is 1",
        ),
        (
            json!({"paramKind": {"apiVersion": "v1", "kind": "Secret"}, "validations": [{"expression": "true"}]}),
            json!({"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}}),
            422,
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
        ),
    ] {
        let client = admin();
        validating(&client, spec, bound).await;
        let reply = client.post(CONFIG_MAPS, &config_map("x", "1")).await;
        let (found, _, message) = reply.refusal();
        assert_eq!((found, message), (code, denied(why)));
        let causes = reply.json()["details"]["causes"].clone();
        assert_eq!(causes[0]["message"].as_str().map(|text| text.ends_with(why)), Some(true), "{causes}");
    }
}

#[tokio::test(start_paused = true)]
async fn actions_and_failure_policy_decide_what_a_denial_means() {
    let fails = json!([{"expression": "object.data.none == ''"}]);
    let denies = json!([{"expression": "false", "message": "no"}]);
    for (spec, actions, code, warnings) in [
        (json!({"validations": denies}), json!(["Deny", "Audit"]), 422, 0),
        (json!({"validations": denies}), json!(["Warn"]), 201, 1),
        (json!({"validations": denies}), json!(["Audit"]), 201, 0),
        (json!({"validations": fails}), json!(["Deny"]), 422, 0),
        (json!({"validations": fails, "failurePolicy": "Ignore"}), json!(["Deny"]), 201, 0),
        (
            json!({
                "validations": [{"expression": "true"}],
                "auditAnnotations": [{"key": "k", "valueExpression": "'a' + object.data.none"}],
            }),
            json!(["Audit"]),
            422,
            0,
        ),
    ] {
        let client = admin();
        validating(&client, spec.clone(), json!({"validationActions": actions})).await;
        let reply = client.post(CONFIG_MAPS, &config_map("x", "1")).await;
        assert_eq!((reply.status, reply.warnings().len()), (code, warnings), "{spec} {actions}");
        if warnings > 0 {
            let expected =
                "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no\""
                    .to_owned();
            assert_eq!(reply.warnings(), [expected]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_about_what_it_and_its_binding_match() {
    let denies = json!([{"expression": "false"}]);
    for (spec, bound, path, body, code) in [
        (json!({}), json!({}), CONFIG_MAPS, config_map("x", "1"), 422),
        (json!({}), json!({}), PODS, pod("x"), 201),
        (
            json!({"matchConditions": [{"name": "c", "expression": "object.data.key == '2'"}]}),
            json!({}),
            CONFIG_MAPS,
            config_map("x", "1"),
            201,
        ),
        (
            json!({}),
            json!({"matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}),
            CONFIG_MAPS,
            config_map("x", "1"),
            201,
        ),
        (
            json!({}),
            json!({"matchResources": {"objectSelector": {"matchLabels": {"a": "b"}}}}),
            CONFIG_MAPS,
            json!({"metadata": {"name": "x", "labels": {"a": "b"}}}),
            422,
        ),
        (
            json!({"matchConstraints": rules("configmaps", &["DELETE"])}),
            json!({}),
            CONFIG_MAPS,
            config_map("x", "1"),
            201,
        ),
    ] {
        let client = admin();
        let mut spec = spec;
        merge(&mut spec, json!({"validations": denies}));
        validating(&client, spec.clone(), bound.clone()).await;
        let reply = client.post(path, &body).await;
        assert_eq!(reply.status, code, "{spec} {bound} {}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_takes_effect_and_ends_with_the_write() {
    let client = admin();
    validating(&client, json!({"validations": [{"expression": "false"}]}), json!({})).await;
    assert_eq!(client.post(CONFIG_MAPS, &config_map("x", "1")).await.status, 422);
    client.delete(&format!("{POLICIES}/validatingadmissionpolicybindings/b")).await.ok(200);
    assert_eq!(client.post(CONFIG_MAPS, &config_map("x", "1")).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn params_come_from_any_kind_by_name_or_selector() {
    let client = admin();
    client.create(DEFINITIONS, &widgets(&["v1"])).await;
    for (name, label, size) in [("small", "a", 1), ("large", "b", 9)] {
        let mut widget = widget(name);
        widget["spec"]["size"] = size.into();
        widget["metadata"]["labels"] = json!({"size": label});
        client.create(WIDGETS, &widget).await;
    }
    let spec = json!({
        "paramKind": {"apiVersion": "example.com/v1", "kind": "Widget"},
        "validations": [{
            "expression": "int(object.data.key) <= params.spec.size",
            "messageExpression": "'at most ' + string(params.spec.size)",
        }],
    });
    validating(
        &client,
        spec,
        json!({"paramRef": {"name": "small", "namespace": "default", "parameterNotFoundAction": "Deny"}}),
    )
    .await;
    let ends = async |value: &str| {
        let reply = client.post(CONFIG_MAPS, &config_map("x", value)).await;
        if reply.status == 201 {
            String::new()
        } else {
            reply.json().message().rsplit(": ").next().unwrap_or("").to_owned()
        }
    };
    assert_eq!(ends("2").await, "at most 1");
    let path = format!("{POLICIES}/validatingadmissionpolicybindings/b");
    let selected = json!({"spec": {"paramRef": {
        "name": null, "namespace": null, "selector": {"matchLabels": {"size": "b"}},
    }}});
    client.patch(MERGE_PATCH, &path, &selected).await.ok(200);
    assert_eq!(ends("10").await, "at most 9");
    assert_eq!(ends("2").await, "");
}

#[tokio::test(start_paused = true)]
async fn expressions_may_ask_what_the_requester_may_do() {
    let server = builder().0.build();
    let (client, weak) = (Client::admin(&server), Client::user(&server, User::new("weak", &[])));
    let role = json!({"metadata": {"name": "writer"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
    ]});
    client.create(&format!("{RBAC}/clusterroles"), &role).await;
    client.create(&format!("{RBAC}/clusterrolebindings"), &binding("ClusterRole", "writer", "weak")).await;
    let asks = "authorizer.group('').resource('nodes').check('delete').allowed()";
    validating(&client, json!({"validations": [{"expression": asks, "message": "needs nodes"}]}), json!({}))
        .await;
    assert_eq!(client.post(CONFIG_MAPS, &config_map("x", "1")).await.status, 201);
    let (_, _, message) = weak.post(CONFIG_MAPS, &config_map("y", "1")).await.refusal();
    assert!(message.ends_with("denied request: needs nodes"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn deletions_show_the_old_object_and_policies_are_never_judged() {
    let client = admin();
    let spec = json!({
        "matchConstraints": rules("*", &["DELETE"]),
        "validations": [{"expression": "oldObject.metadata.name != 'keep' && object == null"}],
    });
    validating(&client, spec, json!({})).await;
    for (name, code) in [("keep", 422), ("other", 200)] {
        client.create(CONFIG_MAPS, &config_map(name, "1")).await;
        assert_eq!(client.delete(&format!("{CONFIG_MAPS}/{name}")).await.status, code, "{name}");
    }
    let all = json!({"matchConstraints": {"resourceRules": [{
        "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"],
    }]}, "validations": [{"expression": "false"}]});
    client
        .patch(MERGE_PATCH, &format!("{POLICIES}/validatingadmissionpolicies/p"), &json!({"spec": all}))
        .await
        .ok(200);
    client.delete(&format!("{POLICIES}/validatingadmissionpolicies/p")).await.ok(200);
}

#[tokio::test(start_paused = true)]
async fn mutations_apply_in_order_and_are_nobodys() {
    let client = admin();
    let mutations = json!([
        apply(
            "Object{metadata: Object.metadata{labels: {'a': 'b'}}, data: {'n': string(object.data.size())}}"
        ),
        patch("[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('x/y'), value: object.data.n}]"),
        patch(
            "[JSONPatch{op: 'test', path: '/data/n', value: 'other'}, JSONPatch{op: 'remove', path: '/data'}]"
        ),
    ]);
    mutating(&client, "p", json!({"mutations": mutations})).await;
    let reply = client.post(CONFIG_MAPS, &config_map("x", "1")).await;
    // a slash cannot stand in a key of data
    let (code, _, message) = reply.refusal();
    assert!(code == 422 && message.contains("data[x/y]"), "{message}");
    let fixed = json!([{"op": "replace", "path": "/spec/mutations/1/jsonPatch/expression",
        "value": "[JSONPatch{op: 'add', path: '/data/m', value: object.data.n}]"}]);
    client.patch(JSON_PATCH, &format!("{POLICIES}/mutatingadmissionpolicies/p"), &fixed).await.ok(200);
    let created = client.create(CONFIG_MAPS, &config_map("x", "1")).await;
    assert_eq!(created["data"], json!({"key": "1", "n": "1", "m": "1"}));
    assert_eq!(created["metadata"]["labels"], json!({"a": "b"}));
    let owned = &created["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(*owned, json!({"f:data": {".": {}, "f:key": {}}}));
}

#[tokio::test(start_paused = true)]
async fn a_mutation_that_fails_is_refused_or_ignored() {
    for (mutation, failure, code, ending) in [
        (patch("[JSONPatch{op: 'remove', path: '/none'}]"), "Fail", 403, "missing value"),
        (patch("[JSONPatch{op: 'remove', path: '/none'}]"), "Ignore", 201, ""),
        (patch("[JSONPatch{op: 'add', path: '/spec', value: 1}]"), "Fail", 500, "unknown field \"spec\""),
        (apply("Object{spec: Object.spec{a: 1}}"), "Fail", 403, ".spec: field not declared in schema"),
        (
            apply("Object{metadata: Object.wrong{}}"),
            "Fail",
            403,
            "expected \"Object.metadata\", which matches field name path from root Object type",
        ),
        (apply("Object{data: {'a': object.data.none}}"), "Fail", 403, "no such key: none"),
    ] {
        let client = admin();
        mutating(&client, "p", json!({"mutations": [mutation], "failurePolicy": failure})).await;
        let reply = client.post(CONFIG_MAPS, &config_map("x", "1")).await;
        assert_eq!(reply.status, code, "{}", reply.text());
        let body = reply.json();
        assert!(code == 201 || body.message().ends_with(ending), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn atomic_lists_are_not_merged_and_keyed_ones_are() {
    let client = admin();
    let spec = |expression: &str| json!({"matchConstraints": rules("pods", &["CREATE"]), "mutations": [apply(expression)]});
    let keyed = "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'main', env: [\
                 Object.spec.containers.env{name: 'A', value: 'b'}]}]}}";
    mutating(&client, "p", spec(keyed)).await;
    let created = client.create(PODS, &pod("x")).await;
    assert_eq!(created["spec"]["containers"][0]["env"], json!([{"name": "A", "value": "b"}]));
    assert_eq!(created["spec"]["containers"][0]["image"], "image");
    let atomic = "Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}";
    mutating(&client, "q", spec(atomic)).await;
    let (code, _, message) = client.post(PODS, &pod("y")).await.refusal();
    assert_eq!(code, 403);
    let ending =
        "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.nodeSelector";
    assert!(message.ends_with(ending), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_invoked_again_if_it_asks_for_it() {
    let count = apply("Object{data: {'n': object.data.?n.orValue('') + 'x'}}");
    for (reinvocation, expected) in [("Never", "x"), ("IfNeeded", "xx")] {
        let client = admin();
        mutating(&client, "p", json!({"mutations": [count], "reinvocationPolicy": reinvocation})).await;
        let created = client.create(CONFIG_MAPS, &config_map("x", "1")).await;
        assert_eq!(created["data"]["n"], expected, "{reinvocation}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_applied_is_mutated_but_not_owned() {
    let client = admin();
    mutating(&client, "p", json!({"mutations": [apply("Object{data: {'n': 'x'}}")]})).await;
    let mut applied = config_map("x", "1");
    merge(&mut applied, json!({"kind": "ConfigMap", "apiVersion": "v1"}));
    let path = format!("{CONFIG_MAPS}/x?fieldManager=m");
    let created = client.patch(APPLY, &path, &applied).await.ok(201);
    assert_eq!(created["data"]["n"], "x");
    let again = client.patch(APPLY, &path, &applied).await.ok(200);
    assert_eq!(again["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:data": {"f:key": {}}}));
}

#[tokio::test(start_paused = true)]
async fn expressions_that_do_not_compile_are_refused_when_they_are_written() {
    let client = admin();
    let syntax = "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^";
    let spec = |fields: Value| {
        let mut spec = json!({"matchConstraints": rules("configmaps", &["*"])});
        merge(&mut spec, fields);
        json!({"metadata": {"name": "p"}, "spec": spec})
    };
    for (plural, body, field, detail) in [
        (
            "validatingadmissionpolicies",
            spec(json!({"validations": [{"expression": "foo"}]})),
            "spec.validations[0].expression",
            syntax,
        ),
        (
            "validatingadmissionpolicies",
            spec(json!({"validations": [{"expression": "true", "messageExpression": "1"}]})),
            "spec.validations[0].messageExpression",
            "must evaluate to string but got int",
        ),
        (
            "validatingadmissionpolicies",
            spec(
                json!({"variables": [{"name": "v", "expression": "foo"}], "validations": [{"expression": "variables.v"}]}),
            ),
            "spec.variables[0].expression",
            syntax,
        ),
        (
            "validatingadmissionpolicies",
            spec(json!({"auditAnnotations": [{"key": "k", "valueExpression": "1"}]})),
            "spec.auditAnnotations[0].valueExpression",
            "must evaluate to one of [string null_type] but got int",
        ),
        (
            "mutatingadmissionpolicies",
            spec(json!({"reinvocationPolicy": "Never", "mutations": [apply("1")]})),
            "spec.mutations[0].applyConfiguration.expression",
            "must evaluate to Object but got int",
        ),
        (
            "mutatingadmissionpolicies",
            spec(json!({"reinvocationPolicy": "Never", "mutations": [patch("[]")]})),
            "spec.mutations[0].jsonPatch.expression",
            "must evaluate to list(JSONPatch) but got list(dyn)",
        ),
        (
            "validatingwebhookconfigurations",
            json!({"metadata": {"name": "w"}, "webhooks": [{
                "name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "clientConfig": {"url": "https://example.com"}, "matchConditions": [{"name": "c", "expression": "foo"}],
            }]}),
            "webhooks[0].matchConditions[0].expression",
            syntax,
        ),
    ] {
        let reply = client.post(&format!("{POLICIES}/{plural}"), &body).await;
        assert_eq!(reply.refusal().0, 422, "{field}");
        let cause = &reply.json()["details"]["causes"][0];
        assert_eq!(cause["field"], field);
        assert!(cause["message"].as_str().is_some_and(|text| text.ends_with(detail)), "{cause}");
    }
    assert_eq!(client.get(&format!("{POLICIES}/validatingadmissionpolicies/p")).await.status, 404);
    client.create("/api/v1/namespaces", &named("still-works")).await;
}
