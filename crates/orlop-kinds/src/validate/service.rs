//! Services, Endpoints and EndpointSlices.

use super::meta::{self, Scope};
use super::pod::PROTOCOLS;
use super::view::{At, Report, same};
use super::{Rules, golang};
use orlop_schema::field::{FieldError, Path, go_quote};
use orlop_schema::ip;
use orlop_schema::names::{self, NameRule};
use serde_json::json;
use std::cmp::Ordering;
use std::collections::BTreeSet;

pub(super) const RULES: &[Rules] = &[
    Rules::new("", "Service", Scope::Namespaced, service, service_update, &[("status", service_status)]),
    Rules::new("", "Endpoints", Scope::Namespaced, endpoints, endpoints_update, &[]),
    Rules::new(
        "discovery.k8s.io",
        "EndpointSlice",
        Scope::Namespaced,
        endpoint_slice,
        endpoint_slice_update,
        &[],
    ),
];

fn service(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Label);
    body(r, object, None);
}

fn service_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let external = |at: &At<'_>| at.get("type").str() == "ExternalName";
    if !external(&spec) && !external(&before) {
        cluster_ip_changes(r, &spec, &before);
        ip_family_changes(r, &spec, &before);
    }
    load_balancer_class(r, &spec, Some(&before));
    let port = spec.get("healthCheckNodePort");
    let changed = port.int() != before.get("healthCheckNodePort").int();
    r.when(needs_health_check(&spec) && needs_health_check(&before) && changed, || {
        port.forbidden("field is immutable")
    });
    body(r, new, Some(old));
}

/// What is wrong with the addresses of a service; the API server looks at them before anything else, because
/// it allocates them.
pub(super) fn early(object: &At<'_>, old: Option<&At<'_>>) -> Report {
    let mut report = Report::default();
    let spec = object.get("spec");
    if spec.get("type").str() != "ExternalName" {
        cluster_ips(&mut report, &spec, old.map(|o| o.get("spec")).as_ref());
    }
    report
}

fn is_headless(spec: &At<'_>) -> bool {
    spec.get("clusterIPs").strings() == ["None"]
}

fn is_load_balancer(spec: &At<'_>) -> bool {
    spec.get("type").str() == "LoadBalancer"
}

fn needs_health_check(spec: &At<'_>) -> bool {
    is_load_balancer(spec) && spec.get("externalTrafficPolicy").str() == "Local"
}

const FROZEN: &str = "may not change once set";

fn cluster_ip_changes(r: &mut Report, spec: &At<'_>, before: &At<'_>) {
    if is_headless(spec) && is_headless(before) {
        return;
    }
    let list = spec.get("clusterIPs");
    let (now, then) = (list.strings(), before.get("clusterIPs").strings());
    let at = |index: usize| list.named(list.path.index(index));
    let first_changed = !then.is_empty() && !now.is_empty() && now[0] != then[0];
    match now.len().cmp(&then.len()) {
        Ordering::Equal => {
            for (index, _) in now.iter().zip(&then).enumerate().filter(|(_, (a, b))| a != b) {
                r.add(at(index).invalid(FROZEN));
            }
        }
        Ordering::Less => {
            r.when(now.is_empty(), || at(0).invalid("primary clusterIP can not be unset"));
            r.when(first_changed, || at(0).invalid(FROZEN));
            if now.len() == 1 {
                releases(r, spec, "clusterIP");
            }
        }
        Ordering::Greater => r.when(first_changed, || at(0).invalid(FROZEN)),
    }
}

fn releases(r: &mut Report, spec: &At<'_>, what: &str) {
    let policy = spec.get("ipFamilyPolicy");
    r.when(policy.str() != "SingleStack", || {
        policy.invalid(format!("must be set to 'SingleStack' when releasing the secondary {what}"))
    });
}

fn ip_family_changes(r: &mut Report, spec: &At<'_>, before: &At<'_>) {
    if is_headless(spec) || is_headless(before) {
        return;
    }
    let list = spec.get("ipFamilies");
    let first = list.named(list.path.index(0));
    let addresses = spec.get("clusterIPs").named(first.path.clone());
    let (now, then) = (list.strings(), before.get("ipFamilies").strings());
    let first_changed = !then.is_empty() && !now.is_empty() && now[0] != then[0];
    match now.len().cmp(&then.len()) {
        Ordering::Equal => {
            for _ in now.iter().zip(&then).filter(|(a, b)| a != b) {
                r.add(first.invalid(FROZEN));
            }
        }
        Ordering::Less => {
            r.when(spec.get("clusterIPs").is_empty(), || first.invalid("primary ipFamily can not be unset"));
            r.when(first_changed, || addresses.invalid(FROZEN));
            if now.len() == 1 {
                releases(r, spec, "ipFamily");
            }
        }
        Ordering::Greater => r.when(first_changed, || addresses.invalid(FROZEN)),
    }
}

