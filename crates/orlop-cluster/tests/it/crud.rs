//! Create, get, list, replace, delete.

use crate::support::{config_map, config_maps, deployment, refusal};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use orlop_cluster::Cluster;

#[tokio::test]
async fn a_config_map_lives_from_create_to_delete() -> Result<(), kube::Error> {
    let maps = config_maps(&Cluster::start());
    let created = maps.create(&PostParams::default(), &config_map("settings", "one")).await?;
    assert!(created.metadata.uid.is_some() && created.metadata.creation_timestamp.is_some());

    let again = refusal(maps.create(&PostParams::default(), &config_map("settings", "one")).await);
    assert_eq!((again.code, again.reason.as_str()), (409, "AlreadyExists"));

    let mut read = maps.get("settings").await?;
    assert_eq!(read, created);
    read.data.get_or_insert_default().insert("key".to_owned(), "two".to_owned());
    let replaced = maps.replace("settings", &PostParams::default(), &read).await?;
    assert_ne!(replaced.metadata.resource_version, created.metadata.resource_version);

    let stale = refusal(maps.replace("settings", &PostParams::default(), &read).await);
    assert_eq!((stale.code, stale.reason.as_str()), (409, "Conflict"));

    maps.delete("settings", &DeleteParams::default()).await?;
    assert_eq!(maps.get_opt("settings").await?, None);
    Ok(())
}

#[tokio::test]
async fn a_deployment_gets_defaults_and_generations() -> Result<(), kube::Error> {
    let deployments: Api<Deployment> = Api::default_namespaced(Cluster::start().client());
    let mut web = deployments.create(&PostParams::default(), &deployment("web")).await?;
    assert_eq!(web.metadata.generation, Some(1));
    let spec = web.spec.as_mut().expect("a Deployment has a spec");
    assert_eq!(spec.replicas, Some(1));
    assert_eq!(spec.revision_history_limit, Some(10));

    spec.replicas = Some(3);
    let scaled = deployments.replace("web", &PostParams::default(), &web).await?;
    assert_eq!(scaled.metadata.generation, Some(2));

    let mut scale = deployments.get_scale("web").await?;
    scale.spec.get_or_insert_default().replicas = Some(5);
    deployments.replace_scale("web", &PostParams::default(), &scale).await?;
    assert_eq!(deployments.get("web").await?.spec.and_then(|spec| spec.replicas), Some(5));
    Ok(())
}

#[tokio::test]
async fn a_status_is_written_apart_from_the_spec() -> Result<(), kube::Error> {
    let deployments: Api<Deployment> = Api::default_namespaced(Cluster::start().client());
    let mut web = deployments.create(&PostParams::default(), &deployment("web")).await?;
    web.status.get_or_insert_default().replicas = Some(1);
    web.spec.as_mut().expect("a Deployment has a spec").replicas = Some(9);
    let written = deployments.replace_status("web", &PostParams::default(), &web).await?;
    assert_eq!(written.status.and_then(|status| status.replicas), Some(1));
    assert_eq!(written.spec.and_then(|spec| spec.replicas), Some(1));
    assert_eq!(written.metadata.generation, Some(1));
    Ok(())
}

#[tokio::test]
async fn lists_come_in_pages_and_by_selector() -> Result<(), kube::Error> {
    let maps = config_maps(&Cluster::start());
    for n in 0..5 {
        let mut map = config_map(&format!("map-{n}"), "x");
        map.metadata.labels = Some([("odd".to_owned(), (n % 2 == 1).to_string())].into());
        maps.create(&PostParams::default(), &map).await?;
    }
    let odd = maps.list(&ListParams::default().labels("odd=true")).await?;
    assert_eq!(odd.items.len(), 2);
    let one = maps.list(&ListParams::default().fields("metadata.name=map-3")).await?;
    assert_eq!(one.items.len(), 1);

    let mut names = Vec::new();
    let mut page = ListParams::default().limit(2);
    loop {
        let list = maps.list(&page).await?;
        names.extend(list.items.into_iter().filter_map(|map| map.metadata.name));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names, ["map-0", "map-1", "map-2", "map-3", "map-4"]);
    Ok(())
}

#[tokio::test]
async fn delete_respects_preconditions_dry_run_and_collections() -> Result<(), kube::Error> {
    let maps = config_maps(&Cluster::start());
    for name in ["a", "b"] {
        maps.create(&PostParams::default(), &config_map(name, "x")).await?;
    }
    let other = Preconditions { uid: Some("other".to_owned()), resource_version: None };
    let refused = refusal(maps.delete("a", &DeleteParams::default().preconditions(other)).await);
    assert_eq!(refused.code, 409);
    maps.delete("a", &DeleteParams::default().dry_run()).await?;
    assert_eq!(maps.list(&ListParams::default()).await?.items.len(), 2);
    maps.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    assert_eq!(maps.list(&ListParams::default()).await?.items.len(), 0);
    Ok(())
}
