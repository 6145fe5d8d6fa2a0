//! Nodes, quotas, limits, events and bindings.

use super::meta::{self, Scope};
use super::pod::resources::{
    amount, container_resource_name, is_overcommit_allowed, is_quota_resource, resource_name,
};
use super::pod::scheduling::taints;
use super::view::{At, IMMUTABLE, Report, same};
use super::{Rules, golang};
use orlop_schema::field::{Fault, FieldError, Path, go_quote};
use orlop_schema::ip::Cidr;
use orlop_schema::names::{self, NameRule};
use orlop_schema::quantity::Quantity;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const RULES: &[Rules] = &[
    Rules::new("", "Node", Scope::Cluster, node, node_update, &[("status", node_status)]),
    Rules::new("", "ResourceQuota", Scope::Namespaced, quota, quota_update, &[("status", quota_status)]),
    Rules::new("", "LimitRange", Scope::Namespaced, limit_range, limit_range_update, &[]),
    Rules::new("", "Event", Scope::Namespaced, legacy_event, legacy_event_update, &[]),
    Rules::new("events.k8s.io", "Event", Scope::Namespaced, event, event_update, &[]),
    Rules::new("", "Binding", Scope::Namespaced, binding, meta::update, &[]),
];

fn binding(r: &mut Report, object: &At<'_>) {
    let (kind, name) = (object.down("target.kind"), object.down("target.name"));
    if !kind.is_empty() {
        r.when(kind.str() != "Node", || kind.unsupported(&["Node", "<empty>"]));
    }
    r.required(&name);
}

fn node(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Cluster, NameRule::Subdomain);
    taints(r, &object.down("spec.taints").named(Path::new("metadata").child("taints")));
    node_resources(r, object);
    let swap = object.down("status.nodeInfo.swap.capacity");
    if swap.is_set() {
        r.positive(&swap.named(Path::new("metadata").child("nodeSwapStatus").child("capacity")));
    }
    declared_features(r, &object.down("status.declaredFeatures"));
    let cidrs = object.down("spec.podCIDRs");
    for cidr in cidrs.items() {
        r.cidr(&cidr, &[]);
    }
    let all = cidrs.strings();
    let unreadable = all.iter().position(|cidr| Cidr::parse_lenient(cidr).is_none());
    if let Some(index) = unreadable.filter(|_| all.len() > 1) {
        let words = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> (invalid CIDR address: {})",
            all[index]
        );
        r.add(FieldError::with_value(Fault::Internal, &cidrs.path, None, words));
    }
    let six = all.iter().filter(|c| c.contains(':')).count();
    r.when(all.len() > 1 && (unreadable.is_some() || all.len() > 2 || six == 0 || six == all.len()), || {
        cidrs.invalid("may specify no more than one CIDR for each IP family")
    });
}

fn node_resources(r: &mut Report, object: &At<'_>) {
    for key in ["capacity", "allocatable"] {
        let list = object.get("status").get(key);
        for (name, quantity) in list.entries() {
            amount(r, name, &quantity.named(list.path.child(name)));
        }
    }
}

fn declared_features(r: &mut Report, list: &At<'_>) {
    let is_feature = |text: &str| {
        let mut parts = text.split('/');
        let alnum = |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric());
        parts.next().is_some_and(|p| p.starts_with(|c: char| c.is_ascii_uppercase()) && alnum(p))
            && parts.all(|p| p.starts_with(|c: char| c.is_ascii_alphabetic()) && alnum(p))
    };
    let items = list.items();
    for (index, feature) in items.iter().enumerate() {
        let (text, quoted) = (feature.str(), go_quote(feature.str()));
        if text.len() > 253 {
            r.add(
                feature
                    .invalid(format!("invalid feature name {quoted}: must be no more than 253 characters")),
            );
        } else if !is_feature(text) {
            r.add(feature.invalid(format!("invalid feature name {quoted}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes")));
        }
        if let Some(next) = items.get(index + 1) {
            if next.str() == text {
                r.add(next.duplicate());
            } else if next.str() < text {
                r.add(next.invalid("list must be sorted alphabetically"));
            }
        }
    }
}

