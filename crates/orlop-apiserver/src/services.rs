//! Addresses and ports of Services: handed out, kept unique, taken back.

use crate::object;
use crate::status::ApiError;
use orlop_schema::field::{FieldError, Path};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The service network; its first address belongs to the `kubernetes` Service.
const NETWORK: &str = "10.0.0.0/16";
/// The first two bytes of all addresses in the network.
const NETWORK_PREFIX: [u8; 2] = [10, 0];
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
    /// Completes a Service: what it had and left out, its families, its addresses, its ports.
    pub(crate) fn allocate(
        &mut self,
        service: &mut Value,
        allocation: Allocation<'_>,
    ) -> Result<(), ApiError> {
        if let Some(live) = allocation.live {
            keep_allocated(service, live);
        }
        normalize_cluster_ips(service, allocation.live);
        let mut errors = Vec::new();
        let needs_ip = needs_cluster_ip(service);
        let had_ip = allocation.live.is_some_and(needs_cluster_ip);
        if needs_ip {
            set_families(service, allocation.live);
        }
        if needs_ip && !had_ip {
            self.allocate_ip(service, allocation.dry_run, &mut errors);
        }
        if needs_node_ports(service) {
            self.allocate_ports(service, allocation, &mut errors);
        }
        if needs_health_check(service) {
            self.allocate_health_check(service, allocation, &mut errors);
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid("", "Service", object::meta_str(service, "name"), &errors));
        }
        if let (Some(live), false) = (allocation.live, allocation.dry_run) {
            self.release_unused(live, service);
        }
        Ok(())
    }

    /// Takes back what a Service had.
    pub(crate) fn release(&mut self, service: &Value) {
        for ip in cluster_ips(service) {
            self.ips.remove(&ip);
        }
        for port in node_ports(service) {
            self.ports.remove(&port);
        }
    }

    /// Notes what a stored Service has.
    pub(crate) fn claim(&mut self, service: &Value) {
        self.ips.extend(cluster_ips(service));
        self.ports.extend(node_ports(service));
    }

    fn allocate_ip(&mut self, service: &mut Value, dry_run: bool, errors: &mut Vec<FieldError>) {
        let wanted = text_at(service, "spec.clusterIP").to_owned();
        if wanted == "None" {
            return;
        }
        let refused = |ip: Ipv4Addr, why: String| {
            let path = Path::new("spec").child("clusterIPs");
            FieldError::invalid(&path, &json!([wanted]), format!("failed to allocate IP {ip}: {why}"))
        };
        let ip = if wanted.is_empty() {
            let all = (1..u32::from(u16::MAX)).map(|n| Ipv4Addr::from(u32::from_be_bytes([10, 0, 0, 0]) + n));
            all.into_iter().find(|ip| !self.ips.contains(ip))
        } else {
            // What is no address is left to validation.
            wanted.parse().ok()
        };
        let Some(ip) = ip else { return };
        if ip.octets()[..2] != NETWORK_PREFIX {
            let why = format!(
                "the provided IP ({ip}) is not in the valid range. The range of valid IPs is {NETWORK}"
            );
            return errors.push(refused(ip, why));
        }
        if self.ips.contains(&ip) {
            return errors.push(refused(ip, "provided IP is already allocated".to_owned()));
        }
        if !dry_run {
            self.ips.insert(ip);
        }
        object::set_at(service, "spec.clusterIP", ip.to_string().into());
        if cluster_ip_list(service).is_empty() {
            object::set_at(service, "spec.clusterIPs", json!([ip.to_string()]));
        }
    }

    fn allocate_ports(
        &mut self,
        service: &mut Value,
        Allocation { live, dry_run }: Allocation<'_>,
        errors: &mut Vec<FieldError>,
    ) {
        let before: BTreeSet<(i64, String)> = live.map(|live| node_ports(live).collect()).unwrap_or_default();
        let mut mine: BTreeSet<(i64, String)> = node_ports(service).collect();
        let mut ports = service["spec"]["ports"].as_array().cloned().unwrap_or_default();
        for (n, port) in ports.iter_mut().enumerate() {
            let protocol = object::text(port, "protocol").to_owned();
            let given = port["nodePort"].as_i64().unwrap_or(0);
            if given != 0 {
                if !before.contains(&(given, protocol.clone())) && !dry_run {
                    let path = Path::new("spec").child("ports").index(n).child("nodePort");
                    errors.extend(self.refuse_port(&path, given, &protocol));
                }
                continue;
            }
            let free = |number: &i64| {
                let port = (*number, protocol.clone());
                !self.ports.contains(&port) && !mine.contains(&port)
            };
            let number = if dry_run { Some(DRY_RUN_PORT) } else { NODE_PORTS.clone().find(free) };
            if let Some(number) = number {
                mine.insert((number, protocol));
                port["nodePort"] = number.into();
            }
        }
        if errors.is_empty() && !dry_run {
            self.ports.extend(mine);
        }
        object::set_at(service, "spec.ports", Value::Array(ports));
    }

    fn allocate_health_check(
        &mut self,
        service: &mut Value,
        Allocation { live, dry_run }: Allocation<'_>,
        errors: &mut Vec<FieldError>,
    ) {
        let given = health_check_port(service);
        let before = live.map(health_check_port).unwrap_or_default();
        if given == 0 {
            let free = |number: &i64| !self.ports.iter().any(|(taken, _)| taken == number);
            let number = if dry_run { Some(DRY_RUN_PORT) } else { NODE_PORTS.clone().find(free) };
            if let Some(number) = number {
                object::set_at(service, "spec.healthCheckNodePort", number.into());
            }
        } else if given != before && !dry_run {
            let path = Path::new("spec").child("healthCheckNodePort");
            errors.extend(self.refuse_port(&path, given, "TCP"));
        }
        if errors.is_empty() && !dry_run {
            self.ports.insert((health_check_port(service), "TCP".to_owned()));
        }
    }

    fn refuse_port(&self, path: &Path, number: i64, protocol: &str) -> Option<FieldError> {
        if !NODE_PORTS.contains(&number) {
            let (low, high) = (NODE_PORTS.start(), NODE_PORTS.end());
            let why =
                format!("provided port is not in the valid range. The range of valid ports is {low}-{high}");
            return Some(FieldError::invalid(path, &json!(number), why));
        }
        let taken = self.ports.contains(&(number, protocol.to_owned()));
        taken.then(|| FieldError::invalid(path, &json!(number), "provided port is already allocated"))
    }

    /// Takes back what the changed Service has no more use for.
    fn release_unused(&mut self, live: &Value, service: &Value) {
        if !needs_cluster_ip(service) {
            for ip in cluster_ips(live) {
                self.ips.remove(&ip);
            }
        }
        let kept: BTreeSet<(i64, String)> =
            if needs_node_ports(service) { node_ports(service).collect() } else { BTreeSet::new() };
        for port in node_ports(live).filter(|port| !kept.contains(port)) {
            self.ports.remove(&port);
        }
    }
}

