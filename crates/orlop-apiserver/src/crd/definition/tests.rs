use super::*;

fn definition() -> Value {
    json!({
        "metadata": {"name": "widgets.example.dev", "resourceVersion": "1"},
        "spec": {
            "group": "example.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "conversion": {"strategy": "None"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
        "status": {"storedVersions": ["v1"], "acceptedNames": {"kind": "", "plural": ""}, "conditions": null},
    })
}

fn changed(change: impl Fn(&mut Value)) -> Value {
    let mut definition = definition();
    change(&mut definition);
    definition
}

#[test]
fn definitions_are_refused_in_the_words_of_kubernetes() {
    for (definition, errors) in [
        (definition(), vec![]),
        (
            changed(|d| d["spec"]["scope"] = "Foo".into()),
            vec![r#"spec.scope: Unsupported value: "Foo": supported values: "Cluster", "Namespaced""#],
        ),
        (
            changed(|d| d["metadata"]["name"] = "x.example.dev".into()),
            vec![
                r#"metadata.name: Invalid value: "x.example.dev": must be spec.names.plural+"."+spec.group"#,
            ],
        ),
        (
            changed(|d| d["spec"]["names"]["listKind"] = "Widget".into()),
            vec![r#"spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same"#],
        ),
        (
            changed(|d| {
                d["spec"]["versions"][0]["storage"] = false.into();
                d["status"]["storedVersions"] = Value::Null;
            }),
            vec![
                r#"spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must have exactly one version marked as storage version"#,
                "status.storedVersions: Invalid value: null: must have at least one stored version",
            ],
        ),
        (
            changed(|d| d["spec"]["versions"][0]["schema"] = Value::Null),
            vec!["spec.versions[0].schema.openAPIV3Schema: Required value"],
        ),
        (
            changed(|d| d["spec"]["conversion"]["strategy"] = "Webhook".into()),
            vec![
                "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
                "spec.conversion.conversionReviewVersions: Required value",
            ],
        ),
        (
            changed(|d| {
                d["spec"]["versions"][0]["additionalPrinterColumns"] =
                    json!([{"name": "A", "type": "foo", "jsonPath": "a"}]);
            }),
            vec![
                r#"spec.additionalPrinterColumns[0].type: Invalid value: "foo": must be one of boolean,date,integer,number,string"#,
                r#"spec.additionalPrinterColumns[0].JSONPath: Invalid value: "a": must be a simple json path starting with ."#,
            ],
        ),
        (
            changed(|d| {
                d["spec"]["versions"][0]["subresources"] = json!({"scale": {"specReplicasPath": ".a"}});
            }),
            vec![
                r#"spec.subresources.scale.specReplicasPath: Invalid value: ".a": should be a json path under .spec"#,
                "spec.subresources.scale.statusReplicasPath: Required value",
            ],
        ),
        (
            changed(|d| d["spec"]["preserveUnknownFields"] = true.into()),
            vec![
                "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
            ],
        ),
    ] {
        let found: Vec<String> = validate(&definition, None).iter().map(ToString::to_string).collect();
        assert_eq!(found, errors, "{definition}");
    }
}

#[test]
fn what_versions_do_not_share_is_blamed_on_the_version() {
    let definition = changed(|d| {
        let mut second = d["spec"]["versions"][0].clone();
        second["name"] = "v2".into();
        second["storage"] = false.into();
        second["schema"]["openAPIV3Schema"]["type"] = "string".into();
        d["spec"]["versions"].as_array_mut().unwrap().push(second);
    });
    let found: Vec<String> = validate(&definition, None).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            r#"spec.versions[1].schema.openAPIV3Schema.type: Invalid value: "string": must be object at the root"#
        ]
    );
}

#[test]
fn names_and_scope_are_immutable_once_established() {
    let mut old = definition();
    old["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
    let mut new = old.clone();
    new["spec"]["scope"] = "Cluster".into();
    let found: Vec<String> = validate(&new, Some(&old)).iter().map(ToString::to_string).collect();
    assert_eq!(found, [r#"spec.scope: Invalid value: "Cluster": field is immutable"#]);
}

#[test]
fn unknown_formats_are_warned_about_once() {
    let with = |format: &str| {
        changed(|d| {
            d["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] =
                json!({"a": {"type": "string", "format": format}});
        })
    };
    assert_eq!(warnings(&with("ip"), None), ["unrecognized format \"ip\""]);
    assert!(warnings(&with("ip"), Some(&with("ip"))).is_empty());
    assert!(warnings(&with("date-time"), None).is_empty());
}
