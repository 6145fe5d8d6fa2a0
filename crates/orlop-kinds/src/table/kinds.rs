//! The cells of each built-in kind, in the order of its columns.

use super::cell::Cell::{
    self, Age, Bool, Containers, Count, Filled, Images, Int, Joined, Labels, Name, Of, Present, Selector,
    Text,
};
use super::cell::{View, at, items, text_at};
use super::{age, scaling, text};
use serde_json::Value;

const TEMPLATE: &str = "spec.template.spec.containers";

/// Kinds that are missing here have a name and a creation time.
pub(super) static KINDS: &[(&str, &[Cell])] = &[
    ("APIService", &[Name, Of(api_service), Of(available), Age]),
    (
        "CSIDriver",
        &[
            Name,
            Bool("spec.attachRequired", true),
            Bool("spec.podInfoOnMount", false),
            Bool("spec.storageCapacity", false),
            Of(token_requests),
            Bool("spec.requiresRepublish", false),
            Of(lifecycle_modes),
            Age,
        ],
    ),
    ("CSINode", &[Name, Count("spec.drivers"), Age]),
    (
        "CertificateSigningRequest",
        &[
            Name,
            Age,
            Filled("spec.signerName", "<none>"),
            Text("spec.username"),
            Of(requested_duration),
            Of(csr_state),
        ],
    ),
    ("ClusterRoleBinding", ROLE_BINDING),
    ("ComponentStatus", &[Name, Of(component_health), Of(component_message), Of(component_error)]),
    ("ConfigMap", &[Name, Of(|o| (o.count("data") + o.count("binaryData")).into()), Age]),
    ("ControllerRevision", &[Name, Of(controller), Int("revision"), Age]),
    (
        "CronJob",
        &[
            Name,
            Text("spec.schedule"),
            Present("spec.timeZone", "<none>"),
            Of(suspend),
            Count("status.active"),
            Of(last_schedule),
            Age,
            Containers("spec.jobTemplate.spec.template.spec.containers"),
            Images("spec.jobTemplate.spec.template.spec.containers"),
            Selector("spec.jobTemplate.spec.selector"),
        ],
    ),
    (
        "DaemonSet",
        &[
            Name,
            Int("status.desiredNumberScheduled"),
            Int("status.currentNumberScheduled"),
            Int("status.numberReady"),
            Int("status.updatedNumberScheduled"),
            Int("status.numberAvailable"),
            Labels("spec.template.spec.nodeSelector"),
            Age,
            Containers(TEMPLATE),
            Images(TEMPLATE),
            Selector("spec.selector"),
        ],
    ),
    (
        "Deployment",
        &[
            Name,
            Of(ready_replicas),
            Int("status.updatedReplicas"),
            Int("status.availableReplicas"),
            Age,
            Containers(TEMPLATE),
            Images(TEMPLATE),
            Of(|o| text::selector(o.at("spec.selector")).unwrap_or_else(|| "<invalid>".to_owned()).into()),
        ],
    ),
    ("DeviceClass", &[Name, Age]),
    ("EndpointSlice", &[Name, Text("addressType"), Of(slice_ports), Of(slice_endpoints), Age]),
    ("Endpoints", &[Name, Of(endpoints), Age]),
    (
        "Event",
        &[
            Of(last_seen),
            Text("type"),
            Text("reason"),
            Of(event_target),
            Text("involvedObject.fieldPath"),
            Of(event_source),
            Of(|o| o.text("message").trim().into()),
            Of(|o| first_seen(o).into()),
            Of(event_count),
            Name,
        ],
    ),
    (
        "FlowSchema",
        &[
            Name,
            Text("spec.priorityLevelConfiguration.name"),
            Int("spec.matchingPrecedence"),
            Present("spec.distinguisherMethod.type", "<none>"),
            Age,
            Of(|o| o.condition("Dangling").map_or("?", |condition| text_at(condition, "status")).into()),
        ],
    ),
    (
        "HorizontalPodAutoscaler",
        &[
            Name,
            Of(|o| {
                format!("{}/{}", o.text("spec.scaleTargetRef.kind"), o.text("spec.scaleTargetRef.name"))
                    .into()
            }),
            Of(scaling::metrics),
            Of(|o| or_number("spec.minReplicas", "<unset>", o)),
            Int("spec.maxReplicas"),
            Int("status.currentReplicas"),
            Age,
        ],
    ),
    // The original has a cell more than it has columns.
    ("IPAddress", &[Name, Of(parent_ref), Age]),
    (
        "Ingress",
        &[
            Name,
            Present("spec.ingressClassName", "<none>"),
            Of(hosts),
            Of(|o| text::load_balancer(o.at("status")).into()),
            Of(|o| if o.items("spec.tls").is_empty() { "80" } else { "80, 443" }.into()),
            Age,
        ],
    ),
    ("IngressClass", &[Of(ingress_class_name), Text("spec.controller"), Of(class_parameters), Age]),
    (
        "Job",
        &[
            Name,
            Of(job_state),
            Of(completions),
            Of(job_duration),
            Age,
            Containers(TEMPLATE),
            Images(TEMPLATE),
            Selector("spec.selector"),
        ],
    ),
    ("Lease", &[Name, Text("spec.holderIdentity"), Age]),
    ("MutatingAdmissionPolicy", &[Name, Count("spec.mutations"), Of(param_kind), Age]),
    ("MutatingAdmissionPolicyBinding", &[Name, Text("spec.policyName"), Of(param_ref), Age]),
    ("MutatingWebhookConfiguration", &[Name, Count("webhooks"), Age]),
    ("Namespace", &[Name, Text("status.phase"), Age]),
    ("NetworkPolicy", &[Name, Selector("spec.podSelector"), Age]),
    (
        "Node",
        &[
            Name,
            Of(node_state),
            Of(node_roles),
            Age,
            Text("status.nodeInfo.kubeletVersion"),
            Of(|o| node_address(o, "InternalIP")),
            Of(|o| node_address(o, "ExternalIP")),
            Filled("status.nodeInfo.osImage", "<unknown>"),
            Of(kernel),
            Filled("status.nodeInfo.containerRuntimeVersion", "<unknown>"),
        ],
    ),
    (
        "PersistentVolume",
        &[
            Name,
            Of(|o| o.at("spec.capacity.storage").as_str().unwrap_or("0").into()),
            Of(|o| text::access_modes(o.at("spec.accessModes")).into()),
            Text("spec.persistentVolumeReclaimPolicy"),
            Of(volume_phase),
            Of(claim_ref),
            Of(storage_class),
            Present("spec.volumeAttributesClassName", "<unset>"),
            Text("status.reason"),
            Age,
            Present("spec.volumeMode", "<unset>"),
        ],
    ),
    (
        "PersistentVolumeClaim",
        &[
            Name,
            Of(volume_phase),
            Text("spec.volumeName"),
            Of(|o| bound(o, o.at("status.capacity.storage").as_str().unwrap_or("0").to_owned())),
            Of(|o| bound(o, text::access_modes(o.at("status.accessModes")))),
            Of(storage_class),
            Present("spec.volumeAttributesClassName", "<unset>"),
            Age,
            Present("spec.volumeMode", "<unset>"),
        ],
    ),
    // A pod's cells depend on each other and are made together.
    ("Pod", &[]),
    (
        "PodDisruptionBudget",
        &[
            Name,
            Of(|o| int_or_text(o.at("spec.minAvailable"))),
            Of(|o| int_or_text(o.at("spec.maxUnavailable"))),
            Int("status.disruptionsAllowed"),
            Age,
        ],
    ),
    (
        "PodTemplate",
        &[
            Name,
            Containers("template.spec.containers"),
            Images("template.spec.containers"),
            Labels("template.metadata.labels"),
        ],
    ),
    ("PriorityClass", &[Name, Int("value"), Bool("globalDefault", false), Age, Text("preemptionPolicy")]),
    (
        "PriorityLevelConfiguration",
        &[
            Name,
            Text("spec.type"),
            Of(|o| limit(o, "spec.limited", "nominalConcurrencyShares")),
            Of(|o| limit(o, "spec.limited.limitResponse.queuing", "queues")),
            Of(|o| limit(o, "spec.limited.limitResponse.queuing", "handSize")),
            Of(|o| limit(o, "spec.limited.limitResponse.queuing", "queueLengthLimit")),
            Age,
        ],
    ),
    (
        "ReplicaSet",
        &[
            Name,
            Int("spec.replicas"),
            Int("status.replicas"),
            Int("status.readyReplicas"),
            Age,
            Containers(TEMPLATE),
            Images(TEMPLATE),
            Selector("spec.selector"),
        ],
    ),
    (
        "ReplicationController",
        &[
            Name,
            Int("spec.replicas"),
            Int("status.replicas"),
            Int("status.readyReplicas"),
            Age,
            Containers(TEMPLATE),
            Images(TEMPLATE),
            Labels("spec.selector"),
        ],
    ),
    ("ResourceClaim", &[Name, Of(claim_state), Age]),
    ("ResourceClaimTemplate", &[Name, Age]),
    ("ResourceQuota", &[Name, Of(|o| quota(o, false)), Of(|o| quota(o, true)), Age]),
    ("ResourceSlice", &[Name, Text("spec.nodeName"), Text("spec.driver"), Text("spec.pool.name"), Age]),
    ("RoleBinding", ROLE_BINDING),
    ("RuntimeClass", &[Name, Text("handler"), Age]),
    ("Scale", &[Name, Int("spec.replicas"), Int("status.replicas"), Age]),
    ("Secret", &[Name, Text("type"), Count("data"), Age]),
    (
        "Service",
        &[
            Name,
            Text("spec.type"),
            Of(|o| items(o.at("spec.clusterIPs")).first().and_then(Value::as_str).unwrap_or("<none>").into()),
            Of(external_ip),
            Of(service_ports),
            Age,
            Labels("spec.selector"),
        ],
    ),
    ("ServiceAccount", &[Name, Age]),
    ("ServiceCIDR", &[Name, Joined("spec.cidrs"), Age]),
    ("StatefulSet", &[Name, Of(ready_replicas), Age, Containers(TEMPLATE), Images(TEMPLATE)]),
    (
        "StorageClass",
        &[
            Of(storage_class_name),
            Text("provisioner"),
            Present("reclaimPolicy", "Delete"),
            Present("volumeBindingMode", "Immediate"),
            Bool("allowVolumeExpansion", false),
            Age,
        ],
    ),
    ("ValidatingAdmissionPolicy", &[Name, Count("spec.validations"), Of(param_kind), Age]),
    ("ValidatingAdmissionPolicyBinding", &[Name, Text("spec.policyName"), Of(param_ref), Age]),
    ("ValidatingWebhookConfiguration", &[Name, Count("webhooks"), Age]),
    (
        "VolumeAttachment",
        &[
            Name,
            Text("spec.attacher"),
            Text("spec.source.persistentVolumeName"),
            Text("spec.nodeName"),
            Bool("status.attached", false),
            Age,
        ],
    ),
    ("VolumeAttributesClass", &[Name, Text("driverName"), Age]),
];

