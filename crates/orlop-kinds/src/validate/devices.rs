//! Dynamic resource allocation: claims, templates, device classes, resource slices.

use super::expressions::device_selector;
use super::meta::{self, Scope};
use super::pod::scheduling::node_selector;
use super::pod::volume::csi_driver_name;
use super::view::{At, IMMUTABLE, Report, same};
use super::{Rules, conditions};
use orlop_schema::field::{FieldError, go_quote};
use orlop_schema::names::{self, NameRule};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const GROUP: &str = "resource.k8s.io";

pub(super) const RULES: &[Rules] = &[
    Rules::new(GROUP, "ResourceClaim", Scope::Namespaced, claim, claim_update, &[("status", claim_status)]),
    Rules::new(GROUP, "ResourceClaimTemplate", Scope::Namespaced, template, template_update, &[]),
    Rules::new(GROUP, "DeviceClass", Scope::Cluster, class, class_update, &[]),
    Rules::new(GROUP, "ResourceSlice", Scope::Cluster, slice, slice_update, &[]),
];

/// The requests of a claim and, for those with alternatives, the names of these.
type Requests<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

fn requests<'a>(devices: &At<'a>) -> Requests<'a> {
    let name = |at: &At<'a>| at.get("name").str();
    devices
        .get("requests")
        .items()
        .iter()
        .map(|request| (name(request), request.get("firstAvailable").items().iter().map(name).collect()))
        .collect()
}

/// A list of limited length whose items are unique by a key.
fn set(
    r: &mut Report,
    list: &At<'_>,
    max: usize,
    mut check: impl FnMut(&mut Report, &At<'_>),
    key: impl Fn(&At<'_>) -> String,
) {
    if !limited(r, list, max, &mut check) {
        return;
    }
    let mut seen = BTreeSet::new();
    for item in list.items() {
        let key = key(&item);
        if !seen.insert(key.clone()) {
            r.add(FieldError::duplicate(&item.path, &Value::String(key)));
        }
    }
}

/// A list of limited length; says whether it is short enough.
fn limited(r: &mut Report, list: &At<'_>, max: usize, mut check: impl FnMut(&mut Report, &At<'_>)) -> bool {
    if list.len() > max {
        r.add(list.too_many(max));
        return false;
    }
    for item in list.items() {
        check(r, &item);
    }
    true
}

fn name_of(item: &At<'_>) -> String {
    item.get("name").str().to_owned()
}

fn text_of(item: &At<'_>) -> String {
    item.str().to_owned()
}

fn claim(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    claim_spec(r, &object.get("spec"));
}

fn claim_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::create(r, new, Scope::Namespaced, NameRule::Subdomain);
    meta::update(r, new, old);
    r.immutable_as("resource.ResourceClaimSpec", &new.get("spec"), &old.get("spec"));
}

fn claim_spec(r: &mut Report, spec: &At<'_>) {
    let devices = spec.get("devices");
    let known = requests(&devices);
    set(r, &devices.get("requests"), 32, device_request, name_of);
    limited(r, &devices.get("constraints"), 32, |r, constraint| {
        request_names(r, &constraint.get("requests"), &known);
        let (equal, distinct) = (constraint.get("matchAttribute"), constraint.get("distinctAttribute"));
        if equal.is_set() {
            full_name(r, &equal);
        } else if distinct.is_set() {
            full_name(r, &distinct);
        } else {
            r.add(constraint.required("exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set"));
        }
    });
    limited(r, &devices.get("config"), 32, |r, config| {
        request_names(r, &config.get("requests"), &known);
        configuration(r, config);
    });
}

fn device_request(r: &mut Report, request: &At<'_>) {
    r.label(&request.get("name"));
    let (first, exactly) = (request.get("firstAvailable"), request.get("exactly"));
    match (!first.is_empty(), exactly.is_set()) {
        (false, false) => {
            r.add(request.required("exactly one of `exactly` or `firstAvailable` is required"));
        }
        (true, true) => r.add(request.invalid_with(
            "null",
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        )),
        (true, false) => set(
            r,
            &first,
            8,
            |r, sub| {
                r.label(&sub.get("name"));
                exact_request(r, sub);
            },
            name_of,
        ),
        (false, true) => exact_request(r, &exactly),
    }
}

