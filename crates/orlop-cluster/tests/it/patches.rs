//! The four kinds of patch.

use crate::support::{config_map, config_maps, deployment, refusal};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use orlop_cluster::Cluster;
use serde_json::{Value, json};

fn apply(value: &str) -> Patch<Value> {
    Patch::Apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"key": value},
    }))
}

#[tokio::test]
async fn merge_patches_replace_values_and_remove_nulls() -> Result<(), kube::Error> {
    let maps = config_maps(&Cluster::start());
    maps.create(&PostParams::default(), &config_map("settings", "one")).await?;
    let patch = Patch::Merge(json!({"data": {"key": null, "other": "two"}}));
    let patched = maps.patch("settings", &PatchParams::default(), &patch).await?;
    assert_eq!(patched.data, Some([("other".to_owned(), "two".to_owned())].into()));
    Ok(())
}

#[tokio::test]
async fn strategic_patches_merge_lists_by_their_keys() -> Result<(), kube::Error> {
    let deployments: Api<Deployment> = Api::default_namespaced(Cluster::start().client());
    deployments.create(&PostParams::default(), &deployment("web")).await?;
    let side = json!([{"name": "side", "image": "example.com/side:1"}]);
    let patch = Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": side}}}}));
    let patched = deployments.patch("web", &PatchParams::default(), &patch).await?;
    let pod = patched.spec.and_then(|spec| spec.template.spec).expect("a template has a spec");
    let names: Vec<&str> = pod.containers.iter().map(|container| container.name.as_str()).collect();
    assert_eq!(names, ["side", "main"]);
    Ok(())
}

#[tokio::test]
async fn apply_creates_owns_and_prunes() -> Result<(), kube::Error> {
    let maps = config_maps(&Cluster::start());
    let created = maps.patch("settings", &PatchParams::apply("one"), &apply("1")).await?;
    let managers = created.metadata.managed_fields.unwrap_or_default();
    assert_eq!(managers.len(), 1);
    assert_eq!(managers[0].manager.as_deref(), Some("one"));

    let same = maps.patch("settings", &PatchParams::apply("one"), &apply("1")).await?;
    assert_eq!(same.metadata.resource_version, created.metadata.resource_version);

    let conflict = refusal(maps.patch("settings", &PatchParams::apply("two"), &apply("2")).await);
    assert_eq!((conflict.code, conflict.reason.as_str()), (409, "Conflict"));
    assert!(conflict.message.contains("conflict with \"one\": .data.key"), "{}", conflict.message);

    let forced = maps.patch("settings", &PatchParams::apply("two").force(), &apply("2")).await?;
    assert_eq!(forced.data.unwrap_or_default()["key"], "2");
    let nothing = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}});
    let pruned = maps.patch("settings", &PatchParams::apply("two"), &Patch::Apply(nothing)).await?;
    assert_eq!(pruned.data, None);
    Ok(())
}
