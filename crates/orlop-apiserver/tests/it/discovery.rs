//! What the server says it serves, in each of the forms it says it, and that it serves it.

use crate::client::{Client, Object as _, admin};
use crate::objects::{DEFINITIONS, WIDGETS, widget, widgets};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What discovery says of a resource or subresource.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    kind: String,
    verbs: BTreeSet<String>,
    namespaced: bool,
    short_names: Value,
}

/// By path of the group version and name of the resource, such as `/apis/apps/v1` and `deployments/scale`.
type Resources = BTreeMap<(String, String), Said>;

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn verbs(value: &Value) -> BTreeSet<String> {
    list(&value["verbs"]).iter().map(text).collect()
}

/// The paths of all group versions, from the lists of groups.
async fn group_versions(client: &Client) -> Vec<String> {
    let core = client.get("/api").await.ok(200);
    let mut paths: Vec<String> =
        list(&core["versions"]).iter().map(|v| format!("/api/{}", text(v))).collect();
    let groups = client.get("/apis").await.ok(200);
    for group in list(&groups["groups"]) {
        paths.extend(list(&group["versions"]).iter().map(|v| format!("/apis/{}", text(&v["groupVersion"]))));
    }
    paths
}

async fn legacy(client: &Client) -> Resources {
    let mut all = Resources::new();
    for path in group_versions(client).await {
        let answer = client.get(&path).await.ok(200);
        assert_eq!(answer["kind"], "APIResourceList", "{path}");
        for resource in list(&answer["resources"]) {
            let said = Said {
                kind: text(&resource["kind"]),
                verbs: verbs(resource),
                namespaced: resource["namespaced"] == true,
                short_names: resource["shortNames"].clone(),
            };
            let before = all.insert((path.clone(), text(&resource["name"])), said);
            assert_eq!(before, None, "{path} {resource} stands twice");
        }
    }
    all
}

async fn aggregated(client: &Client) -> Resources {
    let mut all = Resources::new();
    for root in ["/api", "/apis"] {
        let answer = client.with("accept", AGGREGATED).get(root).await;
        assert_eq!(answer.header("content-type"), AGGREGATED);
        for group in list(&answer.ok(200)["items"]) {
            for version in list(&group["versions"]) {
                let name = Some(group.name()).filter(|name| !name.is_empty());
                let prefix = name.map_or_else(|| root.to_owned(), |name| format!("{root}/{name}"));
                let path = format!("{prefix}/{}", text(&version["version"]));
                for resource in list(&version["resources"]) {
                    let namespaced = resource["scope"] == "Namespaced";
                    let plural = text(&resource["resource"]);
                    let said = |of: &Value, short_names: Value| Said {
                        kind: text(&of["responseKind"]["kind"]),
                        verbs: verbs(of),
                        namespaced,
                        short_names,
                    };
                    let own = said(resource, resource["shortNames"].clone());
                    all.insert((path.clone(), plural.clone()), own);
                    for sub in list(&resource["subresources"]) {
                        let name = format!("{plural}/{}", text(&sub["subresource"]));
                        all.insert((path.clone(), name), said(sub, Value::Null));
                    }
                }
            }
        }
    }
    all
}

