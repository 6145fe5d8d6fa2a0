//! Addresses and ports of Services: handed out, kept unique, taken back.

use crate::object;
use crate::status::ApiError;
use orlop_schema::field::{FieldError, Path};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The service network; its first address belongs to the `kubernetes` Service.
const NETWORK: &str = "10.0.0.0/16";
/// The first address of the network; it is not handed out.
const NETWORK_START: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);
/// The last address of the network that is handed out, counted from the first; the one after it is for broadcasts.
const NETWORK_LAST: u32 = 65_534;
/// Node ports lie in this range.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;
/// A dry run shows a port that no Service can have.
const DRY_RUN_PORT: i64 = 32_769;
/// The protocols that a Service's port can have.
const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

/// A port on every node, with its protocol.
type NodePort = (i64, String);

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
    taken: Mutex<Taken>,
}

/// What was handed out for one write. It is given back unless the write is stored.
#[derive(Debug)]
#[must_use = "a claim that is dropped is given back"]
pub(crate) struct Claim {
    from: Arc<Addresses>,
    ips: Vec<Ipv4Addr>,
    ports: Vec<NodePort>,
}

impl Claim {
    /// The write is stored: what was handed out stays handed out.
    pub(crate) fn keep(mut self) {
        self.ips.clear();
        self.ports.clear();
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.ips.is_empty() && self.ports.is_empty() {
            return;
        }
        let mut taken = self.from.taken();
        for ip in &self.ips {
            taken.ips.remove(ip);
        }
        for port in &self.ports {
            taken.ports.remove(port);
        }
    }
}

impl Addresses {
    /// Completes a Service: what it had and left out, its families, its addresses, its ports.
    pub(crate) fn allocate(
        self: &Arc<Self>,
        service: &mut Value,
        allocation: Allocation<'_>,
    ) -> Result<Claim, ApiError> {
        if let Some(live) = allocation.live {
            keep_allocated(service, live);
        }
        normalize_cluster_ips(service, allocation.live);
        let mut claim = Claim { from: self.clone(), ips: Vec::new(), ports: Vec::new() };
        let needs_ip = needs_cluster_ip(service);
        if needs_ip {
            set_families(service, allocation.live);
        }
        // The guard must be gone before a refused claim gives back what it holds.
        let errors = {
            let mut taken = self.taken();
            let mut errors = Vec::new();
            if needs_ip && !allocation.live.is_some_and(needs_cluster_ip) {
                taken.allocate_ip(service, allocation.dry_run, &mut claim, &mut errors)?;
            }
            if needs_node_ports(service) {
                taken.allocate_ports(service, allocation, &mut claim, &mut errors)?;
            }
            if needs_health_check(service) {
                taken.allocate_health_check(service, allocation, &mut claim, &mut errors)?;
            }
            errors
        };
        if errors.is_empty() {
            Ok(claim)
        } else {
            Err(ApiError::invalid("", "Service", object::meta_str(service, "name"), &errors))
        }
    }

    /// Takes back what a Service had and has no more.
    pub(crate) fn release(&self, old: &Value, new: Option<&Value>) {
        let kept = new.map(Held::by).unwrap_or_default();
        let had = Held::by(old);
        let mut taken = self.taken();
        for ip in had.ips.difference(&kept.ips) {
            taken.ips.remove(ip);
        }
        for port in had.ports.difference(&kept.ports) {
            taken.ports.remove(port);
        }
    }