const ROLE_BINDING: &[Cell] = &[
    Name,
    Of(|o| format!("{}/{}", o.text("roleRef.kind"), o.text("roleRef.name")).into()),
    Age,
    Of(|o| subjects(o, "User")),
    Of(|o| subjects(o, "Group")),
    Of(|o| subjects(o, "ServiceAccount")),
];

fn api_service(o: &View<'_>) -> Value {
    if o.at("spec.service").is_null() {
        return "Local".into();
    }
    format!("{}/{}", o.text("spec.service.namespace"), o.text("spec.service.name")).into()
}

fn available(o: &View<'_>) -> Value {
    let Some(condition) = o.condition("Available") else { return "Unknown".into() };
    match (text_at(condition, "status"), text_at(condition, "reason")) {
        (status @ "True", _) | (status, "") => status.into(),
        (status, reason) => format!("{status} ({reason})").into(),
    }
}

fn token_requests(o: &View<'_>) -> Value {
    if o.at("spec.tokenRequests").is_null() {
        return "<unset>".into();
    }
    o.joined("spec.tokenRequests", "audience", ",").into()
}

fn lifecycle_modes(o: &View<'_>) -> Value {
    match Joined("spec.volumeLifecycleModes").value(o) {
        Value::String(modes) if modes.is_empty() => "<none>".into(),
        modes => modes,
    }
}