#[tokio::test(start_paused = true)]
async fn both_forms_of_discovery_say_the_same() {
    let client = admin();
    client.create(DEFINITIONS, &widgets(&["v1alpha1", "v1"])).await;
    let (legacy, aggregated) = (legacy(&client).await, aggregated(&client).await);
    assert!(legacy.len() > 100, "{} resources", legacy.len());
    for (key, said) in &legacy {
        assert_eq!(aggregated.get(key), Some(said), "{key:?}");
    }
    assert_eq!(legacy.keys().collect::<Vec<_>>(), aggregated.keys().collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn every_resource_that_lists_answers_with_a_list_of_its_kind() {
    let client = admin();
    client.create(DEFINITIONS, &widgets(&["v1alpha1", "v1"])).await;
    for ((path, name), said) in legacy(&client).await {
        if !said.verbs.contains("list") {
            continue;
        }
        let api_version = path.trim_start_matches("/apis/").trim_start_matches("/api/").to_owned();
        let mut urls = vec![format!("{path}/{name}")];
        if said.namespaced {
            urls.push(format!("{path}/namespaces/default/{name}"));
        }
        for url in urls {
            let answer = client.get(&url).await.ok(200);
            assert_eq!(answer["kind"], format!("{}List", said.kind), "{url}");
            assert_eq!(answer["apiVersion"], api_version.as_str(), "{url}");
            assert!(answer["items"].is_array(), "{url}");
        }
        if said.verbs.contains("watch") {
            client.watch(&format!("{path}/{name}?watch=true")).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn verbs_that_are_not_listed_are_not_served() {
    let client = admin();
    for ((path, name), said) in legacy(&client).await {
        if name.contains('/') {
            continue;
        }
        let scope = if said.namespaced { format!("{path}/namespaces/default") } else { path };
        for (verb, method, url) in [
            ("get", "GET", format!("{scope}/{name}/x")),
            ("update", "PUT", format!("{scope}/{name}/x")),
            ("patch", "PATCH", format!("{scope}/{name}/x")),
            ("delete", "DELETE", format!("{scope}/{name}/x")),
            ("deletecollection", "DELETE", format!("{scope}/{name}")),
            ("list", "GET", format!("{scope}/{name}")),
        ] {
            if !said.verbs.contains(verb) {
                let status = client.send(method, &url, "").await.status;
                assert!(matches!(status, 404 | 405), "{method} {url}: {status}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_group_has_its_own_page_that_says_what_the_list_says() {
    let client = admin();
    client.create(DEFINITIONS, &widgets(&["v1alpha1", "v1"])).await;
    for mut group in list(&client.get("/apis").await.ok(200)["groups"]).to_vec() {
        let mut page = client.get(&format!("/apis/{}", text(&group["name"]))).await.ok(200);
        assert_eq!((page["kind"].take(), page["apiVersion"].take()), (json!("APIGroup"), json!("v1")));
        (group["kind"], group["apiVersion"]) = (Value::Null, Value::Null);
        assert_eq!(page, group);
        assert_eq!(group["preferredVersion"], group["versions"][0]);
    }
    for path in list(&client.get("/").await.ok(200)["paths"]).iter().map(text) {
        assert_eq!(client.get(&path).await.status, 200, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_document_of_the_openapi_index_is_served() {
    let client = admin();
    client.create(DEFINITIONS, &widgets(&["v1alpha1", "v1"])).await;
    let index = client.get("/openapi/v3").await.ok(200);
    let paths = index["paths"].as_object().expect("an index");
    for group_version in group_versions(&client).await {
        assert!(paths.contains_key(group_version.trim_start_matches('/')), "{group_version}");
    }
    for (path, entry) in paths {
        let url = text(&entry["serverRelativeURL"]);
        assert!(url.starts_with(&format!("/openapi/v3/{path}?hash=")), "{url}");
        let document = client.get(&url).await.ok(200);
        assert!(text(&document["openapi"]).starts_with("3.0"), "{url}");
        assert!(document["paths"].is_object(), "{url}");
    }
    assert_eq!(client.get("/openapi/v3/apis/nothing.example.com/v1").await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_definition_appears_everywhere_and_disappears_everywhere() {
    let client = admin();
    let places = async || {
        let index = client.get("/openapi/v3").await.ok(200);
        let known = |resources: Resources| {
            let all = resources.into_keys().filter(|(path, _)| path.contains("example.com"));
            all.map(|(path, name)| format!("{path} {name}")).collect::<Vec<_>>()
        };
        let documents = index["paths"].as_object().expect("an index").keys().cloned();
        let root = client.get("/").await.ok(200);
        (
            known(legacy(&client).await),
            known(aggregated(&client).await),
            documents.filter(|path| path.contains("example.com")).collect::<Vec<_>>(),
            list(&root["paths"])
                .iter()
                .map(text)
                .filter(|path| path.contains("example.com"))
                .collect::<Vec<_>>(),
            client.get(WIDGETS).await.status,
            client.get("/apis/example.com").await.status,
        )
    };
    let none = (vec![], vec![], vec![], vec![], 404, 404);
    assert_eq!(places().await, none);
    let hash = client.get("/openapi/v3").await.ok(200)["paths"]["api/v1"].clone();
    for versions in [&["v1"][..], &["v1alpha1", "v1"]] {
        client.create(DEFINITIONS, &widgets(versions)).await;
        client.create(WIDGETS, &widget("w")).await;
        let mut sorted = versions.to_vec();
        sorted.sort_unstable();
        let resources: Vec<String> = sorted
            .iter()
            .flat_map(|v| ["widgets", "widgets/status"].map(|name| format!("/apis/example.com/{v} {name}")))
            .collect();
        let documents: Vec<String> = sorted.iter().map(|v| format!("apis/example.com/{v}")).collect();
        let mut paths = vec!["/apis/example.com".to_owned()];
        paths.extend(documents.iter().map(|path| format!("/{path}")));
        assert_eq!(places().await, (resources.clone(), resources, documents, paths, 200, 200));
        let group = client.get("/apis/example.com").await.ok(200);
        assert_eq!(group["preferredVersion"]["version"], "v1", "a stable version comes first");
        client.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.ok(200);
        assert_eq!(places().await, none);
    }
    assert_eq!(client.get("/openapi/v3").await.ok(200)["paths"]["api/v1"], hash);
}

#[tokio::test(start_paused = true)]
async fn a_changed_schema_has_another_hash() {
    let client = admin();
    let hash = async || client.get("/openapi/v3").await.ok(200)["paths"]["apis/example.com/v1"].clone();
    let definition = client.create(DEFINITIONS, &widgets(&["v1"])).await;
    let before = hash().await;
    let mut changed = client.get(&format!("{DEFINITIONS}/{}", definition.name())).await.ok(200);
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "other words".into();
    client.put(&format!("{DEFINITIONS}/{}", definition.name()), &changed).await.ok(200);
    assert_ne!(hash().await, before, "clients fetch a document again when its hash changes");
}