fn load_balancer_class(r: &mut Report, spec: &At<'_>, before: Option<&At<'_>>) {
    let class = spec.get("loadBalancerClass");
    if let Some(before) = before {
        let both = is_load_balancer(spec) && is_load_balancer(before);
        r.when(both && class.value != before.get("loadBalancerClass").value, || class.invalid(FROZEN));
    }
    if class.is_set() {
        if is_load_balancer(spec) {
            r.qualified(&class);
        } else {
            r.add(class.forbidden("may only be used when `type` is 'LoadBalancer'"));
        }
    }
}

fn body(r: &mut Report, object: &At<'_>, old: Option<&At<'_>>) {
    let annotations = object.down("metadata.annotations");
    let hints = annotations.key("service.kubernetes.io/topology-aware-hints");
    let mode = annotations.key("service.kubernetes.io/topology-mode");
    r.when(hints.is_set() && mode.is_set() && hints.value != mode.value, || {
        mode.invalid(
            "must match annotations[service.kubernetes.io/topology-aware-hints] when both are specified",
        )
    });
    let spec = object.get("spec");
    let before = old.map(|old| old.get("spec"));
    let kind = spec.get("type");
    let (ports, ips) = (spec.get("ports"), spec.get("clusterIPs"));
    r.when(ports.is_empty() && !is_headless(&spec) && kind.str() != "ExternalName", || ports.required(""));
    match kind.str() {
        kind @ ("LoadBalancer" | "NodePort") if is_headless(&spec) => {
            let first = ips.named(ips.path.index(0));
            r.add(first.invalid_with("\"None\"", format!("may not be set to 'None' for {kind} services")));
        }
        "ExternalName" => external_name(r, &spec),
        _ => {}
    }
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        service_port(r, &port, ports.len() > 1, &mut seen);
    }
    r.labels(&spec.get("selector"));
    session_affinity(r, &spec);
    if kind.str() != "ExternalName" {
        cluster_ips(r, &spec, before.as_ref());
    }
    let accepted = before.as_ref().map(|b| b.get("externalIPs").strings()).unwrap_or_default();
    for address in spec.get("externalIPs").items() {
        let wrong = ip::address(&address.path, address.str(), &accepted);
        if wrong.is_empty() {
            r.extend(ip::endpoint_address(&address.path, address.str()));
        } else {
            r.extend(wrong);
        }
    }
    r.required_one_of(&kind, &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    unique_ports(r, &ports, kind.str() == "ClusterIP");
    source_ranges(r, object, old);
    let allocate = spec.get("allocateLoadBalancerNodePorts");
    r.when(allocate.is_set() && !is_load_balancer(&spec), || {
        allocate.forbidden("may only be used when `type` is 'LoadBalancer'")
    });
    r.when(is_load_balancer(&spec) && !allocate.is_set(), || {
        FieldError::required(&Path::new("allocateLoadBalancerNodePorts"), "")
    });
    load_balancer_class(r, &spec, None);
    traffic(r, &spec);
}

fn external_name(r: &mut Report, spec: &At<'_>) {
    for key in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let at = spec.get(key);
        r.when(!at.is_empty(), || at.forbidden("may not be set for ExternalName services"));
    }
    let name = spec.get("externalName");
    let host = name.str().strip_suffix('.').unwrap_or(name.str());
    if host.is_empty() {
        r.add(name.required(""));
    }
    for wrong in names::dns1123_subdomain(host).into_iter().filter(|_| !host.is_empty()) {
        r.add(name.invalid_with(go_quote(host), wrong));
    }
}

fn service_port<'a>(r: &mut Report, port: &At<'a>, name_is_needed: bool, seen: &mut BTreeSet<&'a str>) {
    let name = port.get("name");
    if name_is_needed && name.is_empty() {
        r.add(name.required(""));
    } else if !name.is_empty() {
        r.label(&name);
        r.when(!seen.insert(name.str()), || name.duplicate());
    }
    r.port(&port.get("port"));
    r.required_one_of(&port.get("protocol"), &PROTOCOLS);
    r.port_or_name(&port.get("targetPort"));
    let protocol = port.get("appProtocol");
    if protocol.is_set() {
        r.qualified(&protocol);
    }
}