fn node_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    node(r, new);
    node_status(r, new, old);
}

fn node_status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    const CIDR: &str = "node updates may not change podCIDR except from \"\" to valid";
    meta::update(r, new, old);
    node_resources(r, new);
    declared_features(r, &new.down("status.declaredFeatures"));
    let mut seen = BTreeSet::new();
    for address in new.down("status.addresses").items() {
        if !seen.insert((address.get("type").str(), address.get("address").str())) {
            let mut error = address.duplicate();
            error.value = Some(golang::print("core.NodeAddress", address.value));
            r.add(error);
        }
    }
    let (cidrs, before) = (new.down("spec.podCIDRs"), old.down("spec.podCIDRs"));
    if !before.is_empty() {
        if before.len() == cidrs.len() {
            for _ in before.strings().iter().zip(cidrs.strings()).filter(|(a, b)| **a != *b) {
                r.add(cidrs.forbidden(CIDR));
            }
        } else {
            r.add(cidrs.forbidden(CIDR));
        }
    }
    let (id, was) = (new.down("spec.providerID"), old.down("spec.providerID"));
    r.when(!was.is_empty() && was.str() != id.str(), || {
        id.forbidden("node updates may not change providerID except from \"\" to valid")
    });
    let source = new.down("spec.configSource");
    if source.is_set() {
        config_source(r, &source, false);
    }
    for key in ["assigned", "active", "lastKnownGood"] {
        let source = new.down("status.config").get(key);
        if source.is_set() {
            config_source(r, &source, true);
        }
    }
    taints(r, &new.down("spec.taints").named(Path::new("metadata").child("taints")));
    let external = new.down("spec.externalID");
    r.when(external.str() != old.down("spec.externalID").str(), || external.forbidden("may not be updated"));
}

/// Where a kubelet takes its configuration from; only the status says which version.
fn config_source(r: &mut Report, at: &At<'_>, in_status: bool) {
    let map = at.get("configMap");
    if !map.is_set() {
        return r
            .add(at.invalid_as("core.NodeConfigSource", "exactly one reference subfield must be non-nil"));
    }
    for key in ["uid", "resourceVersion"] {
        let field = map.get(key);
        if in_status {
            r.required(&field);
        } else {
            r.when(!field.is_empty(), || field.forbidden(format!("{key} must not be set in spec")));
        }
    }
    r.required_label(&map.get("namespace"));
    r.required_subdomain(&map.get("name"));
    let key = map.get("kubeletConfigKey");
    if !r.required(&key) {
        r.each(&key, names::config_map_key(key.str()));
    }
}

fn quota(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    quota_spec(r, &object.get("spec"));
    quota_list(r, &object.down("status.hard"));
    quota_list(r, &object.down("status.used"));
}

fn quota_list(r: &mut Report, list: &At<'_>) {
    for (name, quantity) in list.entries() {
        resource_name(r, name, &quantity);
        r.when(!name.contains('/') && !is_quota_resource(name), || {
            quantity.invalid_with(go_quote(name), "must be a standard resource for quota")
        });
        amount(r, name, &quantity);
    }
}

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];

fn scope_fits(scope: &str, resource: &str) -> bool {
    let computes = ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"]
        .contains(&resource);
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => ["persistentvolumeclaims", "requests.storage"].contains(&resource),
        _ if SCOPES.contains(&scope) => resource == "pods" || computes,
        _ => true,
    }
}

fn conflicting(scopes: &BTreeSet<&str>) -> usize {
    let has = |a, b| usize::from(scopes.contains(a) && scopes.contains(b));
    has("BestEffort", "NotBestEffort") + has("Terminating", "NotTerminating")
}

fn quota_spec(r: &mut Report, spec: &At<'_>) {
    let hard = spec.get("hard");
    quota_list(r, &hard);
    let limited: Vec<&str> =
        hard.entries().iter().map(|(name, _)| *name).filter(|n| is_quota_resource(n)).collect();
    let scopes = spec.get("scopes");
    let mut seen = BTreeSet::new();
    for scope in scopes.strings() {
        r.when(!SCOPES.contains(&scope), || scopes.invalid("unsupported scope"));
        for _ in limited.iter().filter(|name| !scope_fits(scope, name)) {
            r.add(scopes.invalid("unsupported scope applied to resource"));
        }
        seen.insert(scope);
    }
    for _ in 0..conflicting(&seen) {
        r.add(scopes.invalid("conflicting scopes"));
    }
    let selector = spec.get("scopeSelector");
    if selector.is_set() {
        scope_selector(r, &selector, &limited, &scopes);
    }
}

