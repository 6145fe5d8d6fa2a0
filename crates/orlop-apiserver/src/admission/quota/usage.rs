//! What is counted of an object, by its kind.

use super::super::resources::{Resources, Side, View, containers, exceeds, is_pod_level, of_pod};
use super::super::{Attributes, Operation};
use crate::kind::Kind;
use crate::object;
use crate::status::qualified;
use orlop_clock::Timestamp;
use orlop_schema::names;
use orlop_schema::quantity::{Format, Quantity};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const POD_RESOURCES: [&str; 11] = [
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
/// What every container must say something about if a quota limits it.
const DEMANDED: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
const SERVICE_RESOURCES: [&str; 4] =
    ["count/services", "services", "services.nodeports", "services.loadbalancers"];
const CLAIM_RESOURCES: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];
/// Between a storage class and what is counted of it.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
/// Behind a device class.
const DEVICES: &str = ".deviceclass.resource.k8s.io/devices";
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";
/// As many devices as one claim can get.
const DEVICES_MAX: i64 = 32;
/// Counted by their plain name too.
const ALIASES: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];
/// Never counted: what is not stored, and events.
const IGNORED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("", "events"),
    ("events.k8s.io", "events"),
];

/// How objects of a kind are counted.
#[derive(Clone, Copy)]
pub(super) enum Counted<'a> {
    Pods,
    Services,
    Claims,
    DeviceClaims,
    /// Only their number.
    Objects(&'a Kind),
}

fn one() -> Quantity {
    whole(1)
}

fn whole(count: i64) -> Quantity {
    Quantity::whole(count, Format::DecimalSi)
}

impl<'a> Counted<'a> {
    /// How a kind is counted, if it is.
    pub(super) fn of(kind: &'a Kind) -> Option<Self> {
        let id = (kind.group.as_str(), kind.plural.as_str());
        if IGNORED.contains(&id) {
            return None;
        }
        Some(match id {
            ("", "pods") => Self::Pods,
            ("", "services") => Self::Services,
            ("", "persistentvolumeclaims") => Self::Claims,
            ("resource.k8s.io", "resourceclaims") => Self::DeviceClaims,
            _ => Self::Objects(kind),
        })
    }

    /// Whether a request can change what is counted.
    pub(super) fn handles(self, attributes: &Attributes) -> bool {
        use Operation::{Create, Update};
        let operation = attributes.operation;
        match (self, attributes.subresource.as_str()) {
            (Self::Pods, "") => {
                operation == Create
                    || operation == Update && is_ending(&attributes.old) != is_ending(&attributes.object)
            }
            (Self::Pods, "resize") => operation == Update,
            (Self::Claims, "status") => operation == Update,
            (Self::Claims | Self::Services | Self::DeviceClaims, "") => matches!(operation, Create | Update),
            (Self::Objects(_), "") => operation == Create,
            _ => false,
        }
    }

    /// Whether a resource of a quota is counted here.
    pub(super) fn knows(self, name: &str) -> bool {
        match self {
            Self::Pods => {
                POD_RESOURCES.contains(&name)
                    || name.starts_with("hugepages-")
                    || name.starts_with("requests.hugepages-")
                    || is_extended_quota(name)
            }
            Self::Services => SERVICE_RESOURCES.contains(&name),
            Self::Claims => {
                name == "count/persistentvolumeclaims"
                    || CLAIM_RESOURCES.iter().any(|resource| {
                        name == *resource
                            || name.strip_suffix(resource).is_some_and(|class| class.ends_with(OF_CLASS))
                    })
            }
            Self::DeviceClaims => name == "count/resourceclaims.resource.k8s.io" || name.ends_with(DEVICES),
            Self::Objects(kind) => {
                name.strip_prefix("count/").is_some_and(|of| of == qualified(&kind.plural, &kind.group))
                    || kind.group.is_empty() && ALIASES.contains(&name) && name == kind.plural
            }
        }
    }

    /// Whether an object is in a scope of a quota.
    pub(super) fn is_in_scope(self, scope: &Value, object: &Value) -> bool {
        match (self, object::text(scope, "scopeName")) {
            (Self::Pods, "Terminating") => is_ending(object),
            (Self::Pods, "NotTerminating") => !is_ending(object),
            (Self::Pods, "BestEffort") => is_best_effort(object),
            (Self::Pods, "NotBestEffort") => !is_best_effort(object),
            (Self::Pods, "PriorityClass") => {
                let class = object::text(&object["spec"], "priorityClassName");
                selects(scope, Some(class).filter(|class| !class.is_empty()))
            }
            (Self::Pods, "CrossNamespacePodAffinity") => looks_across_namespaces(object),
            (Self::Claims, "VolumeAttributesClass") => {
                let classes = attributes_classes(object);
                if classes.is_empty() {
                    return selects(scope, None);
                }
                classes.iter().any(|class| selects(scope, Some(class)))
            }
            _ => false,
        }
    }