fn session_affinity(r: &mut Report, spec: &At<'_>) {
    let (affinity, config) = (spec.get("sessionAffinity"), spec.get("sessionAffinityConfig"));
    r.required_one_of(&affinity, &["ClientIP", "None"]);
    match affinity.str() {
        "ClientIP" => {
            let path = [config.clone(), config.get("clientIP"), config.down("clientIP.timeoutSeconds")];
            if let Some(missing) = path.iter().find(|at| !at.is_set()) {
                return r.add(missing.required("when session affinity type is ClientIP"));
            }
            let [.., seconds] = path;
            r.when(!(1..=86400).contains(&seconds.int()), || {
                seconds.invalid("must be greater than 0 and less than 86400")
            });
        }
        "None" => {
            r.when(config.is_set(), || config.forbidden("must not be set when session affinity is None"));
        }
        _ => {}
    }
}

fn is_six(text: &str) -> bool {
    ip::parse_lenient(text).is_some_and(|ip| ip.is_ipv6())
}

fn cluster_ips(r: &mut Report, spec: &At<'_>, before: Option<&At<'_>>) {
    let (first, list) = (spec.get("clusterIP"), spec.get("clusterIPs"));
    let all = list.strings();
    if first.is_empty() {
        r.when(!all.is_empty(), || list.invalid("must be empty when `clusterIP` is not specified"));
    } else if all.is_empty() {
        r.add(list.required(""));
    } else {
        r.when(all[0] != first.str(), || list.invalid("first value must match `clusterIP`"));
    }
    let families = spec.get("ipFamilies");
    let mut seen = BTreeSet::new();
    for family in families.items() {
        r.one_of(&family, &["IPv4", "IPv6"]);
        r.when(!seen.insert(family.str()), || family.duplicate());
    }
    r.optional_one_of(&spec.get("ipFamilyPolicy"), &["PreferDualStack", "RequireDualStack", "SingleStack"]);
    let accepted = before.map(|b| b.get("clusterIPs").strings()).unwrap_or_default();
    let mut bad = false;
    for (index, address) in list.items().iter().enumerate() {
        if index == 0 && address.str() == "None" {
            bad |= all.len() > 1;
            r.when(all.len() > 1, || list.invalid("'None' must be the first and only value"));
            continue;
        }
        let wrong = ip::address(&address.path, address.str(), &accepted);
        bad |= !wrong.is_empty();
        r.extend(wrong);
    }
    r.when(all.len() > 2, || list.invalid("may only hold up to 2 values"));
    if bad {
        return;
    }
    let six = all.iter().filter(|ip| is_six(ip)).count();
    r.when(all.len() > 1 && (six == 0 || six == all.len()), || {
        list.invalid("may specify no more than one IP for each IP family")
    });
    if is_headless(spec) {
        return;
    }
    for (index, (address, family)) in list.items().iter().zip(families.strings()).enumerate() {
        let wanted_six = family == "IPv6";
        if ["IPv4", "IPv6"].contains(&family) && is_six(address.str()) != wanted_six {
            r.add(
                address.invalid(format!("expected an {family} value as indicated by `ipFamilies[{index}]`")),
            );
        }
    }
}

fn unique_ports(r: &mut Report, ports: &At<'_>, cluster_ip: bool) {
    let list = ports.items();
    for port in list.iter().filter(|_| cluster_ip) {
        let node = port.get("nodePort");
        r.when(node.int() != 0, || node.forbidden("may not be used when `type` is 'ClusterIP'"));
    }
    let mut seen = BTreeSet::new();
    for port in &list {
        let node = port.get("nodePort");
        let twice = node.int() != 0 && !seen.insert((port.get("protocol").str(), node.int()));
        r.when(twice, || node.duplicate());
    }
    let mut seen = BTreeSet::new();
    for port in &list {
        let (protocol, number) = (port.get("protocol").str(), port.get("port").int());
        if !seen.insert((protocol, number)) {
            let mut error = port.duplicate();
            let key = json!({"protocol": protocol, "port": number});
            error.value = Some(golang::print("core.ServicePort", &key));
            r.add(error);
        }
    }
}

