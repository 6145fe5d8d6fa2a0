//! Who may do what, and who did.

use crate::support::{config_map, config_maps, object, refusal};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Api;
use kube::api::{ListParams, PostParams};
use orlop_cluster::{Access, Cluster, User};
use serde_json::json;
use std::sync::{Arc, Mutex};

/// Lets `jane` read ConfigMaps in the default namespace.
async fn let_jane_read(cluster: &Cluster) -> Result<(), kube::Error> {
    let roles: Api<Role> = Api::default_namespaced(cluster.client());
    let role = object(json!({
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
    }));
    roles.create(&PostParams::default(), &role).await?;
    let bindings: Api<RoleBinding> = Api::default_namespaced(cluster.client());
    let binding = object(json!({
        "metadata": {"name": "jane-reads"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    }));
    bindings.create(&PostParams::default(), &binding).await?;
    Ok(())
}

#[tokio::test]
async fn a_user_may_do_what_a_role_says_and_no_more() -> Result<(), kube::Error> {
    let cluster = Cluster::start();
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client_as(User::new("jane", &[])));
    let refused = refusal(maps.list(&ListParams::default()).await);
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.message,
        "configmaps is forbidden: User \"jane\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    let_jane_read(&cluster).await?;
    assert_eq!(maps.list(&ListParams::default()).await?.items.len(), 0);
    let refused = refusal(maps.create(&PostParams::default(), &config_map("a", "1")).await);
    assert_eq!(refused.code, 403);
    Ok(())
}

#[tokio::test]
async fn an_administrator_can_act_as_someone_else() -> Result<(), kube::Error> {
    let cluster = Cluster::start();
    let_jane_read(&cluster).await?;
    let ask = |verb: http::Method, user: &str| {
        let request = http::Request::builder()
            .method(verb)
            .uri("/api/v1/namespaces/default/configmaps")
            .header("Impersonate-User", user)
            .header("Content-Type", "application/json");
        let body = br#"{"metadata":{"name":"a"}}"#.to_vec();
        let request = request.body(body).expect("the test's own request is well formed");
        let client = cluster.client();
        async move { client.request::<serde_json::Value>(request).await }
    };
    assert_eq!(ask(http::Method::GET, "jane").await?["kind"], "ConfigMapList");
    assert_eq!(refusal(ask(http::Method::POST, "jane").await).code, 403);
    assert_eq!(refusal(ask(http::Method::GET, "john").await).code, 403);
    Ok(())
}

#[tokio::test]
async fn a_service_account_is_known_by_its_token() -> Result<(), kube::Error> {
    let cluster = Cluster::start();
    let accounts: Api<ServiceAccount> = Api::default_namespaced(cluster.client());
    accounts.create(&PostParams::default(), &object(json!({"metadata": {"name": "robot"}}))).await?;
    let request = object(json!({"spec": {"audiences": []}}));
    let token = accounts.create_token_request("robot", &PostParams::default(), &request).await?;
    let token =
        token.status.and_then(|status| status.token).expect("a token request is answered with a token");

    let client = kube::Client::new(cluster.server().service(), "default");
    let review = http::Request::builder()
        .method("POST")
        .uri("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("Authorization", format!("Bearer {token}"))
        .header("Content-Type", "application/json")
        .body(br#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#.to_vec());
    let answer: serde_json::Value =
        client.request(review.expect("the test's own request is well formed")).await?;
    assert_eq!(answer["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
    Ok(())
}

#[tokio::test]
async fn a_recorder_hears_of_every_access_allowed_or_not() -> Result<(), kube::Error> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = heard.clone();
    let record = move |access: &Access| {
        let Access { user, verb, resource, namespace, name, .. } = access;
        let line = format!("{} {verb} {resource} {namespace}/{name}", user.name);
        ear.lock().expect("no test panics while it holds the lock").push(line);
    };
    let cluster = Cluster::builder().server(|server| server.recorder(record)).start();
    config_maps(&cluster).create(&PostParams::default(), &config_map("a", "1")).await?;
    let jane: Api<ConfigMap> = Api::namespaced(cluster.client_as(User::new("jane", &[])), "other");
    refusal(jane.get("a").await);
    let heard = heard.lock().expect("no test panics while it holds the lock");
    assert_eq!(*heard, ["kubernetes-admin create configmaps default/", "jane get configmaps other/a"]);
    Ok(())
}
