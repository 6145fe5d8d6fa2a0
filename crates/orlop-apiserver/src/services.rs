//! Addresses and ports of Services: handed out, kept unique, taken back.

use crate::object;
use crate::status::ApiError;
use orlop_schema::field::{FieldError, Path};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The first address of the service network `10.0.0.0/24`; `.1` belongs to the `kubernetes` Service.
const NETWORK: [u8; 3] = [10, 0, 0];
/// Node ports lie in this range.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// A dry run shows a port that no Service can have.
const DRY_RUN_PORT: i64 = 32_769;

/// What an allocation is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation<'a> {
    /// The Service so far, if there is one.
    pub(crate) live: Option<&'a Value>,
    /// Whether nothing is to be handed out for good.
    pub(crate) dry_run: bool,
}

/// What has been handed out.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    ips: BTreeSet<Ipv4Addr>,
    ports: BTreeSet<(i64, String)>,
}

impl Addresses {
    /// Completes a Service: cluster addresses, node ports, families.
    pub(crate) fn allocate(&mut self, service: &mut Value, allocation: Allocation<'_>) -> Result<(), ApiError> {
        let live = allocation.live;
        let kind = text_at(service, "spec.type").to_owned();
        let was = live.map(|live| text_at(live, "spec.type").to_owned()).unwrap_or_default();
        let mut errors = Vec::new();
        if kind == "ExternalName" {
            if let Some(live) = live.filter(|_| was != "ExternalName" && !allocation.dry_run) {
                self.release(live);
            }
            return Ok(());
        }
        keep_if_absent(service, live, &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]);
        let has_address = live.is_some_and(|live| was != "ExternalName" && !text_at(live, "spec.clusterIP").is_empty());
        if has_address {
            set_families(service);
        } else {
            self.allocate_ip(service, &mut errors);
        }
        let needs_ports = matches!(kind.as_str(), "NodePort" | "LoadBalancer")
            && service["spec"]["allocateLoadBalancerNodePorts"] != json!(false);
        self.allocate_ports(service, allocation, needs_ports, &mut errors);
        if errors.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid("", "Service", object::meta_str(service, "name"), &errors))
    }

    /// Takes back what a Service had.
    pub(crate) fn release(&mut self, service: &Value) {
        self.release_ips(service);
        self.release_ports(service);
    }

    /// Notes what a Service that was loaded has.
    pub(crate) fn claim(&mut self, service: &Value) {
        self.ips.extend(ips(service));
        self.ports.extend(node_ports(service));
    }

    fn allocate_ip(&mut self, service: &mut Value, errors: &mut Vec<FieldError>) {
        let mut wanted = text_at(service, "spec.clusterIP").to_owned();
        if wanted.is_empty() {
            let first = service["spec"]["clusterIPs"].get(0).and_then(Value::as_str).unwrap_or_default();
            first.clone_into(&mut wanted);
        }
        if wanted == "None" {
            if service["spec"].get("clusterIPs").is_none() {
                object::set_at(service, "spec.clusterIPs", json!(["None"]));
            }
            set_families(service);
            return;
        }
        let address = if wanted.is_empty() {
            (1..255)
                .map(|last| Ipv4Addr::new(NETWORK[0], NETWORK[1], NETWORK[2], last))
                .find(|ip| !self.ips.contains(ip))
        } else {
            match wanted.parse::<Ipv4Addr>() {
                Ok(ip) if ip.octets()[..3] != NETWORK => {
                    let why = format!(
                        "failed to allocate IP {ip}: the provided IP ({ip}) is not in the valid range. The range of valid IPs is 10.0.0.0/24"
                    );
                    errors.push(FieldError::invalid(
                        &Path::new("spec").child("clusterIPs"),
                        &json!([wanted]),
                        why,
                    ));
                    None
                }
                Ok(ip) if self.ips.contains(&ip) => {
                    let why = format!("failed to allocate IP {ip}: provided IP is already allocated");
                    errors.push(FieldError::invalid(
                        &Path::new("spec").child("clusterIPs"),
                        &json!([wanted]),
                        why,
                    ));
                    None
                }
                // What is no address is left to validation.
                parsed => parsed.ok(),
            }
        };
        if let Some(ip) = address {
            self.ips.insert(ip);
            object::set_at(service, "spec.clusterIP", ip.to_string().into());
            if service["spec"].get("clusterIPs").and_then(Value::as_array).is_none_or(Vec::is_empty) {
                object::set_at(service, "spec.clusterIPs", json!([ip.to_string()]));
            }
            set_families(service);
        }
    }

    fn allocate_ports(
        &mut self,
        service: &mut Value,
        Allocation { live, dry_run }: Allocation<'_>,
        needed: bool,
        errors: &mut Vec<FieldError>,
    ) {
        let before: BTreeSet<(i64, String)> = live.map(|live| node_ports(live).collect()).unwrap_or_default();
        if !needed {
            if let Some(live) = live {
                self.release_ports(live);
                let kind = text_at(service, "spec.type").to_owned();
                if kind == "ClusterIP" {
                    for port in service["spec"]["ports"].as_array_mut().into_iter().flatten() {
                        let number = port["nodePort"].as_i64().unwrap_or(0);
                        if before.iter().any(|(kept, _)| *kept == number) {
                            port.as_object_mut().map(|port| port.remove("nodePort"));
                        }
                    }
                }
            }
            return;
        }
        let kept_by_port: Vec<(Value, Value, i64)> = live
            .and_then(|live| live["spec"]["ports"].as_array())
            .into_iter()
            .flatten()
            .filter_map(|port| {
                Some((port["port"].clone(), port["protocol"].clone(), port["nodePort"].as_i64()?))
            })
            .collect();
        let ports = service["spec"]["ports"].as_array().cloned().unwrap_or_default();
        let mut taken = BTreeSet::new();
        let mut assigned = Vec::new();
        for (n, mut port) in ports.into_iter().enumerate() {
            let protocol = object::text(&port, "protocol").to_owned();
            let given = port["nodePort"].as_i64().unwrap_or(0);
            let kept =
                kept_by_port.iter().find(|(p, proto, _)| *p == port["port"] && *proto == port["protocol"]);
            let number = match (given, kept) {
                (0, Some((_, _, number))) => Some(*number),
                (0, None) => {
                    let free = |number: &i64| {
                        !self.ports.contains(&(*number, protocol.clone()))
                            && !taken.contains(&(*number, protocol.clone()))
                    };
                    if dry_run { Some(DRY_RUN_PORT) } else { NODE_PORTS.clone().find(free) }
                }
                (given, _) if before.contains(&(given, protocol.clone())) => Some(given),
                (given, _) => {
                    let path = Path::new("spec").child("ports").index(n).child("nodePort");
                    if !NODE_PORTS.contains(&given) {
                        let why = "provided port is not in the valid range. The range of valid ports is 30000-32767";
                        errors.push(FieldError::invalid(&path, &json!(given), why));
                    } else if self.ports.contains(&(given, protocol.clone())) {
                        errors.push(FieldError::invalid(
                            &path,
                            &json!(given),
                            "provided port is already allocated",
                        ));
                    }
                    Some(given)
                }
            };
            if let Some(number) = number {
                taken.insert((number, protocol));
                port["nodePort"] = number.into();
            }
            assigned.push(port);
        }
        if errors.is_empty() && dry_run {
            object::set_at(service, "spec.ports", Value::Array(assigned));
        } else if errors.is_empty() {
            self.ports.retain(|port| !before.contains(port));
            self.ports.extend(taken);
            object::set_at(service, "spec.ports", Value::Array(assigned));
        }
    }

    fn release_ips(&mut self, service: &Value) {
        for ip in ips(service) {
            self.ips.remove(&ip);
        }
    }

    fn release_ports(&mut self, service: &Value) {
        for port in node_ports(service) {
            self.ports.remove(&port);
        }
    }
}

