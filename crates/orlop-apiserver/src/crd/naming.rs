//! Which of the names a definition asks for it gets: those that no other definition of its group has.

use super::conditions::{self, Condition};
use crate::object;
use orlop_schema::field::{aggregate, go_quote};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Names that are taken in a group.
#[derive(Default)]
pub(super) struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    /// Notes the accepted names of a definition.
    pub(super) fn add(&mut self, definition: &Value) {
        let names = &definition["status"]["acceptedNames"];
        let name = |field: &str| object::text(names, field).to_owned();
        self.resources.extend(["plural", "singular"].map(name));
        self.kinds.extend(["kind", "listKind"].map(name));
        self.resources.extend(short_names(names).map(str::to_owned));
    }
}

fn short_names(names: &Value) -> impl Iterator<Item = &str> {
    names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// A definition with the names it can have; `None` if nothing changes.
pub(super) fn settle(definition: &Value, taken: &Taken, now: &str) -> Option<Value> {
    let (wanted, accepted) = (&definition["spec"]["names"], &definition["status"]["acceptedNames"]);
    if wanted == accepted {
        return None;
    }
    let mut names = accepted.clone();
    if !names.is_object() {
        names = json!({"plural": "", "kind": ""});
    }
    let mut fault: Option<(&'static str, String)> = None;
    let in_use = |name: &str| format!("{} is already in use", go_quote(name));
    for (field, reason, set) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let clashes: Vec<String> = if field == "shortNames" {
            let own: Vec<&str> = short_names(accepted).collect();
            short_names(wanted)
                .filter(|name| !own.contains(name) && set.contains(*name))
                .map(in_use)
                .collect()
        } else {
            let (wanted, own) = (object::text(wanted, field), object::text(accepted, field));
            (wanted != own && set.contains(wanted)).then(|| in_use(wanted)).into_iter().collect()
        };
        if clashes.is_empty() {
            copy(&mut names, wanted, field);
        } else {
            fault = Some((reason, aggregate(clashes)));
        }
    }
    copy(&mut names, wanted, "categories");
    let named = match fault {
        Some((reason, message)) => Condition::new("NamesAccepted", "False", reason, message),
        None => Condition::new("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
    };
    if names == *accepted && conditions::has(definition, &named) {
        return None;
    }
    let mut next = definition.clone();
    next["status"]["acceptedNames"] = names;
    conditions::set(&mut next, &named, now);
    if !conditions::is_true(&next, "Established") {
        if named.status == "True" {
            let message = "the initial names have been accepted";
            conditions::set(&mut next, &Condition::new("Established", "False", "Installing", message), now);
        } else if conditions::find(&next, "Established").is_none() {
            let message = "not all names are accepted";
            conditions::set(&mut next, &Condition::new("Established", "False", "NotAccepted", message), now);
        }
    }
    Some(next)
}

fn copy(names: &mut Value, wanted: &Value, field: &str) {
    object::copy_field(names, wanted, field);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(plural: &str, kind: &str) -> Value {
        json!({
            "spec": {"names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")}},
            "status": {"acceptedNames": {"plural": "", "kind": ""}, "conditions": null},
        })
    }

    #[test]
    fn the_first_definition_gets_its_names_and_a_second_only_those_left() {
        let mut taken = Taken::default();
        let first = settle(&definition("widgets", "Widget"), &taken, "t").unwrap();
        assert!(conditions::is_true(&first, "NamesAccepted"));
        assert_eq!(conditions::find(&first, "Established").unwrap()["reason"], "Installing");
        taken.add(&first);
        assert_eq!(settle(&first, &taken, "t"), None);
        let second = settle(&definition("others", "Widget"), &taken, "t").unwrap();
        assert_eq!(second["status"]["acceptedNames"], json!({"plural": "others", "kind": ""}));
        let named = conditions::find(&second, "NamesAccepted").unwrap();
        assert_eq!((&named["status"], &named["reason"]), (&json!("False"), &json!("ListKindConflict")));
        assert_eq!(named["message"], "\"WidgetList\" is already in use");
        taken.add(&second);
        assert_eq!(settle(&second, &taken, "u"), None);
    }
}