fn requested_duration(o: &View<'_>) -> Value {
    let seconds = o.at("spec.expirationSeconds").as_i64();
    seconds
        .map_or_else(|| "<none>".to_owned(), |seconds| age::human(i128::from(seconds) * 1_000_000_000))
        .into()
}

fn csr_state(o: &View<'_>) -> Value {
    let has = |ty: &str| o.condition(ty).is_some();
    let mut state = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !o.text("status.certificate").is_empty() {
        state.push_str(",Issued");
    }
    state.into()
}

fn healthy<'a>(o: &View<'a>) -> Option<&'a Value> {
    o.items("conditions").iter().find(|condition| condition["type"] == "Healthy")
}

fn component_health(o: &View<'_>) -> Value {
    let health = |condition: &Value| if condition["status"] == "True" { "Healthy" } else { "Unhealthy" };
    healthy(o).map_or("Unknown", health).into()
}

fn component_message(o: &View<'_>) -> Value {
    healthy(o).map_or("", |condition| text_at(condition, "message")).into()
}

fn component_error(o: &View<'_>) -> Value {
    healthy(o).map_or("", |condition| text_at(condition, "error")).into()
}

fn controller(o: &View<'_>) -> Value {
    let owners = o.items("metadata.ownerReferences");
    let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else { return "<none>".into() };
    let (version, kind, name) =
        (text_at(owner, "apiVersion"), text_at(owner, "kind"), text_at(owner, "name"));
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let kind = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    format!("{}/{name}", kind.to_lowercase()).into()
}

