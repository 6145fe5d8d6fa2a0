//! Kinds of one's own.

use crate::support::{object, refusal};
use futures_util::TryStreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use orlop_cluster::Cluster;
use serde_json::json;

fn shells_definition() -> CustomResourceDefinition {
    object(json!({
        "metadata": {"name": "shells.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Shell", "plural": "shells", "singular": "shell"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["size"], "properties": {
                        "size": {"type": "integer", "minimum": 0},
                        "image": {"type": "string", "default": "example.com/shell:1"},
                    }},
                    "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
                }}},
            }],
        },
    }))
}

fn shells(client: Client) -> (Api<DynamicObject>, ApiResource) {
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Shell"), "shells");
    (Api::default_namespaced_with(client, &resource), resource)
}

#[tokio::test]
async fn a_custom_kind_is_served_as_soon_as_it_is_defined() -> Result<(), kube::Error> {
    let cluster = Cluster::start();
    let (api, resource) = shells(cluster.client());
    assert_eq!(refusal(api.get("one").await).code, 404);

    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    definitions.create(&PostParams::default(), &shells_definition()).await?;
    let shell = DynamicObject::new("one", &resource).data(json!({"spec": {"size": 2, "unknown": true}}));
    let created = api.create(&PostParams::default(), &shell).await?;
    assert_eq!(created.data["spec"], json!({"size": 2, "image": "example.com/shell:1"}));
    assert_eq!(created.metadata.generation, Some(1));

    let bad = DynamicObject::new("two", &resource).data(json!({"spec": {"size": -1}}));
    let refused = refusal(api.create(&PostParams::default(), &bad).await);
    assert_eq!(refused.code, 422);
    assert!(refused.message.contains("spec.size: Invalid value: -1"), "{}", refused.message);
    Ok(())
}

#[tokio::test]
async fn the_status_of_a_custom_object_is_its_own_subresource() -> Result<(), kube::Error> {
    let cluster = Cluster::start();
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    definitions.create(&PostParams::default(), &shells_definition()).await?;
    let (api, resource) = shells(cluster.client());
    let shell =
        DynamicObject::new("one", &resource).data(json!({"spec": {"size": 2}, "status": {"ready": 9}}));
    let created = api.create(&PostParams::default(), &shell).await?;
    assert_eq!(created.data.get("status"), None);

    let mut watch = std::pin::pin!(
        api.watch(&WatchParams::default(), &created.metadata.resource_version.unwrap_or_default()).await?
    );
    let status = json!({"apiVersion": "example.com/v1", "kind": "Shell", "status": {"ready": 1}});
    let written = api.patch_status("one", &PatchParams::apply("test"), &Patch::Apply(status)).await?;
    assert_eq!(written.data["status"], json!({"ready": 1}));
    assert_eq!(written.metadata.generation, Some(1));
    let event = watch.try_next().await?;
    assert!(
        matches!(&event, Some(WatchEvent::Modified(shell)) if shell.data["status"]["ready"] == 1),
        "{event:?}"
    );
    Ok(())
}