fn scope_selector(r: &mut Report, selector: &At<'_>, limited: &[&str], scopes: &At<'_>) {
    let list = selector.get("matchExpressions");
    let mut seen = BTreeSet::new();
    for rule in list.items() {
        // The paths leave out the index.
        let rule = rule.named(list.path.clone());
        let (scope, operator, values) = (rule.get("scopeName"), rule.get("operator"), rule.get("values"));
        r.when(!SCOPES.contains(&scope.str()), || scope.invalid_str("unsupported scope"));
        for _ in limited.iter().filter(|name| !scope_fits(scope.str(), name)) {
            let whole = selector.named(list.path.clone());
            r.add(whole.invalid_as("core.ScopeSelector", "unsupported scope applied to resource"));
        }
        let fixed = SCOPES.contains(&scope.str())
            && !["PriorityClass", "VolumeAttributesClass"].contains(&scope.str());
        r.when(fixed && operator.str() != "Exists", || {
            operator.invalid_str("must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity")
        });
        match operator.str() {
            "In" | "NotIn" => r.when(values.is_empty(), || {
                values.required(
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
                )
            }),
            "Exists" | "DoesNotExist" => r.when(!values.is_empty(), || {
                values.invalid(
                    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
                )
            }),
            _ => r.add(operator.invalid_str("not a valid selector operator")),
        }
        seen.insert(scope.str());
    }
    for _ in 0..conflicting(&seen) {
        r.add(scopes.named(list.path.clone()).invalid("conflicting scopes"));
    }
}

fn quota_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    quota_spec(r, &new.get("spec"));
    let (now, before) = (new.down("spec.scopes"), old.down("spec.scopes"));
    let set = |at: &At<'_>| at.strings().into_iter().map(str::to_owned).collect::<BTreeSet<String>>();
    r.when(set(&now) != set(&before), || now.invalid(IMMUTABLE));
}

fn quota_status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    r.required(&new.down("metadata.resourceVersion").named(Path::new("resourceVersion")));
    quota_list(r, &new.down("status.hard"));
    quota_list(r, &new.down("status.used"));
}

fn limit_range(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    let mut seen = BTreeSet::new();
    for limit in object.down("spec.limits").items() {
        let kind = limit.get("type");
        let wrong = names::qualified_name(kind.str());
        if wrong.is_empty() {
            let standard = ["Pod", "Container", "PersistentVolumeClaim"].contains(&kind.str());
            r.when(!kind.str().contains('/') && !standard, || {
                kind.invalid("must be a standard limit type or fully qualified")
            });
        }
        r.each(&kind, wrong);
        r.when(!seen.insert(kind.str()), || kind.duplicate_str());
        limits(r, &limit, kind.str());
    }
}

fn limit_range_update(r: &mut Report, new: &At<'_>, _old: &At<'_>) {
    limit_range(r, new);
}

fn limits(r: &mut Report, limit: &At<'_>, kind: &str) {
    let mut lists: BTreeMap<&str, BTreeMap<&str, Quantity>> = BTreeMap::new();
    let mut read = |r: &mut Report, key: &'static str| {
        for (name, at) in limit.get(key).entries() {
            if ["Pod", "Container"].contains(&kind) {
                container_resource_name(r, name, &at);
            } else {
                resource_name(r, name, &at);
            }
            if let Some(q) = at.quantity() {
                lists.entry(key).or_default().insert(name, q);
            }
        }
    };
    read(r, "max");
    read(r, "min");
    for key in ["default", "defaultRequest"] {
        let at = limit.get(key);
        if kind == "Pod" {
            r.when(!at.is_empty(), || at.forbidden("may not be specified when `type` is 'Pod'"));
        } else {
            read(r, key);
        }
    }
    if kind == "PersistentVolumeClaim" {
        let given = limit.get("min").key("storage").is_set() || limit.get("max").key("storage").is_set();
        r.when(!given, || {
            limit
                .get("limits")
                .required("either minimum or maximum storage value is required, but neither was provided")
        });
    }
    read(r, "maxLimitRequestRatio");
    let names: BTreeSet<&str> = lists.values().flat_map(|list| list.keys().copied()).collect();
    for name in names {
        let find = |key: &str| lists.get(key).and_then(|list| list.get(name)).cloned();
        compare_limits(r, limit, name, &find);
    }
}