/// A writer that leaves out what was allocated keeps it.
fn keep_allocated(service: &mut Value, live: &Value) {
    if needs_cluster_ip(live) && needs_cluster_ip(service) {
        if text_at(service, "spec.clusterIP").is_empty() {
            object::set_at(service, "spec.clusterIP", live["spec"]["clusterIP"].clone());
        }
        if cluster_ip_list(service).is_empty() && !cluster_ip_list(live).is_empty() {
            object::set_at(service, "spec.clusterIPs", live["spec"]["clusterIPs"].clone());
        }
    }
    if needs_node_ports(live) && needs_node_ports(service) {
        let numbers =
            |service: &Value| -> BTreeSet<i64> { node_ports(service).map(|(number, _)| number).collect() };
        let used: BTreeSet<i64> = numbers(live).intersection(&numbers(service)).copied().collect();
        let live_ports = live["spec"]["ports"].as_array().cloned().unwrap_or_default();
        for port in service["spec"]["ports"].as_array_mut().into_iter().flatten() {
            let same_name = |other: &&Value| object::text(other, "name") == object::text(port, "name");
            let kept = live_ports
                .iter()
                .rev()
                .find(same_name)
                .and_then(|port| port["nodePort"].as_i64())
                .unwrap_or(0);
            if port["nodePort"].as_i64().unwrap_or(0) == 0 && kept != 0 && !used.contains(&kept) {
                port["nodePort"] = kept.into();
            }
        }
    }
    if needs_health_check(live) && needs_health_check(service) && health_check_port(service) == 0 {
        object::set_at(service, "spec.healthCheckNodePort", health_check_port(live).into());
    }
}

/// Keeps `clusterIP` and `clusterIPs` in step when a writer knows only the first.
fn normalize_cluster_ips(service: &mut Value, live: Option<&Value>) {
    let ip = text_at(service, "spec.clusterIP").to_owned();
    let Some(live) = live else {
        if !ip.is_empty() && cluster_ip_list(service).is_empty() {
            object::set_at(service, "spec.clusterIPs", json!([ip]));
        }
        return;
    };
    let before = text_at(live, "spec.clusterIP");
    if cluster_ip_list(service).is_empty() && !cluster_ip_list(live).is_empty() && ip == before {
        object::set_at(service, "spec.clusterIPs", live["spec"]["clusterIPs"].clone());
    }
    if ip != before && cluster_ip_list(service) == cluster_ip_list(live) {
        if ip.is_empty() {
            if let Some(spec) = service["spec"].as_object_mut() {
                spec.remove("clusterIPs");
            }
        } else {
            object::set_at(service, "spec.clusterIPs", json!([ip]));
        }
    }
}