    /// Says what is missing in an object that a quota wants to count.
    pub(super) fn demand(self, resources: &[&str], object: &Value) -> Result<(), String> {
        let Self::Pods = self else { return Ok(()) };
        let by_pod = ["requests", "limits"].into_iter().any(|side| {
            let given = Resources::read(&object["spec"]["resources"][side]);
            given.names().into_iter().any(|name| is_pod_level(name, View::Taken))
        });
        if by_pod {
            return Ok(());
        }
        let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let all = ["containers", "initContainers"].into_iter().flat_map(|field| containers(object, field));
        for container in all {
            let read = |side: &str| Resources::read(&container["resources"][side]);
            let usage = usage_of(&read("requests"), &read("limits"));
            for name in resources.iter().filter(|name| DEMANDED.contains(name)) {
                if usage.get(name).is_none() {
                    missing.entry(name).or_default().insert(object::text(container, "name"));
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let parts: Vec<String> = missing
            .into_iter()
            .map(|(name, containers)| format!("{name} for: {}", Vec::from_iter(containers).join(",")))
            .collect();
        Err(format!("must specify {}", parts.join("; ")))
    }

    /// What an object takes.
    pub(super) fn usage(self, object: &Value, now_ms: i64) -> Resources {
        let mut usage = Resources::default();
        match self {
            Self::Pods => {
                usage.set("count/pods", one());
                if is_running(object, now_ms) {
                    let requests = of_pod(object, Side::Requests, View::Taken);
                    usage.add(&usage_of(&requests, &of_pod(object, Side::Limits, View::Taken)));
                }
            }
            Self::Services => service_usage(object, &mut usage),
            Self::Claims => claim_usage(object, &mut usage),
            Self::DeviceClaims => device_usage(object, &mut usage),
            Self::Objects(kind) => {
                usage.set(format!("count/{}", qualified(&kind.plural, &kind.group)), one());
                if kind.group.is_empty() && ALIASES.contains(&kind.plural.as_str()) {
                    usage.set(kind.plural.clone(), one());
                }
            }
        }
        usage
    }
}

/// Requests and limits under the names that quotas use.
fn usage_of(requests: &Resources, limits: &Resources) -> Resources {
    let mut usage = Resources::default();
    usage.set("pods", one());
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(request) = requests.get(name) {
            usage.set(name, request.clone());
            usage.set(format!("requests.{name}"), request.clone());
        }
        if let Some(limit) = limits.get(name) {
            usage.set(format!("limits.{name}"), limit.clone());
        }
    }
    for (name, request) in &requests.0 {
        if name.starts_with("hugepages-") {
            usage.set(name, request.clone());
        }
        if name.starts_with("hugepages-") || is_extended(name) || name.starts_with(DEVICE_CLASS) {
            usage.set(format!("requests.{name}"), request.clone());
        }
    }
    usage
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

fn is_extended_quota(name: &str) -> bool {
    name.strip_prefix("requests.").is_some_and(|of| !is_native(name) || of.starts_with(DEVICE_CLASS))
}

/// Whether a pod has a deadline.
fn is_ending(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

/// Whether a pod still takes something.
fn is_running(pod: &Value, now_ms: i64) -> bool {
    if matches!(object::text(&pod["status"], "phase"), "Failed" | "Succeeded") {
        return false;
    }
    let deleted = object::meta_str(pod, "deletionTimestamp").parse::<Timestamp>().ok();
    let grace = object::meta_i64(pod, "deletionGracePeriodSeconds");
    match (deleted, grace) {
        (Some(at), Some(seconds)) => {
            now_ms <= at.as_millisecond().saturating_add(seconds.saturating_mul(1000))
        }
        _ => true,
    }
}

fn is_best_effort(pod: &Value) -> bool {
    match object::text(&pod["status"], "qosClass") {
        "" => {
            let asks = |resources: &Value| {
                ["requests", "limits"].into_iter().any(|side| {
                    let given = Resources::read(&resources[side]);
                    given.0.iter().any(|(name, amount)| is_pod_level(name, View::Spec) && amount.sign() > 0)
                })
            };
            let mut all =
                ["containers", "initContainers"].into_iter().flat_map(|field| containers(pod, field));
            !asks(&pod["spec"]["resources"]) && !all.any(|container| asks(&container["resources"]))
        }
        class => class == "BestEffort",
    }
}

fn looks_across_namespaces(pod: &Value) -> bool {
    let crosses = |term: &Value| {
        term["namespaces"].as_array().is_some_and(|all| !all.is_empty())
            || !term["namespaceSelector"].is_null()
    };
    ["podAffinity", "podAntiAffinity"].into_iter().any(|side| {
        let affinity = &pod["spec"]["affinity"][side];
        let list = |field: &str| affinity[field].as_array().into_iter().flatten();
        list("requiredDuringSchedulingIgnoredDuringExecution").any(crosses)
            || list("preferredDuringSchedulingIgnoredDuringExecution")
                .any(|term| crosses(&term["podAffinityTerm"]))
    })
}

/// Whether a requirement on a class holds for what an object has.
fn selects(requirement: &Value, class: Option<&str>) -> bool {
    let named = |class: &str| requirement["values"].as_array().is_some_and(|all| all.contains(&class.into()));
    match object::text(requirement, "operator") {
        "In" => class.is_some_and(named),
        "NotIn" => !class.is_some_and(named),
        "Exists" => class.is_some(),
        "DoesNotExist" => class.is_none(),
        _ => false,
    }
}

fn attributes_classes(claim: &Value) -> BTreeSet<&str> {
    let names = [
        object::text(&claim["spec"], "volumeAttributesClassName"),
        object::text(&claim["status"], "currentVolumeAttributesClassName"),
        object::text(&claim["status"]["modifyVolumeStatus"], "targetVolumeAttributesClassName"),
    ];
    names.into_iter().filter(|name| !name.is_empty()).collect()
}

fn service_usage(service: &Value, usage: &mut Resources) {
    let spec = &service["spec"];
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let given = ports.iter().filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0).count();
    let (node_ports, balancers) = match object::text(spec, "type") {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" if spec["allocateLoadBalancerNodePorts"] == false => (given, 1),
        "LoadBalancer" => (ports.len(), 1),
        _ => (0, 0),
    };
    usage.set("count/services", one());
    usage.set("services", one());
    usage.set("services.nodeports", whole(node_ports as i64));
    usage.set("services.loadbalancers", whole(balancers));
}

fn claim_usage(claim: &Value, usage: &mut Resources) {
    const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
    let annotation = claim["metadata"]["annotations"].get(BETA_CLASS).and_then(Value::as_str);
    let class = annotation.unwrap_or_else(|| object::text(&claim["spec"], "storageClassName"));
    let rounded = |mut amount: Quantity| {
        amount.round_up(0);
        amount
    };
    let requested = Resources::read(&claim["spec"]["resources"]["requests"]);
    let allocated = Resources::read(&claim["status"]["allocatedResources"]);
    let storage = requested.get("storage").map(|asked| match allocated.get("storage") {
        Some(given) if exceeds(given, asked) => rounded(given.clone()),
        _ => rounded(asked.clone()),
    });
    usage.set("count/persistentvolumeclaims", one());
    let counted = [("persistentvolumeclaims", Some(one())), ("requests.storage", storage)];
    for (name, amount) in counted {
        let Some(amount) = amount else { continue };
        if !class.is_empty() {
            usage.set(format!("{class}{OF_CLASS}{name}"), amount.clone());
        }
        usage.set(name, amount);
    }
}

fn device_usage(claim: &Value, usage: &mut Resources) {
    let devices = |request: &Value| {
        let count = match object::text(request, "allocationMode") {
            "ExactCount" => request["count"].as_i64().unwrap_or(0),
            "All" => DEVICES_MAX,
            _ => 0,
        };
        let mut one = Resources::default();
        one.set(format!("{}{DEVICES}", object::text(request, "deviceClassName")), whole(count));
        one
    };
    usage.set("count/resourceclaims.resource.k8s.io", one());
    for request in claim["spec"]["devices"]["requests"].as_array().into_iter().flatten() {
        let mut most = Resources::default();
        match request["firstAvailable"].as_array() {
            Some(all) if !all.is_empty() => all.iter().for_each(|one| most.raise(&devices(one))),
            _ if request["exactly"].is_object() => most = devices(&request["exactly"]),
            _ if request["deviceClassName"].is_string() => most = devices(request),
            _ => {}
        }
        usage.add(&most);
    }
}