fn suspend(o: &View<'_>) -> Value {
    match o.at("spec.suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    }
    .into()
}

fn last_schedule(o: &View<'_>) -> Value {
    match o.text("status.lastScheduleTime") {
        "" => "<none>".into(),
        _ => o.age("status.lastScheduleTime").into(),
    }
}

fn ready_replicas(o: &View<'_>) -> Value {
    format!("{}/{}", o.int("status.readyReplicas"), o.int("spec.replicas")).into()
}

fn slice_ports(o: &View<'_>) -> Value {
    let port = |port: &Value| match (port["port"].as_i64(), port["name"].as_str()) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    };
    or_unset(text::cut(o.items("ports").iter().map(port).collect(), 3, ","))
}

fn slice_endpoints(o: &View<'_>) -> Value {
    let addresses = o.items("endpoints").iter().flat_map(|endpoint| items(&endpoint["addresses"]));
    let addresses = addresses.filter_map(Value::as_str).map(str::to_owned).collect();
    or_unset(text::cut(addresses, 3, ","))
}

fn or_unset(text: String) -> Value {
    if text.is_empty() { "<unset>".into() } else { text.into() }
}

fn endpoints(o: &View<'_>) -> Value {
    let subsets = o.items("subsets");
    if subsets.is_empty() {
        return "<none>".into();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = || items(&subset["addresses"]).iter().map(|address| text_at(address, "ip"));
        let ports = items(&subset["ports"]);
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            let port = port["port"].as_i64().unwrap_or_default();
            let joined = |ip: &str| {
                if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
            };
            all.extend(addresses().map(joined));
        }
    }
    text::cut(all, 3, ",").into()
}

fn first_seen(o: &View<'_>) -> String {
    match o.text("firstTimestamp") {
        "" => o.age("eventTime"),
        _ => o.age("firstTimestamp"),
    }
}

fn last_seen(o: &View<'_>) -> Value {
    if !o.at("series").is_null() {
        return o.age("series.lastObservedTime").into();
    }
    match o.text("lastTimestamp") {
        "" => first_seen(o).into(),
        _ => o.age("lastTimestamp").into(),
    }
}

fn event_count(o: &View<'_>) -> Value {
    match (o.at("series").is_null(), o.int("count")) {
        (false, _) => o.int("series.count").into(),
        (true, 0) => 1.into(),
        (true, count) => count.into(),
    }
}

fn event_target(o: &View<'_>) -> Value {
    let kind = o.text("involvedObject.kind").to_lowercase();
    match o.text("involvedObject.name") {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    }
}

fn event_source(o: &View<'_>) -> Value {
    let first = |one: &str, other: &str| if one.is_empty() { other.to_owned() } else { one.to_owned() };
    let component = first(o.text("source.component"), o.text("reportingComponent"));
    let instance = first(o.text("source.host"), o.text("reportingInstance"));
    if instance.is_empty() { component.into() } else { format!("{component}, {instance}").into() }
}

fn or_number(path: &str, other: &str, o: &View<'_>) -> Value {
    o.at(path).as_i64().map_or_else(|| other.to_owned(), |number| number.to_string()).into()
}

