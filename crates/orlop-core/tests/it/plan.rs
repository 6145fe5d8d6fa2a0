//! Plans against a cluster that does what it is told.

use orlop_core::desired::{Child, Desired};
use orlop_core::owner::Owner;
use orlop_core::plan::{
    Controller, INTENT_ANNOTATION, Key, Memory, Observed, Plan, PlanError, Step, TRACKING_LABEL, Why,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn controller() -> Controller {
    Controller::new("shells", "shell")
}

fn owner() -> Owner {
    Owner::of(&json!({
        "apiVersion": "example.com/v1", "kind": "Shell", "metadata": {"name": "s", "namespace": "a", "uid": "owner"},
    }))
}

fn config(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}

/// Objects by key, as a server has them.
#[derive(Clone, Default)]
struct Cluster {
    objects: BTreeMap<Key, Observed>,
    uids: u32,
}

impl Cluster {
    fn plan(&self, desired: &Desired) -> Result<Plan, PlanError> {
        let observed: Vec<Observed> = self.objects.values().cloned().collect();
        Plan::make(&controller(), &owner(), desired, &observed)
    }

    fn carry_out(&mut self, plan: &Plan) {
        for step in &plan.steps {
            match step {
                Step::Apply { intent, .. } => self.apply(intent),
                Step::Recreate { intent, uid } => {
                    self.objects.retain(|_, object| object.object["metadata"]["uid"] != uid.as_str());
                    self.apply(intent);
                }
                Step::Prune { key, uid } => {
                    let gone = self.objects.remove(key).expect("it is there");
                    assert_eq!(gone.object["metadata"]["uid"], uid.as_str());
                }
                Step::Keep(_) | Step::Wait { .. } => {}
            }
        }
    }

    /// Stores an object; the server writes one value in its own way.
    fn apply(&mut self, intent: &Value) {
        self.uids += 1;
        let mut object = intent.clone();
        object["metadata"]["uid"] = format!("uid-{}", self.uids).into();
        let mut applied = json!({"metadata": intent["metadata"], "data": intent["data"]});
        if applied["data"]["key"] == "1000m" {
            applied["data"]["key"] = "1".into();
        }
        for field in ["name", "namespace"] {
            applied["metadata"].as_object_mut().expect("metadata").remove(field);
        }
        let memory = Memory::confirmed(intent, &applied);
        self.objects.insert(Key::of(intent), Observed { object, applied: Some(applied), memory });
    }

    fn insert(&mut self, object: Value) {
        let memory = Memory::default();
        self.objects.insert(Key::of(&object), Observed { object, applied: None, memory });
    }
}

fn desired(values: &BTreeMap<u8, u8>) -> Desired {
    let texts = ["a", "b", "1000m"];
    let child = |(name, value): (&u8, &u8)| config(&format!("c{name}"), texts[usize::from(*value)]);
    if values.is_empty() {
        Desired::none()
    } else {
        values.iter().map(child).fold(Desired::new(), Desired::own)
    }
}

proptest! {
    #[test]
    fn a_plan_that_was_carried_out_leaves_nothing_to_do(
        states in proptest::collection::vec(proptest::collection::btree_map(0..5_u8, 0..3_u8, 0..5), 1..6),
        forgets in any::<bool>(),
    ) {
        let mut cluster = Cluster::default();
        cluster.insert({
            let mut foreign = config("foreign", "x");
            foreign["metadata"]["namespace"] = "a".into();
            foreign
        });
        for values in &states {
            let desired = desired(values);
            cluster.carry_out(&cluster.plan(&desired).expect("it makes sense"));
            prop_assert!(cluster.plan(&desired).expect("it makes sense").is_converged());
            prop_assert_eq!(cluster.objects.len(), values.len() + 1, "the foreign object stays");
            if forgets {
                // After a restart: at most what the server writes differently is written once more.
                for object in cluster.objects.values_mut() {
                    object.memory = Memory::default();
                }
                let plan = cluster.plan(&desired).expect("it makes sense");
                let writes = plan.steps.iter().filter(|step| !matches!(step, Step::Keep(_))).count();
                prop_assert_eq!(writes, values.values().filter(|value| **value == 2).count());
                cluster.carry_out(&plan);
            }
        }
    }
}

#[test]
fn owned_objects_say_whose_they_are() {
    let plan = Cluster::default().plan(&Desired::new().own(config("c", "a"))).expect("it makes sense");
    let [Step::Apply { intent, why: Why::Missing }] = &plan.steps[..] else { panic!("{plan}") };
    let meta = &intent["metadata"];
    assert_eq!((&meta["namespace"], &meta["labels"][TRACKING_LABEL]), (&json!("a"), &json!("shells.shell")));
    assert_eq!(meta["ownerReferences"][0]["uid"], "owner");
    assert_eq!(meta["annotations"][INTENT_ANNOTATION].as_str().map(str::len), Some(16));
    assert_eq!(controller().field_manager(), "shells/shell");
    assert_eq!(plan.to_string(), "apply    ConfigMap a/c (missing)\n");
}

#[test]
fn an_empty_desire_needs_to_be_meant() {
    let mut cluster = Cluster::default();
    assert!(cluster.plan(&Desired::new()).expect("there is nothing").is_converged());
    cluster.carry_out(&cluster.plan(&Desired::new().own(config("c", "a"))).expect("it makes sense"));
    let refused = cluster.plan(&Desired::new()).expect_err("it may be an accident");
    assert_eq!(
        refused.to_string(),
        "no child is desired and 1 exist; if they shall go, say `Desired::none()`"
    );
    for meant in [Desired::none(), Desired::new().own_if(false, || config("c", "a").into())] {
        let plan = cluster.plan(&meant).expect("it is meant");
        assert_eq!(plan.to_string(), "prune    ConfigMap a/c\n");
    }
}

#[test]
fn nothing_foreign_is_taken() {
    let mut taken = config("c", "theirs");
    taken["metadata"]["namespace"] = "a".into();
    let mut cluster = Cluster::default();
    cluster.insert(taken.clone());
    let wants = |child: Child| Desired::new().own(child).own(config("d", "a"));
    let plan = cluster.plan(&wants(config("c", "a").into())).expect("it makes sense");
    let shown = "apply    ConfigMap a/d (missing)\nrefuse   ConfigMap a/c exists and belongs to nobody; adopt it, or choose another name\n";
    assert_eq!(plan.to_string(), shown, "the other child is not held up");
    let adopting = cluster.plan(&wants(Child::new(config("c", "a")).adopt())).expect("it makes sense");
    assert!(adopting.to_string().starts_with("apply    ConfigMap a/c (adopted)\n"), "{adopting}");
    taken["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "other", "controller": true,
    }]);
    cluster.insert(taken);
    let plan = cluster.plan(&wants(Child::new(config("c", "a")).adopt())).expect("it makes sense");
    assert_eq!(plan.refusals[0].to_string(), "ConfigMap a/c belongs to Deployment web");
}