fn exact_request(r: &mut Report, at: &At<'_>) {
    r.required_subdomain(&at.get("deviceClassName"));
    selectors(r, &at.get("selectors"));
    let (mode, count) = (at.get("allocationMode"), at.get("count"));
    match mode.str() {
        "All" => {
            r.when(count.int() != 0, || count.invalid("must not be specified when allocationMode is 'All'"));
        }
        "ExactCount" => r.positive(&count),
        _ => r.add(mode.unsupported(&["All", "ExactCount"])),
    }
    for toleration in at.get("tolerations").items() {
        device_toleration(r, &toleration);
    }
}

/// The longest expression that selects devices.
const SELECTOR_BYTES_MAX: usize = 10 * 1024;

fn selectors(r: &mut Report, list: &At<'_>) {
    limited(r, list, 32, |r, selector| {
        let (cel, expression) = (selector.get("cel"), selector.down("cel.expression"));
        if !cel.is_set() {
            r.add(cel.required(""));
        } else if expression.len() > SELECTOR_BYTES_MAX {
            r.add(expression.too_long(SELECTOR_BYTES_MAX));
        } else {
            device_selector(r, &expression);
        }
    });
}

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

fn device_toleration(r: &mut Report, at: &At<'_>) {
    let (key, operator, value, effect) =
        (at.get("key"), at.get("operator"), at.get("value"), at.get("effect"));
    if !key.is_empty() {
        r.qualified(&key);
    }
    match operator.str() {
        "Exists" => r.when(!value.is_empty(), || value.invalid("must be empty for operator `Exists`")),
        "Equal" => r.each(&value, names::label_value(value.str())),
        _ => r.required_one_of(&operator, &["Equal", "Exists"]),
    }
    if !effect.is_empty() {
        r.one_of(&effect, &EFFECTS);
    }
}

fn request_names(r: &mut Report, list: &At<'_>, known: &Requests<'_>) {
    set(r, list, 32, |r, name| request_name(r, name, known), text_of);
}

fn request_name(r: &mut Report, at: &At<'_>, known: &Requests<'_>) {
    const WORDS: &str = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
    let parts: Vec<&str> = at.str().split('/').collect();
    if parts.len() > 2 {
        return r.add(at.invalid(WORDS));
    }
    for part in &parts {
        for wrong in names::dns1123_label(part) {
            r.add(at.invalid_with(go_quote(part), wrong));
        }
    }
    let found = known.get(parts[0]).is_some_and(|subs| parts.get(1).is_none_or(|sub| subs.contains(sub)));
    r.when(!found, || at.invalid_str(WORDS));
}

fn configuration(r: &mut Report, config: &At<'_>) {
    let opaque = config.get("opaque");
    if !opaque.is_set() {
        return r.add(opaque.required(""));
    }
    csi_driver_name(r, &opaque.get("driver"));
    raw_object(r, &opaque.get("parameters"));
}

fn raw_object(r: &mut Report, at: &At<'_>) {
    const BYTES_MAX: usize = 10 * 1024;
    if !at.is_set() {
        r.add(at.required(""));
    } else if at.value.to_string().len() > BYTES_MAX {
        r.add(at.too_long(BYTES_MAX));
    } else if !at.value.is_object() {
        r.add(at.invalid_with("\"<value omitted>\"", "must be a valid JSON object"));
    }
}

/// A name with an optional domain, as attributes and capacities have.
fn attribute_name(r: &mut Report, name: &str, at: &At<'_>) {
    let identifier = |r: &mut Report, id: &str| {
        r.when(id.len() > 32, || at.too_long(32));
        for wrong in names::c_identifier(id) {
            r.add(at.invalid_with(go_quote(id), wrong));
        }
    };
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [id] => identifier(r, id),
        [domain, id] => {
            if domain.is_empty() {
                r.add(at.invalid_with("\"\"", "the domain must not be empty"));
            } else {
                let domain = Value::String((*domain).to_owned());
                csi_driver_name(r, &At { value: &domain, path: at.path.clone() });
            }
            if id.is_empty() {
                r.add(at.invalid_with("\"\"", "the name must not be empty"));
            } else {
                identifier(r, id);
            }
        }
        _ => {}
    }
}