fn compare_limits(r: &mut Report, limit: &At<'_>, name: &str, find: &dyn Fn(&str) -> Option<Quantity>) {
    let (min, max) = (find("min"), find("max"));
    let (default, request) = (find("default"), find("defaultRequest"));
    let ratio = find("maxLimitRequestRatio");
    let mut refuse = |key: &str, value: &Quantity, detail: String| {
        let at = limit.get(key).key(name);
        r.add(at.invalid_with(go_quote(&value.to_string()), detail));
    };
    if let (Some(min), Some(max)) = (&min, &max)
        && min > max
    {
        refuse("min", min, format!("min value {min} is greater than max value {max}"));
    }
    if let (Some(request), Some(min)) = (&request, &min)
        && min > request
    {
        let detail = format!("min value {min} is greater than default request value {request}");
        refuse("defaultRequest", request, detail);
    }
    if let (Some(request), Some(max)) = (&request, &max)
        && request > max
    {
        let detail = format!("default request value {request} is greater than max value {max}");
        refuse("defaultRequest", request, detail);
    }
    if let (Some(request), Some(default)) = (&request, &default)
        && request > default
    {
        let detail = format!("default request value {request} is greater than default limit value {default}");
        refuse("defaultRequest", request, detail);
    }
    if let (Some(default), Some(min)) = (&default, &min)
        && min > default
    {
        refuse("default", min, format!("min value {min} is greater than default value {default}"));
    }
    if let (Some(default), Some(max)) = (&default, &max)
        && default > max
    {
        refuse("default", max, format!("default value {default} is greater than max value {max}"));
    }
    if let Some(ratio) = &ratio {
        if ratio.milli_value() < 1000 {
            refuse("maxLimitRequestRatio", ratio, format!("ratio {ratio} is less than 1"));
        }
        if let (Some(min), Some(max)) = (&min, &max) {
            let limit = max.approximate() / min.approximate();
            if ratio.approximate() > limit {
                let detail = format!("ratio {ratio} is greater than max/min = {limit:.6}");
                refuse("maxLimitRequestRatio", ratio, detail);
            }
        }
    }
    if let (Some(default), Some(request)) = (&default, &request)
        && !is_overcommit_allowed(name)
        && default != request
    {
        let detail =
            format!("default value {default} must equal to defaultRequest value {request} in {name}");
        refuse("defaultRequest", request, detail);
    }
}

fn legacy_event(r: &mut Report, object: &At<'_>) {
    event_body(r, object, &LEGACY);
}

fn legacy_event_update(r: &mut Report, new: &At<'_>, _old: &At<'_>) {
    event_body(r, new, &LEGACY);
}

/// What the fields of an event are called in a version of the API.
struct Names {
    object: &'static str,
    controller: &'static str,
    controller_shown: &'static str,
    message: &'static str,
}

const LEGACY: Names = Names {
    object: "involvedObject",
    controller: "reportingComponent",
    controller_shown: "reportingComponent",
    message: "message",
};
const CURRENT: Names = Names {
    object: "regarding",
    controller: "reportingController",
    controller_shown: "reportingController",
    message: "note",
};