fn source_ranges(r: &mut Report, object: &At<'_>, old: Option<&At<'_>>) {
    const WORDS: &str = "may only be used when `type` is 'LoadBalancer'";
    const ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
    let spec = object.get("spec");
    let ranges = spec.get("loadBalancerSourceRanges").named(spec.path.child("LoadBalancerSourceRanges"));
    let annotation = object.down("metadata.annotations").key(ANNOTATION);
    if !ranges.is_empty() {
        r.when(!is_load_balancer(&spec), || ranges.forbidden(WORDS));
        let before = old.map(|o| o.down("spec.loadBalancerSourceRanges").strings()).unwrap_or_default();
        let before: Vec<&str> = before.into_iter().map(str::trim).collect();
        for range in ranges.items() {
            r.extend(ip::cidr(&range.path, range.str().trim(), &before));
        }
    } else if annotation.is_set() {
        r.when(!is_load_balancer(&spec), || annotation.forbidden(WORDS));
        let unchanged =
            old.is_some_and(|o| o.down("metadata.annotations").key(ANNOTATION).value == annotation.value);
        let text = annotation.str().trim();
        if !unchanged && !text.is_empty() {
            for range in text.split(',') {
                r.extend(ip::cidr(&annotation.path, range.trim(), &[]));
            }
        }
    }
}

fn traffic(r: &mut Report, spec: &At<'_>) {
    let kind = spec.get("type").str();
    let reachable = ["LoadBalancer", "NodePort"].contains(&kind)
        || (kind == "ClusterIP" && !spec.get("externalIPs").is_empty());
    let external = spec.get("externalTrafficPolicy");
    if reachable {
        r.required_one_of(&external, &["Cluster", "Local"]);
    } else {
        r.when(!external.is_empty(), || {
            external.invalid("may only be set for externally-accessible services")
        });
    }
    let health = spec.get("healthCheckNodePort");
    if needs_health_check(spec) {
        if health.int() == 0 {
            r.add(health.required(""));
        } else {
            r.port(&health);
        }
    } else {
        r.when(health.int() != 0, || {
            health.invalid(
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
            )
        });
    }
    let internal = spec.get("internalTrafficPolicy");
    r.when(!internal.is_set() && ["NodePort", "LoadBalancer", "ClusterIP"].contains(&kind), || {
        internal.required("")
    });
    r.optional_one_of(&internal, &["Cluster", "Local"]);
    r.optional_one_of(&spec.get("trafficDistribution"), &["PreferClose", "PreferSameZone", "PreferSameNode"]);
}

fn service_status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let list = new.down("status.loadBalancer.ingress");
    if !is_load_balancer(&new.get("spec")) && !list.is_empty() {
        return r.add(list.forbidden("may only be used when `spec.type` is 'LoadBalancer'"));
    }
    let before = old.down("status.loadBalancer.ingress").items();
    let before: Vec<&str> = before.iter().map(|i| i.get("ip").str()).filter(|ip| !ip.is_empty()).collect();
    for point in list.items() {
        let (address, mode) = (point.get("ip"), point.get("ipMode"));
        if !address.is_empty() {
            r.ip(&address, &before);
        }
        if !mode.is_set() {
            r.when(!address.is_empty(), || mode.required("must be specified when `ip` is set"));
        } else if address.is_empty() {
            r.add(mode.forbidden("may not be specified when `ip` is not set"));
        } else {
            r.one_of(&mode, &["Proxy", "VIP"]);
        }
        host_is_no_address(r, &point.get("hostname"));
    }
}

/// A host name, which is not an address.
pub(super) fn host_is_no_address(r: &mut Report, host: &At<'_>) {
    if host.is_empty() {
        return;
    }
    r.subdomain(host);
    r.when(ip::parse_lenient(host.str()).is_some(), || host.invalid("must be a DNS name, not an IP address"));
}

fn endpoints(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    subsets(r, &object.get("subsets"));
}

fn endpoints_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    meta::create(r, new, Scope::Namespaced, NameRule::Subdomain);
    let now = new.get("subsets");
    if !same(now.value, old.get("subsets").value) {
        subsets(r, &now);
    }
}

fn subsets(r: &mut Report, list: &At<'_>) {
    for subset in list.items() {
        let (ready, unready) = (subset.get("addresses"), subset.get("notReadyAddresses"));
        r.when(ready.is_empty() && unready.is_empty(), || {
            subset.required("must specify `addresses` or `notReadyAddresses`")
        });
        for address in [ready.items(), unready.items()].concat() {
            let (number, host, node) = (address.get("ip"), address.get("hostname"), address.get("nodeName"));
            r.ip(&number, &[]);
            if !host.is_empty() {
                r.label(&host);
            }
            if node.is_set() {
                r.subdomain(&node);
            }
            r.extend(ip::endpoint_address(&number.path, number.str()));
        }
        let ports = subset.get("ports");
        for port in ports.items() {
            let name = port.get("name");
            if ports.len() > 1 && name.is_empty() {
                r.add(name.required(""));
            } else if !name.is_empty() {
                r.label(&name);
            }
            r.port(&port.get("port"));
            r.required_one_of(&port.get("protocol"), &PROTOCOLS);
            let protocol = port.get("appProtocol");
            if protocol.is_set() {
                r.qualified(&protocol);
            }
        }
    }
}