fn full_name(r: &mut Report, at: &At<'_>) {
    attribute_name(r, at.str(), at);
    r.when(!at.str().contains('/'), || {
        at.invalid_str("a fully qualified name must be a domain and a name separated by a slash")
    });
}

fn claim_status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let (status, before) = (new.get("status"), old.get("status"));
    let known = requests(&new.down("spec.devices"));
    let reserved = status.get("reservedFor");
    let uid = |item: &At<'_>| item.get("uid").str().to_owned();
    set(r, &reserved, 256, |r, user| r.all_required(user, &["resource", "name", "uid"]), uid);
    let allocation = status.get("allocation");
    for device in status.get("devices").items() {
        csi_driver_name(r, &device.get("driver"));
        pool_name(r, &device.get("pool"));
        r.label(&device.get("device"));
        conditions(r, &device.get("conditions"));
    }
    if !reserved.is_empty() {
        if !allocation.is_set() {
            r.add(reserved.forbidden("may not be specified when `allocated` is not set"));
        } else if new.down("metadata.deletionTimestamp").is_set() {
            let was = before.get("reservedFor").items();
            let added = reserved.items().iter().any(|n| !was.iter().any(|o| same(n.value, o.value)));
            r.when(added, || reserved.forbidden("new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"));
        }
    }
    let was = before.get("allocation");
    if was.is_set() && allocation.is_set() {
        r.immutable_as("resource.AllocationResult", &allocation, &was);
    } else if allocation.is_set() {
        limited(r, &allocation.down("devices.results"), 32, |r, result| {
            request_name(r, &result.get("request"), &known);
            csi_driver_name(r, &result.get("driver"));
            pool_name(r, &result.get("pool"));
            r.label(&result.get("device"));
            binding_conditions(r, result);
        });
        limited(r, &allocation.down("devices.config"), 64, |r, config| {
            r.required_one_of(&config.get("source"), &["FromClaim", "FromClass"]);
            request_names(r, &config.get("requests"), &known);
            configuration(r, config);
        });
        let selector = allocation.get("nodeSelector");
        if selector.is_set() {
            node_selector(r, &selector, false);
        }
    }
}

fn pool_name(r: &mut Report, at: &At<'_>) {
    if r.required(at) {
        return;
    }
    r.when(at.len() > 253, || at.too_long(253));
    for part in at.str().split('/') {
        for wrong in names::dns1123_subdomain(part) {
            r.add(at.invalid_with(go_quote(part), wrong));
        }
    }
}

fn template(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    meta::template(r, &object.down("spec.metadata"));
    claim_spec(r, &object.down("spec.spec"));
}

fn template_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    template(r, new);
    meta::update(r, new, old);
    r.immutable_as("resource.ResourceClaimTemplateSpec", &new.get("spec"), &old.get("spec"));
}

fn class(r: &mut Report, object: &At<'_>) {
    meta::create_named(r, object, Scope::Cluster, NameRule::Subdomain);
    class_spec(r, &object.get("spec"));
}

fn class_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::create_named(r, new, Scope::Cluster, NameRule::Subdomain);
    meta::update(r, new, old);
    class_spec(r, &new.get("spec"));
}

fn class_spec(r: &mut Report, spec: &At<'_>) {
    selectors(r, &spec.get("selectors"));
    limited(r, &spec.get("config"), 32, configuration);
    let name = spec.get("extendedResourceName");
    let native = !name.str().contains('/') || name.str().contains("kubernetes.io/");
    let extended = !native
        && !name.str().starts_with("requests.")
        && names::qualified_name(&format!("requests.{}", name.str())).is_empty();
    r.when(name.is_set() && !extended, || name.invalid("must be a valid extended resource name"));
}