    /// Starts again with what these Services have.
    pub(crate) fn replace(&self, services: impl Iterator<Item = Value>) {
        let mut fresh = Taken::default();
        for service in services {
            let held = Held::by(&service);
            fresh.ips.extend(held.ips);
            fresh.ports.extend(held.ports);
        }
        *self.taken() = fresh;
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a stored Service has.
#[derive(Default)]
struct Held {
    ips: BTreeSet<Ipv4Addr>,
    ports: BTreeSet<NodePort>,
}

impl Held {
    fn by(service: &Value) -> Self {
        let ips = needs_cluster_ip(service).then(|| cluster_ips(service).collect());
        Self { ips: ips.unwrap_or_default(), ports: node_ports(service).collect() }
    }
}

/// All that is in use, by stored Services and by writes under way.
#[derive(Debug, Default)]
struct Taken {
    ips: BTreeSet<Ipv4Addr>,
    ports: BTreeSet<NodePort>,
    /// Where the search for a free address and a free port goes on, so that it need not begin at the start.
    last_ip: u32,
    last_port: i64,
}

impl Taken {
    fn allocate_ip(
        &mut self,
        service: &mut Value,
        dry_run: bool,
        claim: &mut Claim,
        errors: &mut Vec<FieldError>,
    ) -> Result<(), ApiError> {
        let wanted = text_at(service, "spec.clusterIP").to_owned();
        if wanted == "None" {
            return Ok(());
        }
        let ip = if wanted.is_empty() {
            self.free_ip().ok_or_else(|| {
                let name = object::meta_str(service, "name");
                full(&format!("failed to allocate a serviceIP for Service {name:?}"))
            })?
        } else {
            // What is no address is left to validation.
            let Ok(ip) = wanted.parse() else { return Ok(()) };
            if let Some(why) = self.refuse_ip(ip) {
                let path = Path::new("spec").child("clusterIPs");
                let detail = format!("failed to allocate IP {ip}: {why}");
                errors.push(FieldError::invalid(&path, &json!([wanted]), detail));
                return Ok(());
            }
            ip
        };
        if !dry_run {
            self.last_ip = u32::from(ip) - u32::from(NETWORK_START);
            self.ips.insert(ip);
            claim.ips.push(ip);
        }
        object::set_at(service, "spec.clusterIP", ip.to_string().into());
        if cluster_ip_list(service).is_empty() {
            object::set_at(service, "spec.clusterIPs", json!([ip.to_string()]));
        }
        Ok(())
    }

    fn free_ip(&self) -> Option<Ipv4Addr> {
        let after = (self.last_ip + 1..=NETWORK_LAST).chain(1..=self.last_ip.min(NETWORK_LAST));
        after.map(|n| Ipv4Addr::from(u32::from(NETWORK_START) + n)).find(|ip| !self.ips.contains(ip))
    }

    fn refuse_ip(&self, ip: Ipv4Addr) -> Option<String> {
        let place = u32::from(ip).wrapping_sub(u32::from(NETWORK_START));
        if !(1..=NETWORK_LAST).contains(&place) {
            return Some(format!(
                "the provided IP ({ip}) is not in the valid range. The range of valid IPs is {NETWORK}"
            ));
        }
        self.ips.contains(&ip).then(|| "provided IP is already allocated".to_owned())
    }

    fn allocate_ports(
        &mut self,
        service: &mut Value,
        Allocation { live, dry_run }: Allocation<'_>,
        claim: &mut Claim,
        errors: &mut Vec<FieldError>,
    ) -> Result<(), ApiError> {
        let before: BTreeSet<NodePort> = live.map(|live| node_ports(live).collect()).unwrap_or_default();
        let mut mine: BTreeSet<NodePort> = listed_ports(service).collect();
        let health = health_check_port(service);
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
            let free = |number: i64| {
                let port = (number, protocol.clone());
                !self.ports.contains(&port) && !mine.contains(&port) && number != health
            };
            let number = if dry_run { Some(DRY_RUN_PORT) } else { self.free_port(free) };
            let number = number.ok_or_else(|| full("failed to allocate a nodePort"))?;
            mine.insert((number, protocol));
            port["nodePort"] = number.into();
        }
        if errors.is_empty() && !dry_run {
            self.take_ports(mine, claim);
        }
        object::set_at(service, "spec.ports", Value::Array(ports));
        Ok(())
    }

    fn allocate_health_check(
        &mut self,
        service: &mut Value,
        Allocation { live, dry_run }: Allocation<'_>,
        claim: &mut Claim,
        errors: &mut Vec<FieldError>,
    ) -> Result<(), ApiError> {
        let given = health_check_port(service);
        let before = live.map(health_check_port).unwrap_or_default();
        if given == 0 {
            let free =
                |number: i64| PROTOCOLS.iter().all(|p| !self.ports.contains(&(number, (*p).to_owned())));
            let number = if dry_run { Some(DRY_RUN_PORT) } else { self.free_port(free) };
            let number = number.ok_or_else(|| full("failed to allocate a HealthCheck NodePort 0"))?;
            object::set_at(service, "spec.healthCheckNodePort", number.into());
        } else if given != before && !dry_run {
            let path = Path::new("spec").child("healthCheckNodePort");
            errors.extend(self.refuse_port(&path, given, "TCP"));
        }
        if errors.is_empty() && !dry_run {
            self.take_ports([(health_check_port(service), "TCP".to_owned())], claim);
        }
        Ok(())
    }

    fn take_ports(&mut self, ports: impl IntoIterator<Item = NodePort>, claim: &mut Claim) {
        for port in ports {
            if self.ports.insert(port.clone()) {
                self.last_port = port.0;
                claim.ports.push(port);
            }
        }
    }

    fn free_port(&self, free: impl Fn(i64) -> bool) -> Option<i64> {
        let (low, high) = (*NODE_PORTS.start(), *NODE_PORTS.end());
        let last = self.last_port.clamp(low - 1, high);
        (last + 1..=high).chain(low..=last).find(|number| free(*number))
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
}

/// 500, as the real server answers when nothing is left.
fn full(what: &str) -> ApiError {
    ApiError::internal(&format!("{what}: range is full"))
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

/// The node ports of a Service's ports.
fn listed_ports(service: &Value) -> impl Iterator<Item = NodePort> {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let numbers = ports
        .filter_map(|port| Some((port["nodePort"].as_i64()?, object::text(port, "protocol").to_owned())));
    numbers.filter(|(number, _)| *number > 0)
}

/// All ports on nodes that a Service has, that of its health check among them.
fn node_ports(service: &Value) -> impl Iterator<Item = NodePort> {
    let health = Some((health_check_port(service), "TCP".to_owned())).filter(|(number, _)| *number > 0);
    listed_ports(service).chain(health)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(spec: Value) -> Value {
        json!({"metadata": {"name": "s"}, "spec": spec})
    }

    fn claim(addresses: &Arc<Addresses>, spec: Value) -> Result<(Value, Claim), ApiError> {
        let mut service = service(spec);
        let claim = addresses.allocate(&mut service, Allocation { live: None, dry_run: false })?;
        Ok((service, claim))
    }

    fn create(addresses: &Arc<Addresses>, spec: Value) -> Result<Value, ApiError> {
        let (service, claim) = claim(addresses, spec)?;
        claim.keep();
        Ok(service)
    }

    #[test]
    fn addresses_are_unique_until_they_are_released() {
        let addresses = Arc::default();
        let a = create(&addresses, json!({"type": "ClusterIP"})).unwrap();
        let b = create(&addresses, json!({"type": "ClusterIP"})).unwrap();
        assert_ne!(a["spec"]["clusterIP"], b["spec"]["clusterIP"]);
        let again = || create(&addresses, json!({"type": "ClusterIP", "clusterIP": a["spec"]["clusterIP"]}));
        assert!(again().unwrap_err().message().ends_with("provided IP is already allocated"));
        addresses.release(&a, None);
        assert!(again().is_ok());
    }

    #[test]
    fn a_write_that_fails_gives_back_its_own_and_nothing_else() {
        let addresses = Arc::default();
        let ports = json!({"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP"}]});
        let (first, under_way) = claim(&addresses, ports.clone()).unwrap();
        let (_, refused) = claim(&addresses, ports.clone()).unwrap();
        drop(refused);
        let third = create(&addresses, ports).unwrap();
        assert_ne!(first["spec"]["clusterIP"], third["spec"]["clusterIP"]);
        assert_ne!(first["spec"]["ports"], third["spec"]["ports"]);
        under_way.keep();
        assert_eq!(addresses.taken().ips.len(), 2);
        assert_eq!(addresses.taken().ports.len(), 2);
    }

    #[test]
    fn a_change_of_type_takes_and_gives_back() {
        let addresses = Arc::default();
        let ports = json!([{"port": 80, "protocol": "TCP"}]);
        let live = create(&addresses, json!({"type": "NodePort", "ports": ports})).unwrap();
        assert!(NODE_PORTS.contains(&live["spec"]["ports"][0]["nodePort"].as_i64().unwrap()));
        let mut next = live.clone();
        next["spec"]["type"] = "ClusterIP".into();
        next["spec"]["ports"] = ports;
        let allocation = Allocation { live: Some(&live), dry_run: false };
        addresses.allocate(&mut next, allocation).unwrap().keep();
        assert_eq!(addresses.taken().ports.len(), 1, "the old port is taken until the change is stored");
        addresses.release(&live, Some(&next));
        assert!(addresses.taken().ports.is_empty());
        assert_eq!(next["spec"]["clusterIP"], live["spec"]["clusterIP"]);
        assert_eq!(addresses.taken().ips.len(), 1);
    }

    #[test]
    fn an_explicit_port_for_health_checks_is_taken_once() {
        let addresses = Arc::default();
        let spec = json!({
            "type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30_500,
            "ports": [{"port": 80, "protocol": "TCP"}],
        });
        let service = create(&addresses, spec.clone()).unwrap();
        assert_eq!(service["spec"]["healthCheckNodePort"], 30_500);
        assert!(create(&addresses, spec).is_err(), "it is taken");
        assert_eq!(addresses.taken().ports.len(), 2);
    }

    #[test]
    fn the_ends_of_the_network_are_not_handed_out() {
        let addresses = Arc::default();
        for (ip, is_given) in [
            ("10.0.0.0", false),
            ("10.0.0.1", true),
            ("10.0.255.254", true),
            ("10.0.255.255", false),
            ("11.0.0.1", false),
        ] {
            let created = create(&addresses, json!({"type": "ClusterIP", "clusterIP": ip}));
            assert_eq!(created.is_ok(), is_given, "{ip}");
        }
    }

    #[test]
    fn a_full_range_is_said() {
        let addresses: Arc<Addresses> = Arc::default();
        addresses.taken().ports.extend(NODE_PORTS.map(|number| (number, "TCP".to_owned())));
        let ports = json!({"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP"}]});
        let error = create(&addresses, ports).unwrap_err();
        assert_eq!(error.code(), 500);
        assert!(
            error.message().ends_with("failed to allocate a nodePort: range is full"),
            "{}",
            error.message()
        );
        assert!(addresses.taken().ips.is_empty(), "the address of the refused Service is free again");
    }

    #[test]
    fn a_dry_run_hands_out_nothing() {
        let addresses: Arc<Addresses> = Arc::default();
        let mut service = service(json!({"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP"}]}));
        addresses.allocate(&mut service, Allocation { live: None, dry_run: true }).unwrap().keep();
        assert_eq!(service["spec"]["ports"][0]["nodePort"], DRY_RUN_PORT);
        assert!(addresses.taken().ips.is_empty() && addresses.taken().ports.is_empty());
    }
}
