//! The function table of the CRD environment of Kubernetes 1.36: names, overloads and signatures, read from one text.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use crate::types::{Type, split_args};

/// One signature of a function.
#[derive(Debug)]
pub(crate) struct Overload {
    /// Its identifier, by which costs are kept.
    pub(crate) id: &'static str,
    /// Called as `target.function(…)`.
    pub(crate) member: bool,
    /// Argument types, the target first.
    pub(crate) args: Vec<Type>,
    /// What it gives.
    pub(crate) result: Type,
    /// Its type variables.
    pub(crate) variables: BTreeSet<Arc<str>>,
}

/// Overloads by function name; each line of the text is `name overload [target.](arguments) result`.
pub(crate) static FUNCTIONS: LazyLock<BTreeMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut table: BTreeMap<&'static str, Vec<Overload>> = BTreeMap::new();
    for line in include_str!("functions.txt").lines() {
        if let Some((name, overload)) = read(line) {
            table.entry(name).or_default().push(overload);
        }
    }
    table
});

fn read(line: &'static str) -> Option<(&'static str, Overload)> {
    let (name, rest) = line.split_once(' ')?;
    let (id, signature) = rest.split_once(' ')?;
    let (target, rest) = signature.split_once('(')?;
    let (args, result) = rest.split_once(')')?;
    let target = target.strip_suffix('.');
    let args: Vec<Type> = target.into_iter().chain(split_args(args)).map(Type::read).collect();
    let mut variables = BTreeSet::new();
    args.iter().for_each(|arg| collect(arg, &mut variables));
    let result = Type::read(result.trim());
    collect(&result, &mut variables);
    Some((name, Overload { id, member: target.is_some(), args, result, variables }))
}

fn collect(ty: &Type, into: &mut BTreeSet<Arc<str>>) {
    match ty {
        Type::Param(name) => {
            into.insert(name.clone());
        }
        Type::List(item) => collect(item, into),
        Type::Map(key, value) => {
            collect(key, into);
            collect(value, into);
        }
        Type::Opaque(_, params) => params.iter().for_each(|p| collect(p, into)),
        Type::Meta(Some(of)) => collect(of, into),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = include_str!("functions.txt").lines().count();
        assert_eq!(FUNCTIONS.values().map(Vec::len).sum::<usize>(), lines);
    }
}
