//! Amounts of resources by name, as limit ranges and quotas add, compare and print them; and what a pod takes.

use crate::object;
use orlop_schema::quantity::Quantity;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Amounts by resource name.
#[derive(Clone, Debug, Default)]
pub(super) struct Resources(pub(super) BTreeMap<String, Quantity>);

impl Resources {
    /// Reads a resource list; what is no quantity is left out.
    pub(super) fn read(list: &Value) -> Self {
        let read = |(name, value): (&String, &Value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Some((name.clone(), Quantity::parse(&text).ok()?))
        };
        Self(list.as_object().into_iter().flatten().filter_map(read).collect())
    }

    /// As it stands in objects.
    pub(super) fn to_json(&self) -> Value {
        let write = |(name, amount): (&String, &Quantity)| (name.clone(), Value::from(amount.to_string()));
        Value::Object(self.0.iter().map(write).collect::<Map<_, _>>())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Quantity> {
        self.0.get(name)
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    pub(super) fn set(&mut self, name: impl Into<String>, amount: Quantity) {
        self.0.insert(name.into(), amount);
    }

    /// Adds all amounts of another list.
    pub(super) fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self.0.get(name).map_or_else(|| amount.clone(), |mine| mine.plus(amount));
            self.0.insert(name.clone(), sum);
        }
    }

    /// Takes the greater amount of each.
    pub(super) fn raise(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            if self.0.get(name).is_none_or(|mine| exceeds(amount, mine)) {
                self.0.insert(name.clone(), amount.clone());
            }
        }
    }

    /// Only the named ones.
    pub(super) fn masked(&self, names: &[&str]) -> Self {
        let kept = self.0.iter().filter(|(name, _)| names.contains(&name.as_str()));
        Self(kept.map(|(name, amount)| (name.clone(), amount.clone())).collect())
    }

    /// What is more here than in another list.
    pub(super) fn beyond(&self, other: &Self) -> Self {
        let rest = |(name, amount): (&String, &Quantity)| {
            let rest = other.get(name).map_or_else(|| amount.clone(), |less| amount.minus(less));
            (rest.sign() > 0).then(|| (name.clone(), rest))
        };
        Self(self.0.iter().filter_map(rest).collect())
    }

    /// Without what is nothing.
    pub(super) fn without_zeros(&self) -> Self {
        let kept = self.0.iter().filter(|(_, amount)| !amount.is_zero());
        Self(kept.map(|(name, amount)| (name.clone(), amount.clone())).collect())
    }

    /// Names of which there is more here than another list allows.
    pub(super) fn exceeding(&self, limits: &Self) -> Vec<&str> {
        let over = self
            .0
            .iter()
            .filter(|(name, amount)| limits.get(name).is_some_and(|limit| exceeds(amount, limit)));
        over.map(|(name, _)| name.as_str()).collect()
    }

    /// `cpu=1,pods=2`.
    pub(super) fn print(&self) -> String {
        let parts: Vec<String> = self.0.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        parts.join(",")
    }

    /// Whether both have the same amounts.
    pub(super) fn equals(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .all(|(name, amount)| other.get(name).is_some_and(|theirs| amount.minus(theirs).is_zero()))
    }
}

/// Whether one amount is greater than another.
pub(super) fn exceeds(amount: &Quantity, limit: &Quantity) -> bool {
    amount.minus(limit).sign() > 0
}

/// Which of a container's amounts are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Requests,
    Limits,
}

impl Side {
    fn field(self) -> &'static str {
        match self {
            Side::Requests => "requests",
            Side::Limits => "limits",
        }
    }
}

/// Whose amounts of a pod count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// What the spec says, for limit ranges.
    Spec,
    /// What the pod takes, with its overhead and while it is resized, for quotas.
    Taken,
}

/// Containers of a pod.
pub(super) fn containers<'a>(pod: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    pod["spec"][field].as_array().into_iter().flatten()
}

/// What a pod as a whole asks for: its containers together, but at least what its initialisation needs.
pub(super) fn of_pod(pod: &Value, side: Side, view: View) -> Resources {
    let mut total = Resources::default();
    for container in containers(pod, "containers") {
        total.add(&of_container(pod, container, side, view));
    }
    let (mut sidecars, mut starting) = (Resources::default(), Resources::default());
    for container in containers(pod, "initContainers") {
        let needs = if object::text(container, "restartPolicy") == "Always" {
            let own = of_container(pod, container, side, view);
            total.add(&own);
            sidecars.add(&own);
            sidecars.clone()
        } else {
            let mut own = Resources::read(&container["resources"][side.field()]);
            own.add(&sidecars);
            own
        };
        starting.raise(&needs);
    }
    total.raise(&starting);
    for (name, amount) in Resources::read(&pod["spec"]["resources"][side.field()]).0 {
        if is_pod_level(&name, view) {
            total.set(name, amount);
        }
    }
    if view == View::Taken {
        for (name, amount) in Resources::read(&pod["spec"]["overhead"]).0 {
            match (total.get(&name), side) {
                (Some(known), _) => total.set(name, known.plus(&amount)),
                (None, Side::Requests) => total.set(name, amount),
                (None, Side::Limits) => {}
            }
        }
    }
    total
}

/// Whether a resource can be given to a pod as a whole.
pub(super) fn is_pod_level(name: &str, view: View) -> bool {
    matches!(name, "cpu" | "memory") || view == View::Taken && name.starts_with("hugepages-")
}

fn of_container(pod: &Value, container: &Value, side: Side, view: View) -> Resources {
    let wanted = Resources::read(&container["resources"][side.field()]);
    let status = ["containerStatuses", "initContainerStatuses"]
        .into_iter()
        .flat_map(|field| pod["status"][field].as_array().into_iter().flatten())
        .find(|status| status["name"] == container["name"]);
    let Some(status) = status.filter(|status| view == View::Taken && status["resources"].is_object()) else {
        return wanted;
    };
    let infeasible = pod["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "PodResizePending" && condition["reason"] == "Infeasible");
    let mut taken = if infeasible { Resources::default() } else { wanted };
    taken.raise(&Resources::read(&status["resources"][side.field()]));
    if side == Side::Requests {
        taken.raise(&Resources::read(&status["allocatedResources"]));
    }
    taken
}