/// Sets the policy and the families of addresses; this network has IPv4 only.
fn set_families(service: &mut Value, live: Option<&Value>) {
    let selector = service["spec"]["selector"].as_object();
    let is_open =
        text_at(service, "spec.clusterIP") == "None" && selector.is_none_or(serde_json::Map::is_empty);
    if service["spec"].get("ipFamilyPolicy").is_none() {
        let kept = live.and_then(|live| live["spec"].get("ipFamilyPolicy")).cloned();
        let policy = kept.unwrap_or_else(|| if is_open { "RequireDualStack" } else { "SingleStack" }.into());
        object::set_at(service, "spec.ipFamilyPolicy", policy);
    }
    let mut families = service["spec"]["ipFamilies"].as_array().cloned().unwrap_or_default();
    for ip in cluster_ip_list(service).iter().skip(families.len()).filter(|ip| *ip != "None") {
        families.push(if ip.contains(':') { "IPv6" } else { "IPv4" }.into());
    }
    if families.is_empty() {
        families.push("IPv4".into());
    }
    if is_open && families.len() < 2 && text_at(service, "spec.ipFamilyPolicy") != "SingleStack" {
        families.push(if families[0] == "IPv4" { "IPv6" } else { "IPv4" }.into());
    }
    object::set_at(service, "spec.ipFamilies", Value::Array(families));
}

fn needs_cluster_ip(service: &Value) -> bool {
    text_at(service, "spec.type") != "ExternalName"
}

fn needs_node_ports(service: &Value) -> bool {
    match text_at(service, "spec.type") {
        "NodePort" => true,
        "LoadBalancer" => service["spec"]["allocateLoadBalancerNodePorts"] != json!(false),
        _ => false,
    }
}

fn needs_health_check(service: &Value) -> bool {
    text_at(service, "spec.type") == "LoadBalancer"
        && text_at(service, "spec.externalTrafficPolicy") == "Local"
}

fn health_check_port(service: &Value) -> i64 {
    service["spec"]["healthCheckNodePort"].as_i64().unwrap_or(0)
}

fn text_at<'a>(object: &'a Value, path: &str) -> &'a str {
    object::at(object, path).and_then(Value::as_str).unwrap_or_default()
}

fn cluster_ip_list(service: &Value) -> Vec<String> {
    let all = service["spec"]["clusterIPs"].as_array().into_iter().flatten();
    all.filter_map(|ip| Some(ip.as_str()?.to_owned())).collect()
}

fn cluster_ips(service: &Value) -> impl Iterator<Item = Ipv4Addr> {
    cluster_ip_list(service).into_iter().filter_map(|ip| ip.parse().ok())
}

fn node_ports(service: &Value) -> impl Iterator<Item = (i64, String)> {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let numbers = ports
        .filter_map(|port| Some((port["nodePort"].as_i64()?, object::text(port, "protocol").to_owned())));
    let health = (health_check_port(service), "TCP".to_owned());
    numbers.chain([health]).filter(|(number, _)| *number > 0).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(spec: Value) -> Value {
        json!({"metadata": {"name": "s"}, "spec": spec})
    }

    fn create(addresses: &mut Addresses, spec: Value) -> Result<Value, ApiError> {
        let mut service = service(spec);
        addresses.allocate(&mut service, Allocation { live: None, dry_run: false })?;
        Ok(service)
    }

    #[test]
    fn addresses_are_unique_until_they_are_released() {
        let mut addresses = Addresses::default();
        let a = create(&mut addresses, json!({"type": "ClusterIP"})).unwrap();
        let b = create(&mut addresses, json!({"type": "ClusterIP"})).unwrap();
        assert_ne!(a["spec"]["clusterIP"], b["spec"]["clusterIP"]);
        let taken = create(&mut addresses, json!({"type": "ClusterIP", "clusterIP": a["spec"]["clusterIP"]}));
        assert!(taken.unwrap_err().message().ends_with("provided IP is already allocated"));
        addresses.release(&a);
        assert!(
            create(&mut addresses, json!({"type": "ClusterIP", "clusterIP": a["spec"]["clusterIP"]})).is_ok()
        );
    }

    #[test]
    fn a_change_of_type_takes_and_gives_back() {
        let mut addresses = Addresses::default();
        let ports = json!([{"port": 80, "protocol": "TCP"}]);
        let live = create(&mut addresses, json!({"type": "NodePort", "ports": ports})).unwrap();
        let number = live["spec"]["ports"][0]["nodePort"].as_i64().unwrap();
        assert!(NODE_PORTS.contains(&number));
        let mut next = live.clone();
        next["spec"]["type"] = "ClusterIP".into();
        addresses.allocate(&mut next, Allocation { live: Some(&live), dry_run: false }).unwrap();
        assert!(addresses.ports.is_empty());
        assert_eq!(next["spec"]["clusterIP"], live["spec"]["clusterIP"]);
    }

    #[test]
    fn a_dry_run_hands_out_nothing() {
        let mut addresses = Addresses::default();
        let mut service = service(json!({"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP"}]}));
        addresses.allocate(&mut service, Allocation { live: None, dry_run: true }).unwrap();
        assert_eq!(service["spec"]["ports"][0]["nodePort"], DRY_RUN_PORT);
        assert!(addresses.ips.is_empty() && addresses.ports.is_empty());
    }
}
