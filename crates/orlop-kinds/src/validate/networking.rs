//! The kinds of `networking.k8s.io`.

use super::Rules;
use super::meta::{self, Scope};
use super::service::host_is_no_address;
use super::view::{At, IMMUTABLE, Report};
use orlop_schema::field::Path;
use orlop_schema::ip::{self, Cidr};
use orlop_schema::labels::{self, SelectorOptions};
use orlop_schema::names::{self, NameRule};

const GROUP: &str = "networking.k8s.io";

pub(super) const RULES: &[Rules] = &[
    Rules::new(GROUP, "NetworkPolicy", Scope::Namespaced, policy, policy_update, &[]),
    Rules::new(GROUP, "Ingress", Scope::Namespaced, ingress, ingress_update, &[("status", ingress_status)]),
    Rules::new(GROUP, "IngressClass", Scope::Cluster, class, class_update, &[]),
    Rules::new(GROUP, "IPAddress", Scope::Cluster, address, address_update, &[]),
    Rules::new(GROUP, "ServiceCIDR", Scope::Cluster, service_cidr, service_cidr_update, &[]),
];

fn policy(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    policy_spec(r, &object.get("spec"), SelectorOptions::default(), &[]);
}

fn peers<'a>(spec: &At<'a>) -> Vec<At<'a>> {
    [("ingress", "from"), ("egress", "to")]
        .iter()
        .flat_map(|(rules, peers)| spec.get(rules).items().into_iter().flat_map(|r| r.get(peers).items()))
        .collect()
}

fn policy_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let before = old.get("spec");
    let accepted: Vec<&str> = peers(&before)
        .iter()
        .flat_map(|peer| {
            let block = peer.get("ipBlock");
            [vec![block.get("cidr").str()], block.get("except").strings()].concat()
        })
        .collect();
    let selector = before.get("podSelector");
    let any_value = !labels::selector(&Path::root(), selector.value, SelectorOptions::default()).is_empty();
    meta::update(r, new, old);
    policy_spec(r, &new.get("spec"), SelectorOptions { any_value, any_operator: false }, &accepted);
}

fn policy_spec(r: &mut Report, spec: &At<'_>, selector: SelectorOptions, accepted: &[&str]) {
    r.selector(&spec.get("podSelector"), selector);
    for (rules, side) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(rules).items() {
            for port in rule.get("ports").items() {
                policy_port(r, &port);
            }
            for peer in rule.get(side).items() {
                policy_peer(r, &peer, selector, accepted);
            }
        }
    }
    let types = spec.get("policyTypes");
    if types.len() > 2 {
        return r.add(types.invalid("may not specify more than two policyTypes"));
    }
    for kind in types.items() {
        r.one_of(&kind, &["Ingress", "Egress"]);
    }
}

fn policy_port(r: &mut Report, at: &At<'_>) {
    r.optional_one_of(&at.get("protocol"), &["TCP", "UDP", "SCTP"]);
    let (port, end) = (at.get("port"), at.get("endPort"));
    if !port.is_set() {
        r.when(end.is_set(), || end.invalid("may not be specified when `port` is not specified"));
    } else if port.value.is_string() {
        r.when(end.is_set(), || end.invalid("may not be specified when `port` is non-numeric"));
        r.port_or_name(&port);
    } else {
        r.port(&port);
        if end.is_set() {
            r.when(end.int() < port.int(), || {
                end.invalid_with(port.int().to_string(), "must be greater than or equal to `port`")
            });
            r.port(&end);
        }
    }
}

fn policy_peer(r: &mut Report, peer: &At<'_>, selector: SelectorOptions, accepted: &[&str]) {
    let mut kinds = 0;
    for key in ["podSelector", "namespaceSelector"] {
        let at = peer.get(key);
        if at.is_set() {
            kinds += 1;
            r.selector(&at, selector);
        }
    }
    let block = peer.get("ipBlock");
    if block.is_set() {
        kinds += 1;
        ip_block(r, &block, accepted);
    }
    r.when(kinds == 0, || peer.required("must specify a peer"));
    r.when(kinds > 1 && block.is_set(), || peer.forbidden("may not specify both ipBlock and another peer"));
}

fn ip_block(r: &mut Report, at: &At<'_>, accepted: &[&str]) {
    let cidr = at.get("cidr");
    if r.required(&cidr) {
        return;
    }
    r.cidr(&cidr, accepted);
    let Some(whole) = Cidr::parse_lenient(cidr.str()) else { return };
    for except in at.get("except").items() {
        r.cidr(&except, accepted);
        let Some(part) = Cidr::parse_lenient(except.str()) else { continue };
        let within = Cidr { address: part.masked(), prefix: whole.prefix };
        let same_family = part.address.is_ipv4() == whole.address.is_ipv4();
        let inside = same_family && within.masked() == whole.masked() && whole.prefix < part.prefix;
        r.when(!inside, || except.invalid("must be a strict subset of `cidr`"));
    }
}

