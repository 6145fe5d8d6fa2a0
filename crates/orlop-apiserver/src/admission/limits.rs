//! `LimitRanger`: what containers, pods and claims may ask for in a namespace, and what they get if they do not ask.

use super::resources::{Resources, Side, View, containers, of_pod};
use super::{Attributes, Operation, refusal};
use crate::kind::Kind;
use crate::object;
use crate::server::Inner;
use crate::status::ApiError;
use orlop_schema::field::aggregate;
use orlop_schema::quantity::Quantity;
use serde_json::{Map, Value};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// Above this, thousandths of a value do not fit.
const MILLI_MAX: i64 = i64::MAX / 1000;

/// Gives containers the defaults of the namespace.
pub(super) fn mutate(server: &Inner, kind: &Kind, attributes: &mut Attributes) {
    if kind.plural != "pods" || !applies(kind, attributes) {
        return;
    }
    for range in ranges(server, &attributes.namespace) {
        set_defaults(&mut attributes.object, &range);
    }
}

/// Refuses what is outside of the ranges.
pub(super) fn validate(server: &Inner, kind: &Kind, attributes: &Attributes) -> Result<(), ApiError> {
    if !applies(kind, attributes) {
        return Ok(());
    }
    for range in ranges(server, &attributes.namespace) {
        let mut wrong = Vec::new();
        for limit in range["spec"]["limits"].as_array().into_iter().flatten() {
            check(limit, kind, &attributes.object, &mut wrong);
        }
        if !wrong.is_empty() {
            return Err(refusal::forbidden(kind, attributes, &aggregate(wrong)));
        }
    }
    Ok(())
}

/// Pods when they are made or resized, and claims.
fn applies(kind: &Kind, attributes: &Attributes) -> bool {
    let applies = match (kind.group.as_str(), kind.plural.as_str(), attributes.subresource.as_str()) {
        ("", "pods", "") => attributes.operation == Operation::Create,
        ("", "pods", "resize") => attributes.operation == Operation::Update,
        ("", "persistentvolumeclaims", "") => {
            matches!(attributes.operation, Operation::Create | Operation::Update)
        }
        _ => false,
    };
    applies && !object::is_deleting(&attributes.old)
}

fn ranges(server: &Inner, namespace: &str) -> Vec<Value> {
    let kind = Inner::built_in("", "v1", "limitranges");
    server.stored_within(&kind, namespace).iter().map(|stored| kind.read(stored)).collect()
}