fn endpoint_slice(r: &mut Report, object: &At<'_>) {
    slice(r, object);
    slice_endpoints(r, &object.get("endpoints"), object.get("addressType").str());
}

fn endpoint_slice_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    slice(r, new);
    if !same(new.get("endpoints").value, old.get("endpoints").value) {
        slice_endpoints(r, &new.get("endpoints"), new.get("addressType").str());
    }
    r.immutable_str(&new.get("addressType"), &old.get("addressType"));
}

fn slice(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    r.required_one_of(&object.get("addressType"), &["FQDN", "IPv4", "IPv6"]);
    let ports = object.get("ports");
    if ports.len() > 20000 {
        return r.add(ports.too_many(20000));
    }
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let name = port.get("name");
        if !name.is_empty() {
            r.label(&name);
        }
        r.when(!seen.insert(name.str()), || name.duplicate_str());
        r.given_one_of(&port.get("protocol"), &PROTOCOLS);
        let protocol = port.get("appProtocol");
        if protocol.is_set() {
            r.qualified(&protocol);
        }
    }
}

fn slice_endpoints(r: &mut Report, list: &At<'_>, kind: &str) {
    if list.len() > 1000 {
        return r.add(list.too_many(1000));
    }
    for endpoint in list.items() {
        let addresses = endpoint.get("addresses");
        r.when(addresses.is_empty(), || addresses.required("must contain at least 1 address"));
        r.when(addresses.len() > 100, || addresses.too_many(100));
        for address in addresses.items() {
            slice_address(r, &address, &addresses, kind);
        }
        let (node, topology) = (endpoint.get("nodeName"), endpoint.get("deprecatedTopology"));
        if node.is_set() {
            r.subdomain(&node);
        }
        r.when(topology.len() > 16, || topology.too_many(16));
        r.labels(&topology);
        let host = endpoint.get("hostname");
        if host.is_set() {
            r.label(&host);
        }
        hints(r, &endpoint.get("hints"));
    }
}

fn slice_address(r: &mut Report, address: &At<'_>, list: &At<'_>, kind: &str) {
    let text = address.str();
    let wrong = match kind {
        "IPv4" => ip::address(&address.path, text, &[]),
        "IPv6" => ip::canonical_address(&address.path, text),
        "FQDN" => return fully_qualified(r, address),
        _ => return,
    };
    if !wrong.is_empty() {
        return r.extend(wrong);
    }
    let wanted_six = kind == "IPv6";
    r.when(is_six(text) != wanted_six, || {
        address.named(list.path.clone()).invalid(format!("must be an {kind} address"))
    });
    r.extend(ip::endpoint_address(&address.path, text));
}

/// A domain name with at least two parts; a dot at the end is fine.
fn fully_qualified(r: &mut Report, at: &At<'_>) {
    if r.required(at) {
        return;
    }
    let name = at.str().strip_suffix('.').unwrap_or(at.str());
    let wrong = names::dns1123_subdomain(name);
    if !wrong.is_empty() {
        return r.add(at.invalid_with(go_quote(name), wrong.join(",")));
    }
    if !name.contains('.') {
        let words = "should be a domain with at least two segments separated by dots";
        return r.add(at.invalid_with(go_quote(name), words));
    }
    for label in name.split('.') {
        let wrong = names::dns1123_label(label);
        if !wrong.is_empty() {
            return r.add(at.invalid_with(go_quote(label), wrong.join(",")));
        }
    }
}

fn hints(r: &mut Report, at: &At<'_>) {
    for key in ["forZones", "forNodes"] {
        let list = at.get(key);
        if list.len() > 8 {
            return r.add(list.too_many(8));
        }
        let mut seen = BTreeSet::new();
        for hint in list.items() {
            let name = hint.get("name");
            r.when(!seen.insert(name.str()), || name.duplicate_str());
            match key {
                "forZones" => r.each(&name, names::label_value(name.str())),
                _ => r.subdomain(&name),
            }
        }
    }
}
