//! Bodies: what is read, how strictly, and what is said of those that cannot be read.

use crate::client::{APPLY, MERGE_PATCH, Object as _, admin};
use crate::objects::{
    CONFIG_MAPS, DEFINITIONS, DEPLOYMENTS, NODES, WIDGETS, config_map, deployment, named, widget, widgets,
};
use orlop_kinds::{catalog::catalog, protobuf};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn unknown_and_duplicate_fields_are_treated_as_asked() {
    let unknown = r#"{"metadata":{"name":"x"},"foo":1,"data":{"a":"b"}}"#;
    let duplicate = r#"{"metadata":{"name":"x"},"data":{"a":"1","a":"2"}}"#;
    let refused = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: ";
    for (body, complaint) in [(unknown, "unknown field \"foo\""), (duplicate, "duplicate field \"data.a\"")] {
        let client = admin();
        let strict = client.send("POST", &format!("{CONFIG_MAPS}?fieldValidation=Strict"), body).await;
        let expected = (400, "BadRequest".to_owned(), format!("{refused}{complaint}"));
        assert_eq!(strict.refusal(), expected);
        for (query, warned) in
            [("", true), ("&fieldValidation=Warn", true), ("&fieldValidation=Ignore", false)]
        {
            let reply = client.send("POST", &format!("{CONFIG_MAPS}?dryRun=All{query}"), body).await;
            assert_eq!(reply.ok(201)["foo"], Value::Null, "{query}");
            let warning = format!("299 - \"{}\"", complaint.replace('"', "\\\""));
            let expected: Vec<String> = if warned { vec![warning] } else { Vec::new() };
            assert_eq!(reply.warnings(), expected, "{query}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn patches_are_validated_like_bodies() {
    let client = admin();
    client.create(DEPLOYMENTS, &deployment("x")).await;
    let patch = json!({"spec": {"foo": 1}});
    let path = format!("{DEPLOYMENTS}/x");
    let warned = client.patch(MERGE_PATCH, &path, &patch).await;
    warned.ok(200);
    assert_eq!(warned.warnings(), ["299 - \"unknown field \\\"spec.foo\\\"\""]);
    let strict = client.patch(MERGE_PATCH, &format!("{path}?fieldValidation=Strict"), &patch).await;
    assert_eq!(strict.status, 422);
    let apply =
        json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "x"}, "spec": {"foo": 1}});
    let refused = client.patch(APPLY, &format!("{path}?fieldManager=m&fieldValidation=Ignore"), &apply).await;
    let message = "failed to create typed patch object (/x; apps/v1, Kind=Deployment): .spec.foo: field not declared in schema";
    assert_eq!(refused.refusal(), (500, String::new(), message.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn deprecated_kinds_warn_on_every_verb() {
    let client = admin();
    let endpoints = "/api/v1/namespaces/default/endpoints";
    let warning = "299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\"";
    for reply in [
        client.post(endpoints, &named("x")).await,
        client.post(endpoints, &named("x")).await,
        client.get(endpoints).await,
        client.get(&format!("{endpoints}/none")).await,
        client.delete(&format!("{endpoints}/x")).await,
    ] {
        assert_eq!(reply.warnings(), [warning], "{}", reply.status);
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_object_can_come_as_json_yaml_or_protobuf() {
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x", "labels": {"a": "b"}}, "data": {"k": "v"}});
    let id = catalog().type_of("", "v1", "ConfigMap").expect("a ConfigMap has a type");
    let yaml = "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: x\n  labels: {a: b}\ndata:\n  k: v\n";
    let mut stored = Vec::new();
    for (content_type, body) in [
        ("", object.to_string().into_bytes()),
        ("application/json; charset=utf-8", object.to_string().into_bytes()),
        ("application/yaml", yaml.as_bytes().to_vec()),
        ("application/vnd.kubernetes.protobuf", protobuf::encode(id, &object)),
    ] {
        let client =
            if content_type.is_empty() { admin() } else { admin().with("content-type", content_type) };
        stored.push(client.send("POST", CONFIG_MAPS, body).await.ok(201));
    }
    assert!(stored.iter().all(|object| *object == stored[0]), "{stored:#?}");
    assert_eq!(
        (&stored[0]["data"], &stored[0]["metadata"]["labels"]),
        (&json!({"k": "v"}), &json!({"a": "b"}))
    );
}

#[tokio::test(start_paused = true)]
async fn answers_come_as_yaml_to_those_who_ask() {
    let client = admin();
    client.create(CONFIG_MAPS, &config_map("x", "yes")).await;
    let yaml = client.with("accept", "application/yaml");
    for (path, status, line) in [
        (format!("{CONFIG_MAPS}/x"), 200, "kind: ConfigMap"),
        (CONFIG_MAPS.to_owned(), 200, "kind: ConfigMapList"),
        (format!("{CONFIG_MAPS}/none"), 404, "kind: Status"),
    ] {
        let reply = yaml.get(&path).await;
        assert_eq!((reply.status, reply.header("content-type")), (status, "application/yaml"), "{path}");
        assert!(reply.text().lines().any(|text| text == line), "{}", reply.text());
    }
    let text = yaml.get(&format!("{CONFIG_MAPS}/x")).await.text();
    let back =
        client.with("content-type", "application/yaml").send("PUT", &format!("{CONFIG_MAPS}/x"), text).await;
    assert_eq!(back.ok(200)["data"]["key"], "yes", "a word that YAML knows stays a string");
}

#[tokio::test(start_paused = true)]
async fn pretty_answers_are_indented() {
    let client = admin();
    client.create(CONFIG_MAPS, &named("x")).await;
    let path = format!("{CONFIG_MAPS}/x");
    for (query, pretty) in
        [("", false), ("?pretty=true", true), ("?pretty=1", true), ("?pretty=false", false)]
    {
        let reply = client.get(&format!("{path}{query}")).await;
        assert_eq!(reply.text().contains("\n  \"kind\""), pretty, "{query}: {}", reply.text());
        reply.ok(200);
    }
}

#[tokio::test(start_paused = true)]
async fn media_types_that_cannot_be_served_are_refused() {
    let client = admin();
    client.create(CONFIG_MAPS, &named("x")).await;
    let body = config_map("y", "1").to_string();
    let known = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    for content_type in ["text/plain", "application/xml", "application/json-patch+json", ";"] {
        let reply = client.with("content-type", content_type).send("POST", CONFIG_MAPS, body.clone()).await;
        if content_type == ";" {
            continue;
        }
        let text = format!(
            "the body of the request was in an unknown format - accepted media types include: {known}"
        );
        assert_eq!(reply.refusal(), (415, "UnsupportedMediaType".to_owned(), text), "{content_type}");
    }
    for content_type in ["application/json", "text/plain", "application/yaml"] {
        let reply =
            client.with("content-type", content_type).send("PATCH", &format!("{CONFIG_MAPS}/x"), "{}").await;
        assert_eq!(reply.status, 415, "{content_type}");
    }
    for accept in ["text/html", "application/json;as=Table;v=v9;g=meta.k8s.io", "application/json;as=Nothing"]
    {
        let reply = client.with("accept", accept).get(CONFIG_MAPS).await;
        let text = format!("only the following media types are accepted: {known}");
        assert_eq!(reply.refusal(), (406, "NotAcceptable".to_owned(), text), "{accept}");
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_no_objects_are_refused_in_the_words_of_the_real_server() {
    let client = admin();
    let unknown = "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: ";
    let go_type = "into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
    for (body, message) in [
        ("", format!("{unknown}unexpected end of JSON input (<empty>)")),
        ("[]", format!("{unknown}json: cannot unmarshal array {go_type} (5b5d)")),
        ("\"a\"", format!("{unknown}json: cannot unmarshal string {go_type} (226122)")),
        ("1", format!("{unknown}json: cannot unmarshal number {go_type} (31)")),
        ("{", format!("{unknown}unexpected end of JSON input (7b)")),
        (
            r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}"#,
            "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion".to_owned(),
        ),
        (
            r#"{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"x"}}"#,
            "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for version \"v2\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"".to_owned(),
        ),
        (
            r#"{"metadata":{"name":"x"},"data":{"a":1}}"#,
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string".to_owned(),
        ),
        (
            r#"{"metadata":{"name":"x"},"binaryData":{"a":"%%%"}}"#,
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: illegal base64 data at input byte 0".to_owned(),
        ),
        (
            r#"{"metadata":{"name":"x","namespace":"other"}}"#,
            "the namespace of the provided object does not match the namespace sent on the request".to_owned(),
        ),
    ] {
        let refusal = client.send("POST", CONFIG_MAPS, body).await.refusal();
        assert_eq!(refusal, (400, "BadRequest".to_owned(), message), "{body}");
    }
    for body in ["{}", "null"] {
        let (status, reason, message) = client.send("POST", CONFIG_MAPS, body).await.refusal();
        assert_eq!((status, reason.as_str()), (422, "Invalid"), "{body}");
        let required =
            "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required";
        assert_eq!(message, required, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_of_three_mebibytes_is_the_largest() {
    let client = admin();
    let sized = |bytes: usize| {
        let empty = config_map("x", "").to_string();
        config_map("x", &"x".repeat(bytes - empty.len())).to_string()
    };
    let limit = orlop_apiserver::BODY_BYTES_MAX;
    let message = "Request entity too large: limit is 3145728".to_owned();
    let too_large = (413, "RequestEntityTooLarge".to_owned(), message);
    assert_eq!(client.send("POST", CONFIG_MAPS, sized(limit + 1)).await.refusal(), too_large);
    assert_eq!(client.send("PUT", &format!("{CONFIG_MAPS}/x"), sized(limit + 1)).await.refusal(), too_large);
    let reply = client.send("POST", CONFIG_MAPS, sized(limit)).await;
    assert_eq!(reply.status, 422, "read, but too long for a ConfigMap: {:.200}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn depth_is_bounded_and_never_fatal() {
    let client = admin();
    for (content_type, body) in [
        ("application/json", "[".repeat(1_000_000)),
        ("application/json", format!("{{\"metadata\":{}", "{\"a\":".repeat(100_000))),
        ("application/yaml", "- ".repeat(100_000)),
        ("application/yaml", "{a: ".repeat(100_000)),
    ] {
        let reply = client.with("content-type", content_type).send("POST", CONFIG_MAPS, body).await;
        assert_eq!(reply.status, 400, "{content_type}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_put_must_name_its_object() {
    let client = admin();
    client.create(NODES, &named("x")).await;
    for (body, message) in [
        (json!({}), "the name of the object (x based on URL) was undeterminable: name must be provided"),
        (named("y"), "the name of the object (y) does not match the name on the URL (x)"),
    ] {
        let refusal = client.put(&format!("{NODES}/x"), &body).await.refusal();
        assert_eq!(refusal, (400, "BadRequest".to_owned(), message.to_owned()));
    }
    let stored = client.get(&format!("{NODES}/x")).await.ok(200);
    let mut odd = stored.clone();
    odd["metadata"]["resourceVersion"] = "abc".into();
    let refusal = client.put(&format!("{NODES}/x"), &odd).await.refusal();
    assert_eq!(
        refusal,
        (500, String::new(), "strconv.ParseUint: parsing \"abc\": invalid syntax".to_owned())
    );
    assert_eq!(stored.name(), "x");
}

#[tokio::test(start_paused = true)]
async fn bad_write_options_are_refused() {
    let client = admin();
    client.create(CONFIG_MAPS, &named("x")).await;
    let path = format!("{CONFIG_MAPS}/x");
    for (method, query, message) in [
        (
            "POST",
            "dryRun=all",
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"all\"]: supported values: \"All\"",
        ),
        (
            "PUT",
            "fieldValidation=Maybe",
            "UpdateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Maybe\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
        ),
        (
            "PATCH",
            "force=true",
            "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
        ),
        (
            "PATCH",
            &format!("fieldManager={}", "m".repeat(129)),
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes",
        ),
    ] {
        let path = if method == "POST" { CONFIG_MAPS } else { path.as_str() };
        let client =
            if method == "PATCH" { client.with("content-type", MERGE_PATCH) } else { client.clone() };
        let reply = client.send(method, &format!("{path}?{query}"), named("x").to_string()).await;
        assert_eq!(reply.refusal(), (422, "Invalid".to_owned(), message.to_owned()), "{method} {query}");
    }
}

#[tokio::test]
async fn large_answers_are_compressed_for_those_who_can_read_them() {
    use std::io::Read as _;
    let client = admin();
    client.create(CONFIG_MAPS, &config_map("big", &"a".repeat(200_000))).await;
    client.create(CONFIG_MAPS, &config_map("small", "a")).await;
    let path = format!("{CONFIG_MAPS}/big");
    let plain = client.get(&path).await;
    assert_eq!(plain.header("content-encoding"), "");
    let zipping = client.with("accept-encoding", "deflate, gzip");
    let zipped = zipping.get(&path).await;
    assert_eq!((zipped.header("content-encoding"), zipped.header("vary")), ("gzip", "Accept-Encoding"));
    let mut body = Vec::new();
    flate2::read::GzDecoder::new(&*zipped.body).read_to_end(&mut body).expect("gzip");
    assert_eq!(body, plain.body);
    assert_eq!(zipping.get(&format!("{CONFIG_MAPS}/small")).await.header("content-encoding"), "");
}

#[tokio::test(start_paused = true)]
async fn objects_may_be_as_deep_as_requests() {
    let client = admin();
    client.create(DEFINITIONS, &widgets(&["v1"])).await;
    let nest = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
    for (levels, patched) in [(10, 200), (125, 200), (130, 200), (300, 400), (490, 400)] {
        let mut deep = widget(&format!("w{levels}"));
        deep["spec"] = nest(levels);
        let path = format!("{WIDGETS}/w{levels}");
        assert_eq!(client.post(WIDGETS, &deep).await.status, 201, "{levels}");
        let read = client.get(&path).await;
        assert!(read.status == 200 && read.text().contains(&deep["spec"].to_string()), "{levels}");
        let label = json!({"metadata": {"labels": {"x": "z"}}});
        assert_eq!(client.patch(MERGE_PATCH, &path, &label).await.status, patched, "{levels}");
        assert_eq!(client.get(WIDGETS).await.status, 200);
        assert_eq!(client.delete(&path).await.status, 200, "{levels}");
    }
}