fn parent_ref(o: &View<'_>) -> Value {
    let parent = o.at("spec.parentRef");
    if parent.is_null() {
        return "<none>".into();
    }
    let (group, resource) = (text_at(parent, "group"), text_at(parent, "resource"));
    let mut shown = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    shown = shown.to_lowercase();
    if !text_at(parent, "namespace").is_empty() {
        shown = format!("{shown}/{}", text_at(parent, "namespace"));
    }
    format!("{shown}/{}", text_at(parent, "name")).into()
}

fn hosts(o: &View<'_>) -> Value {
    let rules = o.items("spec.rules");
    let mut shown = Vec::new();
    let mut more = false;
    for host in rules.iter().map(|rule| text_at(rule, "host")) {
        more |= shown.len() == 3;
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".into(),
        (false, true) => format!("{} + {} more...", shown.join(","), rules.len() - 3).into(),
        (false, false) => shown.join(",").into(),
    }
}

fn named_default(o: &View<'_>, annotations: &[&str]) -> Value {
    let name = o.text("metadata.name");
    let is_default = annotations.iter().any(|key| o.annotation(key) == Some("true"));
    if is_default { format!("{name} (default)").into() } else { name.into() }
}

fn ingress_class_name(o: &View<'_>) -> Value {
    named_default(o, &["ingressclass.kubernetes.io/is-default-class"])
}

fn storage_class_name(o: &View<'_>) -> Value {
    named_default(
        o,
        &["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"],
    )
}

fn class_parameters(o: &View<'_>) -> Value {
    let parameters = o.at("spec.parameters");
    if parameters.is_null() {
        return "<none>".into();
    }
    let group = parameters["apiGroup"].as_str().map_or_else(String::new, |group| format!(".{group}"));
    format!("{}{group}/{}", text_at(parameters, "kind"), text_at(parameters, "name")).into()
}

fn job_state(o: &View<'_>) -> Value {
    let conditions = ["Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"];
    match conditions.into_iter().find(|ty| o.is(ty)) {
        Some(done @ ("Complete" | "Failed")) => done,
        _ if o.is_deleting() => "Terminating",
        Some(state) => state,
        None => "Running",
    }
    .into()
}