fn ingress(r: &mut Report, object: &At<'_>) {
    const ANNOTATION: &str = "kubernetes.io/ingress.class";
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    ingress_spec(r, &object.get("spec"), false, false);
    let annotation = object.down("metadata.annotations").get(ANNOTATION);
    let class = object.down("spec.ingressClassName");
    r.when(annotation.is_set() && class.is_set() && annotation.value != class.value, || {
        annotation
            .named(Path::new("annotations").child(ANNOTATION))
            .invalid("must match `ingressClassName` when both are specified")
    });
}

fn ingress_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    meta::create(r, new, Scope::Namespaced, NameRule::Subdomain);
    let before = old.get("spec");
    let any_secret = before.get("tls").items().iter().any(|tls| {
        let name = tls.get("secretName").str();
        !name.is_empty() && !names::dns1123_subdomain(name).is_empty()
    });
    let any_wildcard = before.get("rules").items().iter().any(|rule| {
        let mut report = Report::default();
        rule_value(&mut report, rule);
        rule.get("host").str().contains('*') && !report.0.is_empty()
    });
    ingress_spec(r, &new.get("spec"), any_secret, any_wildcard);
}

fn ingress_spec(r: &mut Report, spec: &At<'_>, any_secret: bool, any_wildcard: bool) {
    let (rules, backend) = (spec.get("rules"), spec.get("defaultBackend"));
    r.when(rules.is_empty() && !backend.is_set(), || {
        let shown = if rules.is_set() { "[]" } else { "null" };
        spec.invalid_with(shown, "either `defaultBackend` or `rules` must be specified")
    });
    if backend.is_set() {
        ingress_backend(r, &backend);
    }
    for rule in rules.items() {
        let host = rule.get("host");
        let wildcard = host.str().contains('*');
        if !host.is_empty() {
            r.when(ip::parse_lenient(host.str()).is_some(), || {
                host.invalid("must be a DNS name, not an IP address")
            });
            ingress_host(r, &host);
        }
        if !(wildcard && any_wildcard) {
            rule_value(r, &rule);
        }
    }
    for tls in spec.get("tls").items() {
        for host in tls.get("hosts").items() {
            ingress_host(r, &host);
        }
        let secret = tls.get("secretName");
        if !any_secret && !secret.is_empty() {
            r.subdomain(&secret);
        }
    }
    let class = spec.get("ingressClassName");
    if class.is_set() {
        r.subdomain(&class);
    }
}

fn ingress_host(r: &mut Report, host: &At<'_>) {
    if host.str().contains('*') {
        r.each(host, names::wildcard_dns1123_subdomain(host.str()));
    } else {
        r.subdomain(host);
    }
}

fn rule_value(r: &mut Report, rule: &At<'_>) {
    let http = rule.get("http");
    if !http.is_set() {
        return;
    }
    let paths = http.get("paths");
    r.required(&paths);
    for entry in paths.items() {
        ingress_path(r, &entry);
    }
}

fn ingress_path(r: &mut Report, entry: &At<'_>) {
    let (kind, path) = (entry.get("pathType"), entry.get("path"));
    if !kind.is_set() {
        return r.add(kind.required("pathType must be specified"));
    }
    let relative = !path.str().starts_with('/');
    match kind.str() {
        "Exact" | "Prefix" => {
            r.when(relative, || path.invalid_str("must be an absolute path"));
            for part in ["//", "/./", "/../", "%2f", "%2F"] {
                r.when(path.str().contains(part), || path.invalid(format!("must not contain '{part}'")));
            }
            for end in ["/..", "/."] {
                r.when(path.str().ends_with(end), || path.invalid(format!("cannot end with '{end}'")));
            }
        }
        "ImplementationSpecific" => {
            r.when(!path.is_empty() && relative, || path.invalid("must be an absolute path"));
        }
        _ => r.add(kind.unsupported(&["Exact", "ImplementationSpecific", "Prefix"])),
    }
    ingress_backend(r, &entry.get("backend"));
}

fn ingress_backend(r: &mut Report, at: &At<'_>) {
    let (resource, service) = (at.get("resource"), at.get("service"));
    let refuse = |r: &mut Report, words: &str| r.add(at.invalid_with("\"\"", words));
    match (resource.is_set(), service.is_set()) {
        (true, true) => refuse(r, "cannot set both resource and service backends"),
        (false, false) => refuse(r, "resource or service backend is required"),
        (true, false) => typed_reference(r, &resource),
        (false, true) => {
            r.required_label(&service.get("name"));
            let (name, number) = (service.down("port.name"), service.down("port.number"));
            match (!name.is_empty(), number.int() != 0) {
                (true, true) => refuse(r, "cannot set both port name & port number"),
                (true, false) => r.each(&name, names::port_name(name.str())),
                (false, true) => r.port(&number),
                (false, false) => r.add(at.required("port name or number is required")),
            }
        }
    }
}

