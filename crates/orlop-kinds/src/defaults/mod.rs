//! The defaults of the built-in kinds: a table of constants, a few rules, one walk along the types.
//!
//! A rule belongs to a Go type and runs wherever a value of that type stands; rules of the outer type run
//! first, as in Kubernetes. Values are expected as [`crate::codec::decode`] leaves them. The one default that
//! needs a clock, `timeAdded` of device taints, is set by [`crate::strategy`].

mod image;
mod pod;
mod rules;
mod table;

use crate::catalog::{Catalog, Shape, TypeId, catalog};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::OnceLock;

type Object = Map<String, Value>;
/// A default that depends on other fields.
type Rule = fn(&mut Object);

/// Fills in what Kubernetes fills in for an object of a type.
pub fn default_object(ty: TypeId, value: &mut Value) {
    let rules = rules();
    if rules.root_excluded(ty) {
        return;
    }
    rules.walk(ty, value);
}

/// A constant for a field below a type.
struct Constant {
    path: Vec<&'static str>,
    value: Value,
    /// Whether the field is a pointer in Go: then only its absence counts, otherwise its zero value too.
    pointer: bool,
}

#[derive(Default)]
struct TypeRules {
    constants: Vec<Constant>,
    computed: Vec<Rule>,
    /// The quantities of a resource list are rounded up to thousandths.
    rounds: bool,
}

/// The rules of each type, and which types lead to any rule at all.
struct Rules {
    catalog: &'static Catalog,
    by_type: BTreeMap<TypeId, TypeRules>,
    leads: Vec<bool>,
}

fn rules() -> &'static Rules {
    static RULES: OnceLock<Rules> = OnceLock::new();
    RULES.get_or_init(|| Rules::new(catalog()))
}

impl Rules {
    fn new(catalog: &'static Catalog) -> Self {
        let mut by_type: BTreeMap<TypeId, TypeRules> = BTreeMap::new();
        for (model, path, text) in table::CONSTANTS {
            let Some(ty) = named(catalog, model) else { continue };
            let path: Vec<&str> = path.split('.').collect();
            let pointer = target(catalog, ty, &path)
                .is_some_and(|field| matches!(catalog.get(field).shape, Shape::Pointer(_)));
            let value = serde_json::from_str(text).unwrap_or_default();
            by_type.entry(ty).or_default().constants.push(Constant { path, value, pointer });
        }
        for (model, rule) in rules::COMPUTED {
            if let Some(ty) = named(catalog, model) {
                by_type.entry(ty).or_default().computed.push(*rule);
            }
        }
        for (id, ty) in catalog.types() {
            if ty.go == "v1.ResourceList" {
                by_type.entry(id).or_default().rounds = true;
            }
        }
        let mut rules = Self { catalog, by_type, leads: Vec::new() };
        rules.leads = rules.leading();
        rules
    }

    /// Which types have rules or contain a type that has, found by repetition because types are recursive.
    fn leading(&self) -> Vec<bool> {
        let mut leads: Vec<bool> =
            self.catalog.types().map(|(id, _)| self.by_type.contains_key(&id)).collect();
        loop {
            let before = leads.clone();
            for (id, ty) in self.catalog.types() {
                let inner = match &ty.shape {
                    Shape::Struct(owner) => owner.fields.iter().any(|field| leads[field.ty.index()]),
                    Shape::Pointer(inner) | Shape::List(inner) | Shape::Map(inner) => leads[inner.index()],
                    _ => false,
                };
                leads[id.index()] |= inner;
            }
            if leads == before {
                return leads;
            }
        }
    }

    /// Kinds whose group has no defaults at all, although types of other groups occur in them.
    fn root_excluded(&self, ty: TypeId) -> bool {
        self.catalog.get(ty).model.starts_with("io.k8s.api.node.")
    }

    fn walk(&self, ty: TypeId, value: &mut Value) {
        if !self.leads[ty.index()] || value.is_null() {
            return;
        }
        if let (Some(rules), Value::Object(map)) = (self.by_type.get(&ty), &mut *value) {
            rules.apply(map);
        }
        match (&self.catalog.get(ty).shape, value) {
            (Shape::Pointer(inner), value) => self.walk(*inner, value),
            (Shape::Struct(owner), Value::Object(map)) => {
                for (name, child) in map {
                    if let Some(field) = owner.field(name) {
                        self.walk(field.ty, child);
                    }
                }
            }
            (Shape::List(inner), Value::Array(items)) => {
                for item in items {
                    self.walk(*inner, item);
                }
            }
            (Shape::Map(inner), Value::Object(map)) => {
                for child in map.values_mut() {
                    self.walk(*inner, child);
                }
            }
            _ => {}
        }
    }
}

impl TypeRules {
    fn apply(&self, map: &mut Object) {
        for constant in &self.constants {
            constant.apply(map);
        }
        for rule in &self.computed {
            rule(map);
        }
        if self.rounds {
            map.values_mut().for_each(pod::round_up_to_milli);
        }
    }
}

impl Constant {
    fn apply(&self, map: &mut Object) {
        let Some((last, parents)) = self.path.split_last() else { return };
        let mut owner = map;
        for parent in parents {
            match owner.get_mut(*parent) {
                Some(Value::Object(child)) => owner = child,
                _ => return,
            }
        }
        let unset = match owner.get(*last) {
            None | Some(Value::Null) => true,
            Some(value) => !self.pointer && is_zero(value),
        };
        if unset {
            owner.insert((*last).to_owned(), self.value.clone());
        }
    }
}

/// A type by its OpenAPI name; those of the main API go without their common prefix.
fn named(catalog: &Catalog, model: &str) -> Option<TypeId> {
    catalog.type_named(&format!("io.k8s.api.{model}")).or_else(|| catalog.type_named(model))
}

/// The type of the field at a path below a type.
fn target(catalog: &Catalog, ty: TypeId, path: &[&str]) -> Option<TypeId> {
    let mut ty = ty;
    for name in path {
        while let Shape::Pointer(inner) = catalog.get(ty).shape {
            ty = inner;
        }
        let Shape::Struct(owner) = &catalog.get(ty).shape else { return None };
        ty = owner.field(name)?.ty;
    }
    Some(ty)
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

#[cfg(test)]
mod tests;