#[test]
fn drift_is_found_and_other_fields_are_not() {
    let mut cluster = Cluster::default();
    let wants = Desired::new().own(config("c", "a"));
    cluster.carry_out(&cluster.plan(&wants).expect("it makes sense"));
    let key = cluster.objects.keys().next().expect("it is there").clone();
    let mut other = cluster.clone();
    let child = other.objects.get_mut(&key).expect("it is there");
    child.object["data"]["more"] = "somebody else's".into();
    assert!(other.plan(&wants).expect("it makes sense").is_converged());
    let child = cluster.objects.get_mut(&key).expect("it is there");
    child.applied.as_mut().expect("it was applied")["data"]["key"] = "edited".into();
    let plan = cluster.plan(&wants).expect("it makes sense");
    assert_eq!(plan.to_string(), "apply    ConfigMap a/c (drifted)\n");
}

#[test]
fn children_wait_for_their_turn_and_still_count() {
    let mut cluster = Cluster::default();
    let wants = |ready| {
        Desired::new()
            .own(config("first", "a"))
            .own(Child::new(config("second", "a")).after(ready, "the first"))
    };
    let plan = cluster.plan(&wants(false)).expect("it makes sense");
    assert_eq!(
        plan.to_string(),
        "apply    ConfigMap a/first (missing)\nwait     ConfigMap a/second (for the first)\n"
    );
    cluster.carry_out(&cluster.plan(&wants(true)).expect("it makes sense"));
    let plan = cluster.plan(&wants(false)).expect("it makes sense");
    assert_eq!(plan.to_string(), "keep     ConfigMap a/first\nwait     ConfigMap a/second (for the first)\n");
}

#[test]
fn what_is_being_deleted_is_waited_for() {
    let mut cluster = Cluster::default();
    let wants = Desired::new().own(config("c", "a"));
    cluster.carry_out(&cluster.plan(&wants).expect("it makes sense"));
    for object in cluster.objects.values_mut() {
        object.object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    let plan = cluster.plan(&wants).expect("it makes sense");
    assert_eq!(plan.to_string(), "wait     ConfigMap a/c (for its deletion to finish)\n");
    assert!(cluster.plan(&Desired::none()).expect("it is meant").steps.is_empty(), "it goes already");
}

#[test]
fn an_immutable_field_is_changed_by_making_the_object_anew() {
    let mut cluster = Cluster::default();
    cluster.carry_out(&cluster.plan(&Desired::new().own(config("c", "a"))).expect("it makes sense"));
    let wants = Desired::new().own(Child::new(config("c", "b")).recreate());
    let plan = cluster.plan(&wants).expect("it makes sense");
    let [Step::Apply { intent, why: Why::Changed }] = &plan.steps[..] else { panic!("{plan}") };
    let refused = intent["metadata"]["annotations"][INTENT_ANNOTATION].as_str().map(str::to_owned);
    for object in cluster.objects.values_mut() {
        object.memory = Memory { immutable: refused.clone(), ..Memory::default() };
    }
    let plan = cluster.plan(&wants).expect("it makes sense");
    assert_eq!(plan.to_string(), "recreate ConfigMap a/c\n");
    cluster.carry_out(&plan);
    assert!(cluster.plan(&wants).expect("it makes sense").is_converged());
}

#[test]
fn nonsense_is_refused_before_anything_is_planned() {
    let cluster = Cluster::default();
    let twice = Desired::new().own(config("c", "a")).own(config("c", "b"));
    assert_eq!(
        cluster.plan(&twice).expect_err("it is there twice").to_string(),
        "ConfigMap a/c is desired twice"
    );
    let nameless = Desired::new().own(config("c", "a")).own(json!({"kind": "ConfigMap"}));
    let refused = cluster.plan(&nameless).expect_err("it has no name").to_string();
    assert_eq!(refused, "a child needs apiVersion, kind and metadata.name, and child 2 has not");
}