fn set_defaults(pod: &mut Value, range: &Value) {
    let (mut requests, mut limits) = (Map::new(), Map::new());
    for limit in range["spec"]["limits"].as_array().into_iter().flatten() {
        if limit["type"] == "Container" {
            let of = |field: &str| limit[field].as_object().cloned().unwrap_or_default();
            requests.extend(of("defaultRequest"));
            limits.extend(of("default"));
        }
    }
    let mut notes = Vec::new();
    for (field, what) in [("containers", "container"), ("initContainers", "init container")] {
        for container in pod["spec"].get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            let name = object::text(container, "name").to_owned();
            for (side, defaults) in [("requests", &requests), ("limits", &limits)] {
                let set = fill(container, side, defaults);
                if !set.is_empty() {
                    let side = side.trim_end_matches('s');
                    notes.push(format!("{} {side} for {what} {name}", set.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        let mut annotations =
            object::at(pod, "metadata.annotations").and_then(Value::as_object).cloned().unwrap_or_default();
        annotations
            .insert(ANNOTATION.to_owned(), format!("LimitRanger plugin set: {}", notes.join("; ")).into());
        object::set_meta(pod, "annotations", Value::Object(annotations));
    }
}

/// Sets what is not set; gives the names of that.
fn fill(container: &mut Value, side: &str, defaults: &Map<String, Value>) -> Vec<String> {
    let mut amounts = container["resources"][side].as_object().cloned().unwrap_or_default();
    let mut set = Vec::new();
    for (name, amount) in defaults {
        if !amounts.contains_key(name) {
            amounts.insert(name.clone(), amount.clone());
            set.push(name.clone());
        }
    }
    if !set.is_empty() {
        object::set_at(container, &format!("resources.{side}"), Value::Object(amounts));
    }
    set
}

/// What is checked together: a container, a pod or a claim.
struct Asked<'a> {
    /// As messages call it.
    what: &'a str,
    requests: Resources,
    limits: Resources,
}

fn check(limit: &Value, kind: &Kind, object: &Value, wrong: &mut Vec<String>) {
    let side = |container: &Value, side: &str| Resources::read(&container["resources"][side]);
    let asked: Vec<Asked<'_>> = match (object::text(limit, "type"), kind.plural.as_str()) {
        ("Container", "pods") => ["containers", "initContainers"]
            .into_iter()
            .flat_map(|field| containers(object, field))
            .map(|container| Asked {
                what: "Container",
                requests: side(container, "requests"),
                limits: side(container, "limits"),
            })
            .collect(),
        ("Pod", "pods") => vec![Asked {
            what: "Pod",
            requests: of_pod(object, Side::Requests, View::Spec),
            limits: of_pod(object, Side::Limits, View::Spec),
        }],
        ("PersistentVolumeClaim", "persistentvolumeclaims") => {
            let requests = Resources::read(&object["spec"]["resources"]["requests"]);
            let claim = Asked { what: "PersistentVolumeClaim", requests, limits: Resources::default() };
            for (name, min) in Resources::read(&limit["min"]).0 {
                wrong.extend(claim.below(&name, &min));
            }
            for (name, max) in Resources::read(&limit["max"]).0 {
                wrong.extend(claim.above_request(&name, &max));
            }
            return;
        }
        _ => return,
    };
    for one in asked {
        for (name, min) in Resources::read(&limit["min"]).0 {
            wrong.extend(one.below(&name, &min));
        }
        for (name, max) in Resources::read(&limit["max"]).0 {
            wrong.extend(one.above(&name, &max));
        }
        for (name, ratio) in Resources::read(&limit["maxLimitRequestRatio"]).0 {
            wrong.extend(one.apart(&name, &ratio));
        }
    }
}

/// Amounts at a common precision: thousandths, unless one is too large for that.
fn comparable<const N: usize>(amounts: [Option<&Quantity>; N]) -> [i64; N] {
    let values = amounts.map(|amount| amount.map_or(0, Quantity::value));
    if values.iter().all(|value| *value <= MILLI_MAX) {
        amounts.map(|amount| amount.map_or(0, Quantity::milli_value))
    } else {
        values
    }
}

impl Asked<'_> {
    fn below(&self, name: &str, min: &Quantity) -> Option<String> {
        let (request, limit) = (self.requests.get(name), self.limits.get(name));
        let [asked, limited, least] = comparable([request, limit, Some(min)]);
        let start = format!("minimum {name} usage per {} is {min}", self.what);
        match (request, limit) {
            (None, _) => Some(format!("{start}.  No request is specified")),
            (Some(request), _) if asked < least => Some(format!("{start}, but request is {request}")),
            (_, Some(limit)) if limited < least => Some(format!("{start}, but limit is {limit}")),
            _ => None,
        }
    }

    fn above(&self, name: &str, max: &Quantity) -> Option<String> {
        let (request, limit) = (self.requests.get(name), self.limits.get(name));
        let [asked, limited, most] = comparable([request, limit, Some(max)]);
        let start = format!("maximum {name} usage per {} is {max}", self.what);
        match (limit, request) {
            (None, _) => Some(format!("{start}.  No limit is specified")),
            (Some(limit), _) if limited > most => Some(format!("{start}, but limit is {limit}")),
            (_, Some(request)) if asked > most => Some(format!("{start}, but request is {request}")),
            _ => None,
        }
    }

    fn above_request(&self, name: &str, max: &Quantity) -> Option<String> {
        let request = self.requests.get(name);
        let [asked, most] = comparable([request, Some(max)]);
        let start = format!("maximum {name} usage per {} is {max}", self.what);
        match request {
            None => Some(format!("{start}.  No request is specified")),
            Some(request) if asked > most => Some(format!("{start}, but request is {request}")),
            Some(_) => None,
        }
    }

    fn apart(&self, name: &str, ratio: &Quantity) -> Option<String> {
        let (request, limit) = (self.requests.get(name), self.limits.get(name));
        let [asked, limited, _] = comparable([request, limit, Some(ratio)]);
        let start = format!("{name} max limit to request ratio per {} is {ratio}", self.what);
        if asked == 0 {
            return Some(format!("{start}, but no request is specified or request is 0"));
        }
        if limited == 0 {
            return Some(format!("{start}, but no limit is specified or limit is 0"));
        }
        let found = limited as f64 / asked as f64;
        let exceeded = if ratio.value() <= MILLI_MAX {
            found * 1000.0 > ratio.milli_value() as f64
        } else {
            found > ratio.value() as f64
        };
        exceeded.then(|| format!("{start}, but provided ratio is {found:.6}"))
    }
}
