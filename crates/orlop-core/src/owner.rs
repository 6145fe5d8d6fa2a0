//! Owner references: who may own whom, and whose a child is.

use serde_json::{Value, json};

/// An owner as a child names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid: an owner of the same name that came later is another.
    pub uid: String,
}

/// Where objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In namespaces.
    Namespaced,
    /// In the cluster as a whole.
    Cluster,
}

/// A child that cannot have this owner.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// The garbage collector would delete such a child: it looks for the owner in the child's namespace.
    #[error(
        "{owner} in namespace `{owner_namespace}` cannot own {child} in namespace `{child_namespace}`: an owner is in \
         the namespace of its children, or in none"
    )]
    OtherNamespace {
        /// Kind and name of the owner.
        owner: String,
        /// Its namespace.
        owner_namespace: String,
        /// Kind and name of the child.
        child: String,
        /// Its namespace; empty if it has none.
        child_namespace: String,
    },
    /// The owner has not been stored yet.
    #[error("{owner} has no uid: only what is stored can own something")]
    NoUid {
        /// Kind and name of the owner.
        owner: String,
    },
}

/// Whose a child is, as far as one owner is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// It is the owner's.
    Own,
    /// Another controller has it.
    Foreign,
    /// It was of an owner with the same name that is gone.
    Stale,
    /// Nobody controls it.
    Free,
}

impl Owner {
    /// The owner that an object is.
    pub fn of(object: &Value) -> Self {
        let meta = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: text(&meta["namespace"]),
            name: text(&meta["name"]),
            uid: text(&meta["uid"]),
        }
    }

    /// The reference that a child it controls carries.
    pub fn reference(&self) -> Value {
        json!({
            "apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid,
            "controller": true, "blockOwnerDeletion": true,
        })
    }

    /// Makes a desired child this owner's: its namespace, if it has none and needs one, and the reference.
    pub fn claim(&self, child: &mut Value, scope: Scope) -> Result<(), OwnerError> {
        if self.uid.is_empty() {
            return Err(OwnerError::NoUid { owner: format!("{} `{}`", self.kind, self.name) });
        }
        let meta = &child["metadata"];
        let mut namespace = meta["namespace"].as_str().unwrap_or_default().to_owned();
        let is_namespaced = scope == Scope::Namespaced;
        if is_namespaced && namespace.is_empty() {
            namespace.clone_from(&self.namespace);
        }
        let reachable = self.namespace.is_empty() || is_namespaced && namespace == self.namespace;
        if !reachable {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            return Err(OwnerError::OtherNamespace {
                owner: format!("{} `{}`", self.kind, self.name),
                owner_namespace: self.namespace.clone(),
                child: format!("{} `{}`", text(&child["kind"]), text(&meta["name"])),
                child_namespace: namespace,
            });
        }
        if !child.is_object() {
            *child = json!({});
        }
        let meta = &mut child["metadata"];
        if is_namespaced {
            meta["namespace"] = namespace.into();
        }
        let mut references = meta["ownerReferences"].as_array().cloned().unwrap_or_default();
        references.retain(|reference| reference["uid"] != self.uid.as_str());
        references.push(self.reference());
        meta["ownerReferences"] = Value::Array(references);
        Ok(())
    }

    /// Whose an existing object is.
    pub fn ownership(&self, child: &Value) -> Ownership {
        let references = child["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let Some(controller) = references.into_iter().find(|reference| reference["controller"] == true)
        else {
            return Ownership::Free;
        };
        if controller["uid"] == self.uid.as_str() {
            return Ownership::Own;
        }
        let group =
            |api_version: &str| api_version.rsplit_once('/').map_or("", |(group, _)| group).to_owned();
        let same = controller["kind"] == self.kind.as_str()
            && controller["name"] == self.name.as_str()
            && group(controller["apiVersion"].as_str().unwrap_or_default()) == group(&self.api_version);
        if same { Ownership::Stale } else { Ownership::Foreign }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(namespace: &str) -> Owner {
        let mut object =
            json!({"apiVersion": "example.com/v1", "kind": "Shell", "metadata": {"name": "s", "uid": "u"}});
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = namespace.into();
        }
        Owner::of(&object)
    }

    fn child(namespace: &str) -> Value {
        let mut child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
        if !namespace.is_empty() {
            child["metadata"]["namespace"] = namespace.into();
        }
        child
    }

    #[test]
    fn owners_reach_their_own_namespace_or_all() {
        for (owner_namespace, child_namespace, scope, result) in [
            ("a", "", Scope::Namespaced, Ok("a")),
            ("a", "a", Scope::Namespaced, Ok("a")),
            ("a", "b", Scope::Namespaced, Err(())),
            ("a", "", Scope::Cluster, Err(())),
            ("", "b", Scope::Namespaced, Ok("b")),
            ("", "", Scope::Cluster, Ok("")),
        ] {
            let mut made = child(child_namespace);
            let claimed = owner(owner_namespace).claim(&mut made, scope);
            let found =
                claimed.map(|()| made["metadata"]["namespace"].as_str().unwrap_or_default()).map_err(|_| ());
            assert_eq!(found, result, "{owner_namespace:?} {child_namespace:?} {scope:?}");
        }
        let mut unsaved = owner("a");
        unsaved.uid.clear();
        let refused =
            unsaved.claim(&mut child("a"), Scope::Namespaced).expect_err("it has no uid").to_string();
        assert_eq!(refused, "Shell `s` has no uid: only what is stored can own something");
    }

    #[test]
    fn a_claim_is_made_once_and_keeps_other_owners() {
        let mut made = child("a");
        made["metadata"]["ownerReferences"] = json!([{"uid": "other", "kind": "Node", "name": "n"}]);
        for _ in 0..2 {
            owner("a").claim(&mut made, Scope::Namespaced).expect("the same namespace");
        }
        let references = made["metadata"]["ownerReferences"].as_array().expect("a list");
        assert_eq!(references.len(), 2);
        assert_eq!(references[1], owner("a").reference());
        assert_eq!(owner("a").ownership(&made), Ownership::Own);
    }

    #[test]
    fn whose_a_child_is() {
        let of = |reference: Value| json!({"metadata": {"ownerReferences": [reference]}});
        let me = owner("a");
        assert_eq!(me.ownership(&json!({})), Ownership::Free);
        let named = json!({"apiVersion": "example.com/v2", "kind": "Shell", "name": "s", "uid": "old", "controller": true});
        assert_eq!(me.ownership(&of(named)), Ownership::Stale);
        let other = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true});
        assert_eq!(me.ownership(&of(other)), Ownership::Foreign);
        let loose = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r"});
        assert_eq!(me.ownership(&of(loose)), Ownership::Free);
    }
}