fn set_families(service: &mut Value) {
    if service["spec"].get("ipFamilies").is_none() {
        object::set_at(service, "spec.ipFamilies", json!(["IPv4"]));
    }
    if service["spec"].get("ipFamilyPolicy").is_none() {
        object::set_at(service, "spec.ipFamilyPolicy", "SingleStack".into());
    }
}

/// A writer that leaves allocated fields out keeps them.
fn keep_if_absent(service: &mut Value, live: Option<&Value>, fields: &[&str]) {
    let Some(live) = live else { return };
    if text_at(live, "spec.type") == "ExternalName" {
        return;
    }
    for field in fields {
        let absent = service["spec"].get(field).is_none_or(|v| v.is_null() || v == "" || v == &json!([]));
        if let (true, Some(kept)) = (absent, live["spec"].get(field)) {
            object::set_at(service, &format!("spec.{field}"), kept.clone());
        }
    }
}

fn text_at<'a>(object: &'a Value, path: &str) -> &'a str {
    object::at(object, path).and_then(Value::as_str).unwrap_or_default()
}

fn ips(service: &Value) -> impl Iterator<Item = Ipv4Addr> + '_ {
    let all = service["spec"]["clusterIPs"].as_array().into_iter().flatten();
    all.filter_map(|ip| ip.as_str()?.parse().ok())
}

fn node_ports(service: &Value) -> impl Iterator<Item = (i64, String)> + '_ {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    ports.filter_map(|port| {
        Some((port["nodePort"].as_i64().filter(|n| *n > 0)?, object::text(port, "protocol").to_owned()))
    })
}