fn completions(o: &View<'_>) -> Value {
    let succeeded = o.int("status.succeeded");
    match (o.at("spec.completions").as_i64(), o.int("spec.parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
    .into()
}

fn job_duration(o: &View<'_>) -> Value {
    let Some(start) = age::nanos(o.text("status.startTime")) else { return "".into() };
    let end = age::nanos(o.text("status.completionTime")).unwrap_or(o.now_nanos);
    age::human(end - start).into()
}

fn param_kind(o: &View<'_>) -> Value {
    let kind = o.at("spec.paramKind");
    if kind.is_null() {
        return "<unset>".into();
    }
    format!("{}/{}", text_at(kind, "apiVersion"), text_at(kind, "kind")).into()
}

fn param_ref(o: &View<'_>) -> Value {
    let reference = o.at("spec.paramRef");
    match (text_at(reference, "name"), text_at(reference, "namespace")) {
        ("", _) if !reference["selector"].is_null() => text::selector_struct(&reference["selector"]).into(),
        ("", _) => "<unset>".into(),
        // Whether the parameter lives in a namespace cannot be told from here.
        (name, "") => format!("*/{name}").into(),
        (name, namespace) => format!("{namespace}/{name}").into(),
    }
}

fn node_state(o: &View<'_>) -> Value {
    // The last condition of the type counts.
    let ready = o.items("status.conditions").iter().rfind(|condition| condition["type"] == "Ready");
    let state = match ready.map(|condition| condition["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    };
    if o.at("spec.unschedulable") == true {
        format!("{state},SchedulingDisabled").into()
    } else {
        state.into()
    }
}

fn node_roles(o: &View<'_>) -> Value {
    let labels = o.at("metadata.labels").as_object().into_iter().flatten();
    let role = |(key, value): (&String, &Value)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role.to_owned()),
        None if key == "kubernetes.io/role" => value.as_str().map(str::to_owned),
        None => None,
    };
    let mut roles: Vec<String> = labels.filter_map(role).filter(|role| !role.is_empty()).collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { "<none>".into() } else { roles.join(",").into() }
}

fn node_address(o: &View<'_>, ty: &str) -> Value {
    let found = o.items("status.addresses").iter().find(|address| address["type"] == ty);
    found.map_or("<none>", |address| text_at(address, "address")).into()
}

fn kernel(o: &View<'_>) -> Value {
    let version = match o.text("status.nodeInfo.kernelVersion") {
        "" => "<unknown>",
        version => version,
    };
    match o.text("status.nodeInfo.architecture") {
        "" => version.into(),
        architecture => format!("{version} ({architecture})").into(),
    }
}

fn volume_phase(o: &View<'_>) -> Value {
    if o.is_deleting() { "Terminating".into() } else { o.text("status.phase").into() }
}

fn claim_ref(o: &View<'_>) -> Value {
    if o.at("spec.claimRef").is_null() {
        return "".into();
    }
    format!("{}/{}", o.text("spec.claimRef.namespace"), o.text("spec.claimRef.name")).into()
}

fn storage_class(o: &View<'_>) -> Value {
    let annotation = o.annotation("volume.beta.kubernetes.io/storage-class");
    annotation.unwrap_or_else(|| o.text("spec.storageClassName")).into()
}

/// What a claim shows once it has a volume.
fn bound(o: &View<'_>, text: String) -> Value {
    if o.text("spec.volumeName").is_empty() { "".into() } else { text.into() }
}

fn int_or_text(value: &Value) -> Value {
    match value {
        Value::Null => "N/A".into(),
        Value::String(text) => text.as_str().into(),
        number => number.to_string().into(),
    }
}

fn limit(o: &View<'_>, owner: &str, field: &str) -> Value {
    let owner = o.at(owner);
    if owner.is_null() { "<none>".into() } else { at(owner, field).as_i64().unwrap_or_default().into() }
}

fn claim_state(o: &View<'_>) -> Value {
    let mut states = Vec::new();
    if o.is_deleting() {
        states.push("deleted");
    }
    if !o.at("status.allocation").is_null() {
        states.push("allocated");
        if !o.items("status.reservedFor").is_empty() {
            states.push("reserved");
        }
    } else if !o.is_deleting() {
        states.push("pending");
    }
    states.join(",").into()
}

/// Used and hard amounts of either requests or limits.
fn quota(o: &View<'_>, limits: bool) -> Value {
    let hard = o.at("status.hard").as_object().into_iter().flatten();
    let used = o.at("status.used");
    let shown: Vec<String> = hard
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = used.get(name).and_then(Value::as_str).unwrap_or("0");
            format!("{name}: {used}/{}", hard.as_str().unwrap_or("0"))
        })
        .collect();
    shown.join(", ").into()
}

fn subjects(o: &View<'_>, kind: &str) -> Value {
    let name = |subject: &Value| match kind {
        "ServiceAccount" => format!("{}/{}", text_at(subject, "namespace"), text_at(subject, "name")),
        _ => text_at(subject, "name").to_owned(),
    };
    let names: Vec<String> = o.items("subjects").iter().filter(|s| s["kind"] == kind).map(name).collect();
    names.join(", ").into()
}

fn external_ip(o: &View<'_>) -> Value {
    let external: Vec<&str> = o.items("spec.externalIPs").iter().filter_map(Value::as_str).collect();
    let balancer = text::load_balancer(o.at("status"));
    match (o.text("spec.type"), external.is_empty(), balancer.is_empty()) {
        ("ClusterIP" | "NodePort", true, _) => "<none>".into(),
        ("ClusterIP" | "NodePort", false, _) | ("LoadBalancer", false, true) => external.join(",").into(),
        ("LoadBalancer", true, true) => "<pending>".into(),
        ("LoadBalancer", true, false) => balancer.into(),
        ("LoadBalancer", false, false) => format!("{balancer},{}", external.join(",")).into(),
        ("ExternalName", ..) => o.text("spec.externalName").into(),
        _ => "<unknown>".into(),
    }
}

fn service_ports(o: &View<'_>) -> Value {
    let port = |port: &Value| {
        let (number, protocol) = (port["port"].as_i64().unwrap_or_default(), text_at(port, "protocol"));
        match port["nodePort"].as_i64().unwrap_or_default() {
            node @ 1.. => format!("{number}:{node}/{protocol}"),
            _ => format!("{number}/{protocol}"),
        }
    };
    let ports: Vec<String> = o.items("spec.ports").iter().map(port).collect();
    if ports.is_empty() { "<none>".into() } else { ports.join(",").into() }
}
