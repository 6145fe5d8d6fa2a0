//! Who is calling and what they may do: tokens, impersonation, roles, and the questions about them.

use crate::client::{Client, MERGE_PATCH, Object as _, advance, builder};
use crate::objects::{
    ACCOUNTS, CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, NODES, PODS, RBAC, binding, config_map, deployment,
    named, pod,
};
use orlop_apiserver::{Access, ApiServer, User};
use orlop_clock::ManualClock;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const AUTHENTICATION: &str = "/apis/authentication.k8s.io/v1";
const AUTHORIZATION: &str = "/apis/authorization.k8s.io/v1";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const ROLE_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const ISSUER: &str = "https://kubernetes.default.svc";

/// A server with a user `jane`, who may do what everyone may.
fn server() -> (ApiServer, ManualClock) {
    let (builder, clock) = builder();
    (builder.token("jane-token", User::new("jane", &["devs"])).build(), clock)
}

fn role(name: &str, rules: &Value) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// Lets a user do something everywhere.
async fn allow(admin: &Client, user: &str, rules: &Value) {
    let name = format!("rules-of-{user}");
    admin.create(&format!("{RBAC}/clusterroles"), &role(&name, rules)).await;
    admin.create(&format!("{RBAC}/clusterrolebindings"), &binding("ClusterRole", &name, user)).await;
}

async fn who(client: &Client) -> Value {
    let review = client.post(&format!("{AUTHENTICATION}/selfsubjectreviews"), &json!({})).await.ok(201);
    review["status"]["userInfo"].clone()
}

async fn token(admin: &Client, account: &str, spec: Value) -> String {
    let request = json!({"spec": spec});
    let answer = admin.post(&format!("{ACCOUNTS}/{account}/token"), &request).await.ok(201);
    answer["status"]["token"].as_str().expect("a token").to_owned()
}

async fn token_review(admin: &Client, token: &str, audiences: &[&str]) -> Value {
    let review = json!({"spec": {"token": token, "audiences": audiences}});
    admin.post(&format!("{AUTHENTICATION}/tokenreviews"), &review).await.ok(201)["status"].clone()
}

fn account_of_pod(name: &str, account: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["serviceAccountName"] = account.into();
    pod
}