fn event_body(r: &mut Report, object: &At<'_>, names: &Names) {
    let at = |key: &str, shown: &str| object.get(key).named(Path::new(shown));
    let namespace = object.down("metadata.namespace").str();
    let involved =
        object.get(names.object).get("namespace").named(Path::new("involvedObject").child("namespace"));
    let strange = |r: &mut Report| r.add(involved.invalid_str("does not match event.namespace"));
    if object.get("eventTime").is_set() {
        if involved.is_empty() && !["default", "kube-system"].contains(&namespace) {
            strange(r);
        }
        let controller = at(names.controller, names.controller_shown);
        r.required(&controller);
        r.qualified(&controller);
        for (key, max, needed) in [
            ("reportingInstance", 128, true),
            ("action", 128, true),
            ("reason", 128, true),
            (names.message, 1024, false),
        ] {
            let shown = if key == names.message { "message" } else { key };
            let field = at(key, shown);
            if needed {
                r.required(&field);
            }
            r.when(field.len() > max, || {
                field.invalid_with("\"\"", format!("can have at most {max} characters"))
            });
        }
    } else {
        let fits = if involved.is_empty() {
            ["", "default"].contains(&namespace)
        } else {
            involved.str() == namespace
        };
        if !fits {
            strange(r);
        }
    }
    let namespace = object.down("metadata.namespace").named(Path::new("namespace"));
    r.subdomain(&namespace);
}

fn event(r: &mut Report, object: &At<'_>) {
    event_body(r, object, &CURRENT);
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    event_series(r, object);
    let time = object.get("eventTime");
    r.when(!time.is_set(), || time.required(""));
    let kind = object.get("type");
    r.when(!["Normal", "Warning"].contains(&kind.str()), || {
        kind.invalid_with("\"\"", format!("has invalid value: {}", kind.str()))
    });
    for (key, shown) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
    ] {
        let at = object.get(key);
        let given = if key == "deprecatedCount" { at.int() != 0 } else { at.is_set() };
        r.when(given, || at.named(Path::new(shown)).invalid_with("\"\"", "needs to be unset"));
    }
    let source = object.get("deprecatedSource");
    r.when(!source.get("component").is_empty() || !source.get("host").is_empty(), || {
        source.named(Path::new("source")).invalid_with("\"\"", "needs to be unset")
    });
}

fn event_series(r: &mut Report, object: &At<'_>) {
    let series = object.get("series");
    if !series.is_set() {
        return;
    }
    r.when(series.get("count").int() < 2, || {
        FieldError::with_value(
            Fault::Invalid,
            &Path::new("series.count"),
            Some("\"\"".to_owned()),
            "should be at least 2",
        )
    });
    r.when(!series.get("lastObservedTime").is_set(), || {
        FieldError::required(&Path::new("series.lastObservedTime"), "")
    });
}

fn event_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    event_body(r, new, &CURRENT);
    meta::update(r, new, old);
    if !same(new.get("series").value, old.get("series").value) {
        event_series(r, new);
    }
    let pair = |key: &str, shown: &str| (new.get(key).named(Path::new(shown)), old.get(key));
    let frozen_str = |r: &mut Report, key: &str, shown: &str| {
        let (now, then) = pair(key, shown);
        r.immutable_str(&now, &then);
    };
    let (now, then) = pair("regarding", "involvedObject");
    r.immutable_as("core.ObjectReference", &now, &then);
    frozen_str(r, "reason", "reason");
    frozen_str(r, "note", "message");
    let (now, then) = pair("deprecatedSource", "source");
    r.immutable_as("core.EventSource", &now, &then);
    for (key, shown) in
        [("deprecatedFirstTimestamp", "firstTimestamp"), ("deprecatedLastTimestamp", "lastTimestamp")]
    {
        let (now, then) = pair(key, shown);
        r.when(now.value != then.value, || now.invalid_with(now.value.to_string(), IMMUTABLE));
    }
    let (now, then) = pair("deprecatedCount", "count");
    r.when(now.int() != then.int(), || now.invalid_int(IMMUTABLE));
    frozen_str(r, "reason", "reason");
    frozen_str(r, "type", "type");
    let (now, then) = pair("eventTime", "eventTime");
    r.when(now.value != then.value, || now.invalid_with(now.value.to_string(), IMMUTABLE));
    frozen_str(r, "action", "action");
    let (now, then) = pair("related", "related");
    r.immutable_as("*core.ObjectReference", &now, &then);
    frozen_str(r, "reportingController", "reportingController");
    frozen_str(r, "reportingInstance", "reportingInstance");
}