fn segment(r: &mut Report, at: &At<'_>) {
    if !r.required(at) {
        r.each(at, names::path_segment(at.str()));
    }
}

fn typed_reference(r: &mut Report, at: &At<'_>) {
    let group = at.get("apiGroup");
    if group.is_set() {
        r.subdomain(&group);
    }
    segment(r, &at.get("kind"));
    segment(r, &at.get("name"));
}

fn ingress_status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let before = old.down("status.loadBalancer.ingress").items();
    let before: Vec<&str> = before.iter().map(|i| i.get("ip").str()).filter(|ip| !ip.is_empty()).collect();
    for point in new.down("status.loadBalancer.ingress").items() {
        let address = point.get("ip");
        if !address.is_empty() {
            r.ip(&address, &before);
        }
        host_is_no_address(r, &point.get("hostname"));
    }
}

fn class(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Cluster, NameRule::Subdomain);
    let (controller, parameters) = (object.down("spec.controller"), object.down("spec.parameters"));
    r.when(controller.len() > 250, || controller.too_long(250));
    r.domain_prefixed_path(&controller);
    if !parameters.is_set() {
        return;
    }
    typed_reference(r, &parameters);
    let (scope, namespace) = (parameters.get("scope"), parameters.get("namespace"));
    if !scope.is_set() {
        return r.add(scope.required(""));
    }
    match scope.str() {
        "Namespace" if namespace.is_set() => r.label(&namespace),
        "Namespace" => r.add(namespace.required("`parameters.scope` is set to 'Namespace'")),
        "Cluster" => {
            r.when(namespace.is_set(), || namespace.forbidden("`parameters.scope` is set to 'Cluster'"));
        }
        _ => r.add(scope.unsupported(&["Cluster", "Namespace"])),
    }
}

fn class_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    r.immutable_str(&new.down("spec.controller"), &old.down("spec.controller"));
    class(r, new);
}

fn address(r: &mut Report, object: &At<'_>) {
    let name = object.down("metadata.name");
    meta_with_address(r, object, &name);
    let parent = object.down("spec.parentRef");
    if !parent.is_set() {
        return r.add(parent.required(""));
    }
    let (group, namespace) = (parent.get("group"), parent.get("namespace"));
    if !group.is_empty() {
        r.subdomain(&group);
    }
    segment(r, &parent.get("resource"));
    segment(r, &parent.get("name"));
    if !namespace.is_empty() {
        r.each(&namespace, names::path_segment(namespace.str()));
    }
}

/// The name of an IPAddress is an address in canonical form.
fn meta_with_address(r: &mut Report, object: &At<'_>, name: &At<'_>) {
    let start = r.0.len();
    meta::create(r, object, Scope::Cluster, NameRule::Any);
    if !name.is_empty() {
        let wrong = ip::canonical_address(&name.path, name.str());
        r.0.splice(start..start, wrong);
    }
}

fn address_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    address(r, new);
    meta::update(r, new, old);
    r.immutable_as("*networking.ParentReference", &new.down("spec.parentRef"), &old.down("spec.parentRef"));
}

fn cidrs(r: &mut Report, list: &At<'_>) {
    let all = list.strings();
    if all.is_empty() {
        return r.add(list.required("at least one CIDR required"));
    }
    if all.len() > 2 {
        let shown = format!("{{\"CIDRs\":{}}}", list.value);
        return r.add(list.invalid_with(shown, "may only hold up to 2 values"));
    }
    for cidr in list.items() {
        r.extend(ip::canonical_cidr(&cidr.path, cidr.str()));
    }
    let families: Vec<bool> =
        all.iter().filter_map(|c| Cidr::parse_lenient(c)).map(|c| c.address.is_ipv4()).collect();
    r.when(matches!(families.as_slice(), [a, b] if a == b), || {
        list.invalid(
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
        )
    });
}

fn service_cidr(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Cluster, NameRule::Subdomain);
    cidrs(r, &object.down("spec.cidrs"));
}

fn service_cidr_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let (list, before) = (new.down("spec.cidrs"), old.down("spec.cidrs").strings());
    let now = list.items();
    if now.len() == before.len() {
        for (now, then) in now.iter().zip(&before) {
            r.when(now.str() != *then, || now.invalid(IMMUTABLE));
        }
    } else if before.len() == 1 && now.len() == 2 {
        r.when(now[0].str() != before[0], || now[0].invalid(IMMUTABLE));
        cidrs(r, &list);
    } else {
        r.add(list.invalid(IMMUTABLE));
    }
}