fn slice(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Cluster, NameRule::Subdomain);
    slice_spec(r, &object.get("spec"), None);
}

fn slice_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    slice_spec(r, &new.get("spec"), Some(&old.get("spec")));
}

/// Exactly one way to say which nodes; returns the ways that were used.
fn node_choice(r: &mut Report, at: &At<'_>, empty_name: &str, one_term: bool) -> Vec<&'static str> {
    let mut used = Vec::new();
    let (name, selector, all) = (at.get("nodeName"), at.get("nodeSelector"), at.get("allNodes"));
    if name.is_set() {
        if name.is_empty() {
            r.add(name.invalid(empty_name));
        } else {
            used.push("`nodeName`");
            r.subdomain(&name);
        }
    }
    if selector.is_set() {
        used.push("`nodeSelector`");
        node_selector(r, &selector, false);
        let terms = selector.get("nodeSelectorTerms");
        r.when(one_term && terms.len() != 1, || {
            terms.invalid_as("[core.NodeSelectorTerm", "must have exactly one node selector term")
        });
    }
    if all.is_true() {
        used.push("`allNodes`");
    } else {
        r.when(all.is_set(), || all.invalid("must be either unset or set to true"));
    }
    used
}

fn slice_spec(r: &mut Report, spec: &At<'_>, before: Option<&At<'_>>) {
    const ONE: &str =
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    csi_driver_name(r, &spec.get("driver"));
    let pool = spec.get("pool");
    pool_name(r, &pool.get("name"));
    r.positive(&pool.get("resourceSliceCount"));
    let generation = pool.get("generation");
    r.when(generation.int() < 0, || generation.invalid("must be greater than or equal to zero"));
    if let Some(before) = before {
        r.immutable_str(&pool.get("name"), &before.down("pool.name"));
        r.immutable_str(&spec.get("driver"), &before.get("driver"));
        let name = spec.get("nodeName");
        r.when(name.value != before.get("nodeName").value, || name.invalid(IMMUTABLE));
    }
    let mut used = node_choice(r, spec, "must be either unset or set to a non-empty string", true);
    let each = spec.get("perDeviceNodeSelection");
    if each.is_true() {
        used.push("`perDeviceNodeSelection`");
    } else {
        r.when(each.is_set(), || each.invalid("must be either unset or set to true"));
    }
    match used.len() {
        0 => r.add(spec.required(ONE)),
        1 => {}
        _ => {
            let shown = go_quote(&format!("{{{}}}", used.join(", ")));
            r.add(spec.invalid_with(shown, format!("{ONE}, but multiple fields are set")));
        }
    }
    let (devices, counters) = (spec.get("devices"), spec.get("sharedCounters"));
    r.when(devices.is_set() && counters.is_set(), || {
        spec.invalid_with("\"\"", "only one of `sharedCounters` or `devices` is allowed")
    });
    let advanced =
        devices.items().iter().any(|d| !d.get("taints").is_empty() || !d.get("consumesCounters").is_empty());
    let each = each.is_true();
    set(r, &devices, if advanced { 64 } else { 128 }, |r, device| slice_device(r, device, each), name_of);
    set(r, &counters, 8, |r, set| counter_set(r, set, "name"), name_of);
}

fn counter_set(r: &mut Report, at: &At<'_>, name: &str) {
    r.required_label(&at.get(name));
    let counters = at.get("counters");
    if r.required(&counters) {
        return;
    }
    if counters.len() > 32 {
        return r.add(counters.too_many(32));
    }
    for (key, _) in counters.entries() {
        for wrong in names::dns1123_label(key) {
            r.add(counters.invalid_with(go_quote(key), wrong));
        }
    }
}

fn slice_device(r: &mut Report, device: &At<'_>, node_by_device: bool) {
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    r.label(&device.get("name"));
    let (attributes, capacity) = (device.get("attributes"), device.get("capacity"));
    let total = attributes.len() + capacity.len();
    r.when(total > 32, || {
        device.invalid_with(
            total.to_string(),
            "the total number of attributes and capacities must not exceed 32",
        )
    });
    for (name, attribute) in attributes.entries() {
        attribute_name(r, name, &attributes);
        device_attribute(r, &attribute);
    }
    for (name, value) in capacity.entries() {
        attribute_name(r, name, &capacity);
        let policy = value.get("requestPolicy");
        r.when(policy.is_set() && !device.get("allowMultipleAllocations").is_true(), || {
            policy.forbidden("allowMultipleAllocations must be true")
        });
    }
    limited(r, &device.get("taints"), 16, |r, taint| {
        r.qualified(&taint.get("key"));
        r.each(&taint.get("value"), names::label_value(taint.get("value").str()));
        r.required_one_of(&taint.get("effect"), &EFFECTS);
    });
    let counters = device.get("consumesCounters");
    set(
        r,
        &counters,
        2,
        |r, set| counter_set(r, set, "counterSet"),
        |c| c.get("counterSet").str().to_owned(),
    );
    if node_by_device {
        let used = node_choice(r, device, "must not be empty", false);
        match used.len() {
            0 => r.add(device.required(ONE)),
            1 => {}
            _ => r.add(device.invalid_with(go_quote(&format!("{{{}}}", used.join(", "))), ONE)),
        }
    } else {
        let given = ["nodeName", "nodeSelector", "allNodes"].iter().any(|key| device.get(key).is_set());
        r.when(given, || device.invalid_with("null", "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"));
    }
    binding_conditions(r, device);
}

/// Conditions that must hold before a device is used, and those that say it never will be.
fn binding_conditions(r: &mut Report, at: &At<'_>) {
    let (good, bad) = (at.get("bindingConditions"), at.get("bindingFailureConditions"));
    for list in [&good, &bad] {
        limited(r, list, 4, |r, name| r.qualified(name));
    }
    let mut seen = BTreeSet::new();
    for name in good.items() {
        r.when(!seen.insert(name.str()), || name.duplicate());
    }
    let mut failures = BTreeSet::new();
    for name in bad.items() {
        r.when(!failures.insert(name.str()), || name.duplicate());
        r.when(seen.contains(name.str()), || {
            name.invalid("bindingFailureConditions must not overlap with bindingConditions")
        });
    }
    r.when(good.is_empty() && !bad.is_empty(), || {
        good.invalid("bindingConditions are required to use bindingFailureConditions")
    });
    r.when(bad.is_empty() && !good.is_empty(), || {
        bad.invalid("bindingFailureConditions are required to use bindingConditions")
    });
}

fn device_attribute(r: &mut Report, at: &At<'_>) {
    const LENGTH_MAX: usize = 64;
    let mut values = 0;
    for key in ["bool", "int", "string", "version"] {
        let value = at.get(key);
        if !value.is_set() {
            continue;
        }
        values += 1;
        r.when(key == "version" && !is_version(value.str()), || {
            value.invalid("must be a string compatible with semver.org spec 2.0.0")
        });
        r.when(value.len() > LENGTH_MAX, || value.too_long(LENGTH_MAX));
    }
    for key in ["bools", "ints", "strings", "versions"] {
        values += usize::from(at.get(key).is_set());
    }
    match values {
        0 => r.add(at.invalid_with("\"\"", "exactly one value must be specified")),
        1 => {}
        _ => r.add(at.invalid_as("resource.DeviceAttribute", "exactly one value must be specified")),
    }
}

fn is_version(text: &str) -> bool {
    let number =
        |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit()) && (t == "0" || !t.starts_with('0'));
    let word = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let (rest, build) = text.split_once('+').map_or((text, None), |(a, b)| (a, Some(b)));
    let (core, pre) = rest.split_once('-').map_or((rest, None), |(a, b)| (a, Some(b)));
    let parts: Vec<&str> = core.split('.').collect();
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    parts.len() == 3
        && parts.iter().all(|p| number(p))
        && pre.is_none_or(|p| p.split('.').all(|t| word(t) && (!digits(t) || number(t))))
        && build.is_none_or(|b| b.split('.').all(word))
}
