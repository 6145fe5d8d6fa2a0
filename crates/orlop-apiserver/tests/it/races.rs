//! Many callers at once, on real threads: nothing is given twice, nothing is left behind, nobody is refused for
//! having been second.

use crate::client::{APPLY, Client};
use crate::objects::{CONFIG_MAPS, DEFINITIONS, WIDGETS, named, widget, widgets};
use orlop_apiserver::ApiServer;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::task::JoinSet;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const CALLERS: usize = 8;

/// Lets callers do their work at the same time; what each gives comes back.
async fn at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    work: impl Fn(usize) -> F,
) -> Vec<T> {
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        callers.spawn(work(caller));
    }
    callers.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_address_and_no_port_is_given_twice() {
    let server = ApiServer::builder().build();
    let client = Client::admin(&server);
    at_once(|caller| {
        let client = client.clone();
        async move {
            for n in 0..20 {
                let ports = json!([{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]);
                let mut service = named(&format!("s{caller}-{n}"));
                service["spec"] = json!({"type": "NodePort", "ports": ports});
                client.create(SERVICES, &service).await;
                // Refused, tried and generated ones take nothing away, and give nothing back that is not theirs.
                service["spec"]["sessionAffinity"] = "Nonsense".into();
                assert_eq!(client.post(SERVICES, &service).await.status, 422);
                client.post(&format!("{SERVICES}?dryRun=All"), &named_service("dry")).await;
                assert_eq!(
                    client.post(SERVICES, &named_service(&format!("s{caller}-{n}"))).await.status,
                    409
                );
                if n % 4 == 3 {
                    client.delete(&format!("{SERVICES}/s{caller}-{n}")).await.ok(200);
                }
            }
        }
    })
    .await;
    let list = client.get(SERVICES).await.ok(200);
    let services = list["items"].as_array().expect("a list");
    let ips: BTreeSet<&str> = services.iter().filter_map(|s| s["spec"]["clusterIP"].as_str()).collect();
    assert_eq!(ips.len(), services.len());
    let ports: Vec<i64> = services
        .iter()
        .flat_map(|service| service["spec"]["ports"].as_array().into_iter().flatten())
        .filter_map(|port| port["nodePort"].as_i64())
        .collect();
    assert_eq!(ports.len(), CALLERS * 15 * 2);
    assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), ports.len());
}

fn named_service(name: &str) -> Value {
    let mut service = named(name);
    service["spec"] = json!({"ports": [{"port": 80}]});
    service
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn first_applies_of_many_managers_all_succeed() {
    let server = ApiServer::builder().build();
    let client = Client::admin(&server);
    for round in 0..20 {
        let path = format!("{CONFIG_MAPS}/shared-{round}");
        let codes = at_once(|caller| {
            let (client, path) = (client.clone(), path.clone());
            async move {
                let data = json!({format!("key-{caller}"): "value"});
                let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data});
                client.patch(APPLY, &format!("{path}?fieldManager=m{caller}"), &body).await.status
            }
        })
        .await;
        assert_eq!(codes.iter().filter(|code| **code == 201).count(), 1, "{codes:?}");
        assert!(codes.iter().all(|code| matches!(code, 200 | 201)), "{codes:?}");
        let object = client.get(&path).await.ok(200);
        assert_eq!(object["data"].as_object().map(serde_json::Map::len), Some(CALLERS));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_definition_that_goes_leaves_no_instance_behind() {
    let server = ApiServer::builder().build();
    let client = Client::admin(&server);
    for round in 0..20 {
        client.create(DEFINITIONS, &widgets(&["v1"])).await;
        at_once(|caller| {
            let client = client.clone();
            async move {
                if caller == 0 {
                    for _ in 0..round {
                        tokio::task::yield_now().await;
                    }
                    client.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.ok(200);
                    return;
                }
                for n in 0..20 {
                    client.post(WIDGETS, &widget(&format!("w{caller}-{n}"))).await;
                }
            }
        })
        .await;
        assert_eq!(client.get(&format!("{DEFINITIONS}/widgets.example.com")).await.status, 404);
        client.create(DEFINITIONS, &widgets(&["v1"])).await;
        assert_eq!(client.names(WIDGETS).await, [""; 0], "round {round}");
        client.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.ok(200);
    }
}