#[tokio::test(start_paused = true)]
async fn nobody_in_particular_may_do_little_and_a_bad_token_nothing() {
    let (server, _) = server();
    let list = "namespaces is forbidden: User \"system:anonymous\" cannot list resource \"namespaces\" in API group \"\" at the cluster scope";
    let path = "forbidden: User \"system:anonymous\" cannot get path \"/api\"";
    let anonymous = [
        ("/version", 200, ""),
        ("/healthz", 200, ""),
        ("/readyz", 200, ""),
        ("/api", 403, path),
        (NAMESPACES, 403, list),
    ];
    let refused = anonymous.map(|(path, ..)| (path, 401, "Unauthorized"));
    for (header, expected) in [
        (None, anonymous),
        (Some("Basic YTpi"), anonymous),
        (Some("Bearer"), anonymous),
        (Some("Bearer "), anonymous),
        (Some("Bearer  jane-token"), anonymous),
        (Some("None"), anonymous),
        (Some("Bearer nope"), refused),
        (Some("bearer nope"), refused),
        (Some("Bearer eyJhbGciOiJub25lIn0.e30.x"), refused),
    ] {
        let mut client = Client::anonymous(&server);
        if let Some(header) = header {
            client = client.with("authorization", header);
        }
        for (path, status, message) in expected {
            let reply = client.get(path).await;
            assert_eq!(reply.status, status, "{header:?} {path}: {}", reply.text());
            if status != 200 {
                assert_eq!(reply.refusal().2, message, "{header:?} {path}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_is_the_user_it_was_given_for() {
    let (server, _) = server();
    let jane = json!({"username": "jane", "groups": ["devs", "system:authenticated"]});
    assert_eq!(who(&Client::token(&server, "jane-token")).await, jane);
    let header = Client::anonymous(&server).with("authorization", "BEARER jane-token and more");
    assert_eq!(who(&header).await, jane);
    let reply = Client::token(&server, "jane-token").get(CONFIG_MAPS).await;
    let message = "configmaps is forbidden: User \"jane\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\"";
    assert_eq!(reply.refusal(), (403, "Forbidden".to_owned(), message.to_owned()));
    assert_eq!(reply.json()["details"], json!({"kind": "configmaps"}));
}

#[tokio::test(start_paused = true)]
async fn an_account_token_lives_as_long_as_the_account() {
    let (server, _) = server();
    let admin = Client::admin(&server);
    let account = admin.create(ACCOUNTS, &named("robot")).await;
    let token = token(&admin, "robot", json!({})).await;
    let robot = Client::token(&server, &token);
    let info = who(&robot).await;
    assert_eq!(info["username"], "system:serviceaccount:default:robot");
    assert_eq!(info["uid"], account.uid());
    assert_eq!(
        info["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    let credential = info["extra"]["authentication.kubernetes.io/credential-id"][0].as_str();
    assert!(credential.is_some_and(|id| id.starts_with("JTI=")), "{info}");
    admin.delete(&format!("{ACCOUNTS}/robot")).await.ok(200);
    assert_eq!(robot.get("/version").await.status, 401);
    assert_eq!(
        token_review(&admin, &token, &[]).await["error"],
        "[invalid bearer token, serviceaccounts \"robot\" not found]"
    );
    let again = admin.create(ACCOUNTS, &named("robot")).await;
    assert_eq!(robot.get("/version").await.status, 401, "another account of the same name");
    assert_eq!(
        token_review(&admin, &token, &[]).await["error"],
        format!(
            "[invalid bearer token, service account UID ({}) does not match claim ({})]",
            again.uid(),
            account.uid()
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_expires_with_a_minute_to_spare() {
    let (server, clock) = server();
    let admin = Client::admin(&server);
    admin.create(ACCOUNTS, &named("robot")).await;
    let token = token(&admin, "robot", json!({"expirationSeconds": 600})).await;
    let robot = Client::token(&server, &token);
    for (seconds, status) in [(0, 200), (599, 200), (61, 200), (1, 401), (100_000, 401)] {
        advance(&clock, seconds);
        assert_eq!(robot.get("/version").await.status, status, "after {seconds} more seconds");
    }
    assert_eq!(
        token_review(&admin, &token, &[]).await,
        json!({"user": {}, "error": "[invalid bearer token, service account token has expired]"})
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_is_good_for_its_audiences_only() {
    let (server, _) = server();
    let admin = Client::admin(&server);
    admin.create(ACCOUNTS, &named("robot")).await;
    let default = token(&admin, "robot", json!({})).await;
    let vault = token(&admin, "robot", json!({"audiences": ["vault", "door"]})).await;
    let both = token(&admin, "robot", json!({"audiences": ["vault", ISSUER]})).await;
    for (token, status) in [(&default, 200), (&vault, 401), (&both, 200)] {
        assert_eq!(Client::token(&server, token).get("/version").await.status, status);
    }
    let wrong = "[invalid bearer token, token audiences [\"vault\" \"door\"] is invalid for the target audiences [\"https://kubernetes.default.svc\"]]";
    for (token, asked, good_for, error) in [
        (default.as_str(), &[][..], json!([ISSUER]), json!(null)),
        (&vault, &[], json!(null), json!(wrong)),
        (&vault, &["vault"], json!(["vault"]), json!(null)),
        (&vault, &["other", "door"], json!(["door"]), json!(null)),
        (&both, &[], json!([ISSUER]), json!(null)),
        ("jane-token", &["any"], json!(["any"]), json!(null)),
        ("nope", &[], json!(null), json!("invalid bearer token")),
    ] {
        let status = token_review(&admin, token, asked).await;
        assert_eq!((&status["audiences"], &status["error"]), (&good_for, &error), "{asked:?}");
        assert_eq!(status["authenticated"] == true, error.is_null(), "{status}");
    }
    let empty = admin.post(&format!("{AUTHENTICATION}/tokenreviews"), &json!({})).await.refusal();
    assert_eq!((empty.0, empty.2.as_str()), (400, "token is required for TokenReview in authentication"));
}

#[tokio::test(start_paused = true)]
async fn a_bound_token_dies_with_what_it_is_bound_to() {
    let (server, clock) = server();
    let admin = Client::admin(&server);
    admin.create(ACCOUNTS, &named("robot")).await;
    let robots = account_of_pod("p", "robot");
    for (kind, path, object) in
        [("Pod", PODS, robots), ("Secret", SECRETS, named("p")), ("Node", NODES, named("p"))]
    {
        let created = admin.create(path, &object).await;
        let bound = json!({"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": "p"}});
        let token = token(&admin, "robot", bound).await;
        let robot = Client::token(&server, &token);
        let extra = who(&robot).await["extra"].clone();
        let (name, uid) = match kind {
            "Secret" => (json!(null), json!(null)),
            _ => (json!(["p"]), json!([created.uid()])),
        };
        let part = kind.to_lowercase();
        assert_eq!(extra[format!("authentication.kubernetes.io/{part}-name")], name, "{kind}");
        assert_eq!(extra[format!("authentication.kubernetes.io/{part}-uid")], uid, "{kind}");

        let finalizers = json!({"metadata": {"finalizers": ["example.com/wait"]}});
        admin.patch(MERGE_PATCH, &format!("{path}/p"), &finalizers).await.ok(200);
        admin.delete_with(&format!("{path}/p"), &json!({"gracePeriodSeconds": 0})).await.ok(200);
        assert_eq!(robot.get("/version").await.status, 200, "{kind}: on its way out, but there");
        advance(&clock, 61);
        assert_eq!(robot.get("/version").await.status, 401, "{kind}: on its way out for a minute");
        let none = json!({"metadata": {"finalizers": null}});
        admin.patch(MERGE_PATCH, &format!("{path}/p"), &none).await.ok(200);
        let gone = token_review(&admin, &token, &[]).await;
        assert_eq!(gone["error"], "[invalid bearer token, service account token has been invalidated]");
        admin.create(path, &object).await;
        assert_eq!(robot.get("/version").await.status, 401, "{kind}: another one of the same name");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_is_not_bound_to_what_is_not_there() {
    let (server, _) = server();
    let admin = Client::admin(&server);
    let account = admin.create(ACCOUNTS, &named("robot")).await;
    admin.create(PODS, &account_of_pod("other", "other")).await;
    admin.create(SECRETS, &named("s")).await;
    let bound = |kind: &str, name: &str, uid: &str| json!({"spec": {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name, "uid": uid}}});
    let other_uid = format!(
        "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"robot\": the UID in the token request (wrong) does not match the UID of the service account ({})",
        account.uid()
    );
    for (request, status, message) in [
        (bound("Pod", "none", ""), 404, "pods \"none\" not found"),
        (bound("Foo", "none", ""), 400, "cannot bind token to object of type /v1, Kind=Foo"),
        (
            bound("Secret", "s", "wrong"),
            409,
            "Operation cannot be fulfilled on Secret \"s\": the UID in the bound object reference (wrong) does not match the UID in record. The object might have been deleted and then recreated",
        ),
        (
            bound("Pod", "other", ""),
            400,
            "cannot bind token for serviceaccount \"robot\" to pod running with different serviceaccount name.",
        ),
        (json!({"metadata": {"uid": "wrong"}}), 409, &other_uid),
    ] {
        let refusal = admin.post(&format!("{ACCOUNTS}/robot/token"), &request).await.refusal();
        assert_eq!((refusal.0, refusal.2.as_str()), (status, message), "{request}");
    }
}

#[tokio::test(start_paused = true)]
async fn impersonation_changes_who_is_asking() {
    let (server, _) = server();
    let admin = Client::admin(&server);
    admin.create(ACCOUNTS, &named("robot")).await;
    for (headers, expected) in [
        (&[("user", "bob")][..], json!({"username": "bob", "groups": ["system:authenticated"]})),
        (
            &[("user", "bob"), ("group", "a"), ("group", "b"), ("uid", "u1")],
            json!({"username": "bob", "uid": "u1", "groups": ["a", "b", "system:authenticated"]}),
        ),
        (
            &[
                ("user", "bob"),
                ("extra-scopes", "x"),
                ("extra-scopes", "y"),
                ("extra-acme.com%2Fproject", "z"),
            ],
            json!({
                "username": "bob", "groups": ["system:authenticated"],
                "extra": {"scopes": ["x", "y"], "acme.com/project": ["z"]},
            }),
        ),
        (
            &[("user", "system:serviceaccount:default:robot")],
            json!({
                "username": "system:serviceaccount:default:robot",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
            }),
        ),
        (
            &[("user", "system:serviceaccount:not:an:account")],
            json!({"username": "system:serviceaccount:not:an:account", "groups": ["system:authenticated"]}),
        ),
        (
            &[("user", "system:serviceaccount:default:robot"), ("group", "only")],
            json!({"username": "system:serviceaccount:default:robot", "groups": ["only", "system:authenticated"]}),
        ),
    ] {
        let mut client = admin.clone();
        for (name, value) in headers {
            client = client.with(&format!("impersonate-{name}"), value);
        }
        assert_eq!(who(&client).await, expected, "{headers:?}");
    }
    assert_eq!(admin.with("impersonate-user", "bob").get(NAMESPACES).await.status, 403);
    let masters = admin.with("impersonate-user", "bob").with("impersonate-group", "system:masters");
    assert_eq!(masters.get(NAMESPACES).await.status, 200);
    for (header, value, words) in [
        ("impersonate-group", "g", "UID:\"\", Groups:[]string{\"g\"}, Extra:map[string][]string(nil)"),
        ("impersonate-uid", "u", "UID:\"u\", Groups:[]string(nil), Extra:map[string][]string(nil)"),
        (
            "impersonate-extra-foo",
            "g",
            "UID:\"\", Groups:[]string(nil), Extra:map[string][]string{\"foo\":[]string{\"g\"}}",
        ),
    ] {
        let refusal = admin.with(header, value).get(CONFIG_MAPS).await.refusal();
        let message =
            format!("requested &user.DefaultInfo{{Name:\"\", {words}}} without impersonating a user name");
        assert_eq!((refusal.0, refusal.2), (400, message));
    }
}

#[tokio::test(start_paused = true)]
async fn impersonation_needs_a_rule_for_each_part() {
    let (server, _) = server();
    let admin = Client::admin(&server);
    allow(
        &admin,
        "jane",
        &json!([
            {"apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"], "verbs": ["impersonate"]},
            {"apiGroups": [""], "resources": ["groups"], "resourceNames": ["a"], "verbs": ["impersonate"]},
            {"apiGroups": ["authentication.k8s.io"], "resources": ["uids"], "resourceNames": ["u"], "verbs": ["impersonate"]},
            {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes"], "resourceNames": ["s"], "verbs": ["impersonate"]},
        ]),
    )
    .await;
    let jane = Client::token(&server, "jane-token");
    for (headers, allowed) in [
        (&[("user", "bob")][..], true),
        (&[("user", "eve")], false),
        (&[("user", "bob"), ("group", "a")], true),
        (&[("user", "bob"), ("group", "a"), ("group", "b")], false),
        (&[("user", "bob"), ("uid", "u")], true),
        (&[("user", "bob"), ("uid", "v")], false),
        (&[("user", "bob"), ("extra-scopes", "s")], true),
        (&[("user", "bob"), ("extra-scopes", "t")], false),
        (&[("user", "bob"), ("extra-other", "s")], false),
        (&[("user", "bob"), ("group", "system:masters")], false),
        (&[("user", "system:serviceaccount:default:robot")], false),
    ] {
        let mut client = jane.clone();
        for (name, value) in headers {
            client = client.with(&format!("impersonate-{name}"), value);
        }
        let reply = client.get("/version").await;
        assert_eq!(reply.status, if allowed { 200 } else { 403 }, "{headers:?}: {}", reply.text());
    }
    for (user, words) in [
        ("eve", "impersonate-on:user-info:get"),
        ("system:serviceaccount:default:robot", "impersonate-on:serviceaccount:get"),
        ("system:node:n", "impersonate-on:arbitrary-node:get"),
    ] {
        let refusal = jane.with("impersonate-user", user).get(&format!("{CONFIG_MAPS}/x")).await.refusal();
        let message = format!(
            "configmaps \"x\" is forbidden: User \"jane\" cannot {words} resource \"configmaps\" in API group \"\" in the namespace \"default\""
        );
        assert_eq!((refusal.0, refusal.2), (403, message));
    }
}

#[tokio::test(start_paused = true)]
async fn constrained_impersonation_is_for_what_it_says_only() {
    let (server, _) = server();
    let admin = Client::admin(&server);
    let on = |way: &str| rule("", &["configmaps"], &[&format!("impersonate-on:{way}:list")]);
    let to = |way: &str, resource: &str, name: &str| json!({"apiGroups": ["authentication.k8s.io"], "resources": [resource], "resourceNames": [name], "verbs": [format!("impersonate:{way}")]});
    allow(
        &admin,
        "jane",
        &json!([
            on("user-info"),
            to("user-info", "users", "bob"),
            to("user-info", "groups", "a"),
            to("user-info", "groups", "system:masters"),
            on("serviceaccount"),
            to("serviceaccount", "serviceaccounts", "robot"),
            on("arbitrary-node"),
            to("arbitrary-node", "nodes", "n"),
        ]),
    )
    .await;
    admin
        .create(
            &format!("{RBAC}/clusterroles"),
            &role("lister", &json!([rule("", &["configmaps"], &["list"])])),
        )
        .await;
    for user in ["bob", "system:serviceaccount:default:robot", "system:node:n"] {
        let bound = binding("ClusterRole", "lister", user);
        admin.create(&format!("{RBAC}/clusterrolebindings"), &bound).await;
    }
    let jane = Client::token(&server, "jane-token");
    let masters = "groups \"system:masters\" is forbidden: User \"jane\" cannot impersonate:user-info resource \"groups\" in API group \"authentication.k8s.io\" at the cluster scope: impersonating the system:masters group is not allowed";
    for (headers, path, message) in [
        (&[("user", "bob")][..], CONFIG_MAPS, ""),
        (&[("user", "bob"), ("group", "a")], CONFIG_MAPS, ""),
        (&[("user", "system:serviceaccount:default:robot")], CONFIG_MAPS, ""),
        (&[("user", "system:node:n")], CONFIG_MAPS, ""),
        (
            &[("user", "bob")],
            PODS,
            "pods is forbidden: User \"jane\" cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \"default\"",
        ),
        (
            &[("user", "eve")],
            CONFIG_MAPS,
            "users.authentication.k8s.io \"eve\" is forbidden: User \"jane\" cannot impersonate:user-info resource \"users\" in API group \"authentication.k8s.io\" at the cluster scope",
        ),
        (
            &[("user", "system:serviceaccount:default:eve")],
            CONFIG_MAPS,
            "serviceaccounts.authentication.k8s.io \"eve\" is forbidden: User \"jane\" cannot impersonate:serviceaccount resource \"serviceaccounts\" in API group \"authentication.k8s.io\" in the namespace \"default\"",
        ),
        (
            &[("user", "bob"), ("group", "system:masters")],
            CONFIG_MAPS,
            &masters.replacen("groups", "groups.authentication.k8s.io", 1),
        ),
    ] {
        let mut client = jane.clone();
        for (name, value) in headers {
            client = client.with(&format!("impersonate-{name}"), value);
        }
        let reply = client.get(path).await;
        if message.is_empty() {
            assert_eq!(reply.status, 200, "{headers:?} {}", reply.text());
        } else {
            assert_eq!((reply.status, reply.json().message()), (403, message), "{headers:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_may_be_let_be_the_node_it_runs_on() {
    let (server, _) = server();
    let admin = Client::admin(&server);
    admin.create(ACCOUNTS, &named("agent")).await;
    admin.create(NODES, &named("n")).await;
    let mut pod = account_of_pod("p", "agent");
    pod["spec"]["nodeName"] = "n".into();
    admin.create(PODS, &pod).await;
    let agent = "system:serviceaccount:default:agent";
    let rules = json!([
        rule("authentication.k8s.io", &["selfsubjectreviews"], &["impersonate-on:associated-node:create"]),
        rule("authentication.k8s.io", &["nodes"], &["impersonate:associated-node"]),
    ]);
    allow(&admin, agent, &rules).await;
    let bound = json!({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}});
    let client = Client::token(&server, &token(&admin, "agent", bound).await);
    let node = json!({"username": "system:node:n", "groups": ["system:nodes", "system:authenticated"]});
    assert_eq!(who(&client.with("impersonate-user", "system:node:n")).await, node);
    let unbound = Client::token(&server, &token(&admin, "agent", json!({})).await);
    for (client, user) in [(&client, "system:node:other"), (&unbound, "system:node:n"), (&client, "bob")] {
        let client = client.with("impersonate-user", user);
        assert_eq!(
            client.post(&format!("{AUTHENTICATION}/selfsubjectreviews"), &json!({})).await.status,
            403
        );
    }
}

#[tokio::test(start_paused = true)]
async fn rules_allow_what_they_name_and_nothing_else() {
    let (server, _) = server();
    let admin = Client::admin(&server);
    for name in ["x", "y"] {
        admin.create(CONFIG_MAPS, &config_map(name, "1")).await;
        admin.create(DEPLOYMENTS, &deployment(name)).await;
    }
    allow(
        &admin,
        "jane",
        &json!([
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["x"], "verbs": ["get", "list", "delete"]},
            {"apiGroups": ["apps"], "resources": ["deployments/scale", "*/status"], "verbs": ["get"]},
            {"nonResourceURLs": ["/metrics", "/logs/*"], "verbs": ["get"]},
        ]),
    )
    .await;
    let jane = Client::token(&server, "jane-token");
    let scale = format!("{DEPLOYMENTS}/x/scale");
    for (method, path, status) in [
        ("GET", format!("{CONFIG_MAPS}/x"), 200),
        ("GET", format!("{CONFIG_MAPS}/y"), 403),
        ("GET", CONFIG_MAPS.to_owned(), 403),
        ("GET", format!("{CONFIG_MAPS}?fieldSelector=metadata.name=x"), 200),
        ("GET", format!("{CONFIG_MAPS}?fieldSelector=metadata.name=y"), 403),
        ("GET", "/api/v1/namespaces/kube-system/configmaps/x".to_owned(), 404),
        ("DELETE", format!("{CONFIG_MAPS}/y"), 403),
        ("DELETE", CONFIG_MAPS.to_owned(), 403),
        ("DELETE", format!("{CONFIG_MAPS}/x"), 200),
        ("GET", format!("{DEPLOYMENTS}/x"), 403),
        ("GET", scale.clone(), 200),
        ("PUT", scale, 403),
        ("GET", format!("{DEPLOYMENTS}/x/status"), 200),
        ("GET", "/metrics".to_owned(), 200),
        ("POST", "/metrics".to_owned(), 403),
        ("GET", "/metrics/x".to_owned(), 403),
        ("GET", "/logs/a/b".to_owned(), 404),
        ("GET", "/logs".to_owned(), 403),
        ("GET", "/apis/apps/v1".to_owned(), 200),
    ] {
        let reply = jane.send(method, &path, "").await;
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.text());
    }
    let refusal = jane.get(&format!("{DEPLOYMENTS}/x/log")).await.refusal().2;
    assert_eq!(
        refusal,
        "deployments.apps \"x\" is forbidden: User \"jane\" cannot get resource \"deployments/log\" in API group \"apps\" in the namespace \"default\""
    );
}

#[tokio::test(start_paused = true)]
async fn bindings_reach_users_groups_and_accounts_where_they_are() {
    let (server, _) = server();
    let admin = Client::admin(&server);
    admin.create(ROLES, &role("local", &json!([rule("", &["configmaps"], &["list"])]))).await;
    admin
        .create(&format!("{RBAC}/clusterroles"), &role("wide", &json!([rule("", &["pods"], &["list"])])))
        .await;
    let bind = |name: &str, kind: &str, role: &str, subject: Value| json!({"metadata": {"name": name}, "subjects": [subject], "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}});
    let account = json!({"kind": "ServiceAccount", "name": "robot", "namespace": "default"});
    admin.create(ROLE_BINDINGS, &bind("a", "Role", "local", account)).await;
    admin
        .create(ROLE_BINDINGS, &bind("b", "ClusterRole", "wide", json!({"kind": "Group", "name": "devs"})))
        .await;
    admin.create(ROLE_BINDINGS, &bind("c", "Role", "missing", json!({"kind": "User", "name": "jane"}))).await;
    let everyone = json!({"kind": "Group", "name": "system:serviceaccounts:default"});
    admin.create(&format!("{RBAC}/clusterrolebindings"), &bind("d", "ClusterRole", "wide", everyone)).await;
    let robot = User::service_account("default", "robot");
    let stranger = User::service_account("kube-system", "robot");
    let elsewhere = |resource: &str| format!("/api/v1/namespaces/kube-system/{resource}");
    for (user, path, status) in [
        (robot.clone(), CONFIG_MAPS.to_owned(), 200),
        (robot.clone(), elsewhere("configmaps"), 403),
        (robot.clone(), PODS.to_owned(), 200),
        (robot, "/api/v1/pods".to_owned(), 200),
        (stranger.clone(), CONFIG_MAPS.to_owned(), 403),
        (stranger, PODS.to_owned(), 403),
        (User::new("bob", &["devs"]), PODS.to_owned(), 200),
        (User::new("bob", &["devs"]), elsewhere("pods"), 403),
        (User::new("bob", &["ops"]), PODS.to_owned(), 403),
        (User::new("devs", &[]), PODS.to_owned(), 403),
    ] {
        let reply = Client::user(&server, user.clone()).get(&path).await;
        assert_eq!(reply.status, status, "{} {path}: {}", user.name, reply.text());
    }
    let refusal = Client::token(&server, "jane-token").get(CONFIG_MAPS).await.refusal().2;
    assert!(
        refusal.ends_with(
            "in the namespace \"default\": RBAC: role.rbac.authorization.k8s.io \"missing\" not found"
        ),
        "{refusal}"
    );
    admin.delete(&format!("{ROLE_BINDINGS}/b")).await.ok(200);
    assert_eq!(Client::user(&server, User::new("bob", &["devs"])).get(PODS).await.status, 403, "at once");
}

#[tokio::test(start_paused = true)]
async fn nobody_grants_what_they_do_not_have() {
    let (server, _) = server();
    let admin = Client::admin(&server);
    let writes = json!([
        rule("rbac.authorization.k8s.io", &["roles", "rolebindings", "clusterroles"], &["create", "patch"]),
        rule("", &["configmaps"], &["get"]),
    ]);
    allow(&admin, "jane", &writes).await;
    admin.create(ROLES, &role("strong", &json!([rule("", &["configmaps"], &["get", "delete"])]))).await;
    admin.create(ROLES, &role("weak", &json!([rule("", &["configmaps"], &["get"])]))).await;
    let jane = Client::token(&server, "jane-token");
    jane.create(ROLES, &role("mine", &json!([rule("", &["configmaps"], &["get"])]))).await;
    jane.create(ROLE_BINDINGS, &binding("Role", "weak", "bob")).await;
    let not_held = |what: &str, missing: &str| {
        format!(
            "{what} is forbidden: user \"jane\" (groups=[\"devs\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{missing}"
        )
    };
    let own = "roles.rbac.authorization.k8s.io \"new\"";
    let bound = "rolebindings.rbac.authorization.k8s.io \"strong-bob\"";
    let refuse = |reply: &crate::client::Reply| {
        let (status, reason, message) = reply.refusal();
        assert_eq!((status, reason.as_str()), (403, "Forbidden"));
        message
    };
    for (rules, missing) in [
        (
            json!([{"apiGroups": ["", "apps"], "resources": ["pods", "configmaps"], "verbs": ["get", "list"]}]),
            "{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"list\"]}\n\
             {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}\n\
             {APIGroups:[\"apps\"], Resources:[\"configmaps\"], Verbs:[\"get\" \"list\"]}\n\
             {APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}",
        ),
        (
            json!([{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a", "b"], "verbs": ["get"]}]),
            "{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"a\"], Verbs:[\"get\"]}\n\
             {APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"b\"], Verbs:[\"get\"]}",
        ),
        (json!([rule("*", &["*"], &["*"])]), "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}"),
    ] {
        let reply = jane.post(ROLES, &role("new", &rules)).await;
        assert_eq!(refuse(&reply), not_held(own, missing));
    }
    let reply = jane.post(ROLE_BINDINGS, &binding("Role", "strong", "bob")).await;
    assert_eq!(
        refuse(&reply),
        not_held(bound, "{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"delete\"]}")
    );
    let reply = jane.post(ROLE_BINDINGS, &binding("Role", "none", "bob")).await;
    assert_eq!(reply.refusal().2, "roles.rbac.authorization.k8s.io \"none\" not found");

    let strong = format!("{ROLES}/strong");
    let owned = json!({"metadata": {"finalizers": ["example.com/a"]}});
    jane.patch(MERGE_PATCH, &strong, &owned).await.ok(200);
    let labelled = jane.patch(MERGE_PATCH, &strong, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(labelled.status, 403, "a change to a role with more rights than one's own");

    let mut gathers = role("gathers", &json!([]));
    gathers["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    assert_eq!(
        refuse(&jane.post(&format!("{RBAC}/clusterroles"), &gathers).await),
        "clusterroles.rbac.authorization.k8s.io \"gathers\" is forbidden: must have cluster-admin privileges to use the aggregationRule"
    );
}

#[tokio::test(start_paused = true)]
async fn escalate_and_bind_are_the_ways_around() {
    let strong = role("strong", &json!([rule("*", &["*"], &["*"])]));
    for (verbs, names, create, patch, bind) in [
        (&["create", "patch"][..], json!([]), 403, 403, 403),
        (&["create", "patch", "escalate"], json!([]), 201, 200, 403),
        (&["create", "patch", "bind"], json!([]), 403, 403, 201),
        (&["escalate", "bind"], json!(["kept"]), 403, 200, 201),
        (&["escalate", "bind"], json!(["other"]), 403, 403, 403),
    ] {
        let (server, _) = server();
        let admin = Client::admin(&server);
        let mut special = rule("rbac.authorization.k8s.io", &["roles"], verbs);
        special["resourceNames"] = names.clone();
        let plain = rule("rbac.authorization.k8s.io", &["roles", "rolebindings"], &["create", "patch"]);
        allow(&admin, "jane", &json!([special, plain])).await;
        let mut kept = strong.clone();
        kept["metadata"]["name"] = "kept".into();
        admin.create(ROLES, &kept).await;
        let jane = Client::token(&server, "jane-token");
        assert_eq!(jane.post(ROLES, &strong).await.status, create, "create {verbs:?} {names}");
        let rules = json!({"rules": [rule("*", &["*"], &["get", "*"])]});
        assert_eq!(
            jane.patch(MERGE_PATCH, &format!("{ROLES}/kept"), &rules).await.status,
            patch,
            "patch {verbs:?} {names}"
        );
        assert_eq!(
            jane.post(ROLE_BINDINGS, &binding("Role", "kept", "bob")).await.status,
            bind,
            "bind {verbs:?} {names}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn reviews_say_what_the_authoriser_would() {
    let (server, _) = server();
    let admin = Client::admin(&server);
    admin.create(ROLES, &role("reader", &json!([rule("", &["configmaps"], &["get"])]))).await;
    admin.create(ROLE_BINDINGS, &binding("Role", "reader", "jane")).await;
    let jane = Client::token(&server, "jane-token");
    let yes = json!({"allowed": true, "reason": "RBAC: allowed by RoleBinding \"reader-jane/default\" of Role \"reader\" to User \"jane\""});
    let no = json!({"allowed": false});
    let get = |namespace: &str| json!({"verb": "get", "resource": "configmaps", "namespace": namespace});
    let path = json!({"verb": "get", "path": "/version"});
    let public = json!({"allowed": true, "reason": "RBAC: allowed by ClusterRoleBinding \"system:public-info-viewer\" of ClusterRole \"system:public-info-viewer\" to Group \"system:unauthenticated\""});
    let local = format!("{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews");
    let all = format!("{AUTHORIZATION}/subjectaccessreviews");
    let own = format!("{AUTHORIZATION}/selfsubjectaccessreviews");
    for (client, url, spec, status) in [
        (&admin, &all, json!({"user": "jane", "resourceAttributes": get("default")}), &yes),
        (&admin, &all, json!({"user": "jane", "resourceAttributes": get("other")}), &no),
        (&admin, &all, json!({"user": "bob", "resourceAttributes": get("default")}), &no),
        (
            &admin,
            &all,
            json!({"user": "bob", "groups": ["system:masters"], "resourceAttributes": get("any")}),
            &json!({"allowed": true}),
        ),
        (&admin, &all, json!({"groups": ["system:unauthenticated"], "nonResourceAttributes": path}), &public),
        (&admin, &all, json!({"user": "bob", "nonResourceAttributes": path}), &no),
        (&admin, &local, json!({"user": "jane", "resourceAttributes": get("default")}), &yes),
        (&jane, &own, json!({"resourceAttributes": get("default")}), &yes),
        (&jane, &own, json!({"resourceAttributes": get("other")}), &no),
        (&admin, &own, json!({"resourceAttributes": get("other")}), &json!({"allowed": true})),
    ] {
        let answer = client.post(url, &json!({"spec": spec})).await.ok(201);
        assert_eq!(answer["status"], *status, "{url} {spec}");
        assert_eq!(answer["spec"], spec, "the question comes back");
    }
    assert_eq!(
        jane.post(&all, &json!({"spec": {"user": "x", "resourceAttributes": get("any")}})).await.status,
        403
    );
    for (url, spec, status, words) in [
        (
            &all,
            json!({"resourceAttributes": get("any")}),
            422,
            "at least one of user or group must be specified",
        ),
        (
            &all,
            json!({"user": "x"}),
            422,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (
            &own,
            json!({}),
            422,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (
            &local,
            json!({"user": "x", "resourceAttributes": get("other")}),
            422,
            "must match metadata.namespace",
        ),
    ] {
        let refusal = admin.post(url, &json!({"spec": spec})).await.refusal();
        assert_eq!(refusal.0, status, "{}", refusal.2);
        assert!(refusal.2.contains(words), "{}", refusal.2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rules_review_lists_all_rules_of_the_caller() {
    let (server, _) = server();
    let admin = Client::admin(&server);
    let rules =
        json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["get"]}]);
    admin.create(ROLES, &role("reader", &rules)).await;
    admin.create(ROLE_BINDINGS, &binding("Role", "reader", "jane")).await;
    let jane = Client::token(&server, "jane-token");
    let url = format!("{AUTHORIZATION}/selfsubjectrulesreviews");
    for (namespace, listed) in [("default", true), ("other", false)] {
        let answer = jane.post(&url, &json!({"spec": {"namespace": namespace}})).await.ok(201);
        assert_eq!((&answer["spec"], &answer["status"]["incomplete"]), (&json!({}), &json!(false)));
        let resources = answer["status"]["resourceRules"].as_array().expect("rules");
        assert_eq!(resources.contains(&rules[0]), listed, "{answer}");
        let basic = json!({"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]});
        assert!(resources.contains(&basic), "{answer}");
        let paths = answer["status"]["nonResourceRules"].as_array().expect("rules");
        assert!(paths.iter().any(|rule| rule["nonResourceURLs"][0] == "/healthz"), "{answer}");
    }
    let refusal = jane.post(&url, &json!({"spec": {}})).await.refusal();
    assert_eq!((refusal.0, refusal.2.as_str()), (400, "no namespace on request"));
}

#[tokio::test(start_paused = true)]
async fn the_recorder_hears_who_wanted_what() {
    let heard: Arc<Mutex<Vec<Access>>> = Arc::default();
    let sink = heard.clone();
    let (builder, _) = builder();
    let builder = builder.token("jane-token", User::new("jane", &["devs"]));
    let server =
        builder.recorder(move |access: &Access| sink.lock().expect("a lock").push(access.clone())).build();
    let admin = Client::admin(&server);
    let bob = admin.with("impersonate-user", "bob");
    let jane = Client::token(&server, "jane-token");
    let name = "kubernetes-admin";
    for (client, method, path, expected) in [
        (&admin, "GET", CONFIG_MAPS, [name, "list", "", "configmaps", "", "default", ""]),
        (&admin, "GET", &format!("{CONFIG_MAPS}/x"), [name, "get", "", "configmaps", "", "default", "x"]),
        (
            &admin,
            "GET",
            &format!("{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name=x"),
            [name, "watch", "", "configmaps", "", "default", "x"],
        ),
        (
            &admin,
            "PATCH",
            &format!("{DEPLOYMENTS}/d/scale"),
            [name, "patch", "apps", "deployments", "scale", "default", "d"],
        ),
        (&admin, "DELETE", CONFIG_MAPS, [name, "deletecollection", "", "configmaps", "", "default", ""]),
        (&jane, "POST", CONFIG_MAPS, ["jane", "create", "", "configmaps", "", "default", ""]),
        (
            &bob,
            "PUT",
            &format!("{NAMESPACES}/n/status"),
            ["bob", "update", "", "namespaces", "status", "n", "n"],
        ),
        (&jane, "GET", "/apis", ["jane", "get", "", "", "", "", ""]),
        (
            &admin,
            "DELETE",
            "/apis/example.com/v1/namespaces/a/things/b",
            [name, "delete", "example.com", "things", "", "a", "b"],
        ),
    ] {
        client.send(method, path, "").await;
        let access = std::mem::take(&mut *heard.lock().expect("a lock")).pop().expect("it was heard");
        let parts = [
            &access.user.name,
            &access.verb,
            &access.group,
            &access.resource,
            &access.subresource,
            &access.namespace,
            &access.name,
        ];
        assert_eq!(parts, expected.each_ref().map(|part| part), "{method} {path}");
        assert_eq!(access.path, path.split('?').next().unwrap_or_default());
    }
    bob.get(CONFIG_MAPS).await;
    let rights: Vec<Access> = std::mem::take(&mut *heard.lock().expect("a lock"));
    let by = |access: &&Access| access.user.name == name && access.verb.starts_with("impersonate");
    assert!(rights.iter().any(|access| by(&access) && access.resource == "users" && access.name == "bob"));
    Client::token(&server, "nope").get(CONFIG_MAPS).await;
    assert!(heard.lock().expect("a lock").is_empty(), "who is nobody wants nothing");
}
