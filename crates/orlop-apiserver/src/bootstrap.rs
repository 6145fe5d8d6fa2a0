//! What a new cluster holds before anyone has written to it.
//!
//! The objects are the same in every server but for uid, time and version. They are serialised once in a process
//! with marks in these places; a new server only fills the marks in, which is what makes it start within a
//! millisecond.

use crate::kind::Kind;
use crate::object::{self, Header};
use crate::server::Inner;
use bytes::Bytes;
use orlop_kinds::catalog::catalog;
use orlop_store::{Change, Expect, Key, Revision};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// What stands in a seed where each server has its own value, in the order of the fields.
const MARKS: [(&str, &str); 3] =
    [("creationTimestamp", "<time>"), ("resourceVersion", "<version>"), ("uid", "<uid>")];

static SEEDS: LazyLock<Vec<Seed>> =
    LazyLock::new(|| objects().into_iter().map(|(kind, object)| Seed::new(kind, object)).collect());

/// Writes namespaces, roles, priority classes and the `kubernetes` Service.
pub(crate) fn populate(server: &Inner) {
    let (now, now_ms) = (server.now(), server.now_ms());
    for seed in SEEDS.iter() {
        let uid = server.rng.uuid();
        let change = |revision| seed.grow(&now, revision, &uid);
        // Only a name that stands twice in the data could be refused, and the first one stays.
        let _ = server.store.commit(&seed.kind.table, &seed.key, Expect::Absent, now_ms, change);
    }
    server.reclaim_addresses();
}

/// An object as it is stored, but for what differs between servers.
struct Seed {
    kind: Arc<Kind>,
    key: Key,
    /// The body between the marks.
    parts: [Box<[u8]>; 4],
    /// The header of the body with the marks in it.
    header: Header,
}

impl Seed {
    fn new(kind: Arc<Kind>, mut object: Value) -> Self {
        object["kind"] = kind.kind.as_str().into();
        object["apiVersion"] = kind.api_version().into();
        for (field, mark) in MARKS {
            object::set_meta(&mut object, field, mark);
        }
        let key = kind.key(object::meta_str(&object, "namespace"), object::meta_str(&object, "name"));
        let (body, header) = object::encode(&kind.to_storage(&object), kind.schema_state());
        let mut rest = &body[..];
        let mut cut = |mark: &str| {
            let at = rest.windows(mark.len()).position(|window| window == mark.as_bytes());
            let at = at.expect("metadata is written with its fields in order");
            let part = rest[..at].into();
            rest = &rest[at + mark.len()..];
            part
        };
        let [time, version, uid] = MARKS.map(|(_, mark)| cut(mark));
        Self { kind, key, parts: [time, version, uid, rest.into()], header }
    }

    /// The object for one server.
    fn grow(&self, time: &str, revision: Revision, uid: &str) -> Change<Header> {
        let version = revision.to_string();
        let values = [time, &version, uid];
        let mut body = Vec::with_capacity(self.parts.iter().map(|part| part.len()).sum::<usize>() + 80);
        for (part, value) in self.parts.iter().zip(values) {
            body.extend_from_slice(part);
            body.extend_from_slice(value.as_bytes());
        }
        body.extend_from_slice(&self.parts[3]);
        body.shrink_to_fit();
        let bytes = |texts: [&str; 3]| texts.map(str::len).iter().sum::<usize>() as u32;
        let metadata_end = self.header.metadata_end + bytes(values) - bytes(MARKS.map(|(_, mark)| mark));
        Change::Put { body: Bytes::from(body), header: Header { metadata_end, ..self.header.clone() } }
    }
}

fn objects() -> Vec<(Arc<Kind>, Value)> {
    let namespaces = Inner::built_in("", "v1", "namespaces");
    let mut all: Vec<(Arc<Kind>, Value)> = NAMESPACES
        .iter()
        .map(|name| {
            let namespace = json!({
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            });
            (namespaces.clone(), namespace)
        })
        .collect();
    let policy = catalog();
    for (plural, objects) in [
        ("clusterroles", policy.bootstrap_cluster_roles()),
        ("clusterrolebindings", policy.bootstrap_cluster_role_bindings()),
        ("roles", policy.bootstrap_roles()),
        ("rolebindings", policy.bootstrap_role_bindings()),
    ] {
        let kind = Inner::built_in("rbac.authorization.k8s.io", "v1", plural);
        all.extend(objects.iter().map(|object| (kind.clone(), object.clone())));
    }
    let classes = Inner::built_in("scheduling.k8s.io", "v1", "priorityclasses");
    for (name, value, description) in [
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ] {
        all.push((
            classes.clone(),
            json!({
                "metadata": {"name": name, "generation": 1}, "value": value, "description": description,
                "preemptionPolicy": "PreemptLowerPriority",
            }),
        ));
    }
    let services = Inner::built_in("", "v1", "services");
    let service = json!({
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
        "status": {"loadBalancer": {}},
    });
    all.push((services, service));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grown_seed_is_what_encoding_the_object_gives() {
        for (seed, (kind, mut object)) in SEEDS.iter().zip(objects()) {
            object["kind"] = kind.kind.as_str().into();
            object["apiVersion"] = kind.api_version().into();
            for (field, value) in
                [("creationTimestamp", "2030-01-01T00:00:00Z"), ("uid", "u"), ("resourceVersion", "42")]
            {
                object::set_meta(&mut object, field, value);
            }
            let (body, header) = object::encode(&kind.to_storage(&object), kind.schema_state());
            let Change::Put { body: grown, header: grown_header } =
                seed.grow("2030-01-01T00:00:00Z", Revision(42), "u")
            else {
                panic!("a seed grows into an object")
            };
            assert_eq!(grown, body);
            assert_eq!(format!("{grown_header:?}"), format!("{header:?}"));
        }
    }
}
