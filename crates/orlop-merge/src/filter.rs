//! Which fields a request may own: reset fields of main resources and subresources.

use crate::fieldset::{FieldSet, Node};
use crate::path::PathElement;

/// What to keep of the fields a request changed.
#[derive(Clone, Debug, Default)]
pub enum Filter {
    /// All of them.
    #[default]
    All,
    /// All but these and what is below them.
    Exclude(FieldSet),
    /// Only those below one of these patterns.
    Include(Vec<Pattern>),
}

/// A path prefix, in which a step may stand for any element.
#[derive(Clone, Debug)]
pub struct Pattern(pub Vec<Step>);

/// One step of a [`Pattern`].
#[derive(Clone, Debug)]
pub enum Step {
    /// Exactly this element.
    Element(PathElement),
    /// Any element.
    Any,
}

impl Filter {
    /// Keeps all but the fields below these paths of plain names.
    pub fn exclude(paths: &[&[&str]]) -> Self {
        Self::Exclude(FieldSet::of_fields(paths))
    }

    /// Keeps only what is below these paths, in which `*` is any element.
    pub fn include(patterns: &[&[&str]]) -> Self {
        let step = |name: &&str| match *name {
            "*" => Step::Any,
            name => Step::Element(PathElement::field(name)),
        };
        Self::Include(patterns.iter().map(|steps| Pattern(steps.iter().map(step).collect())).collect())
    }

    /// The part of `set` that the filter keeps.
    pub(crate) fn apply(&self, set: FieldSet) -> FieldSet {
        match self {
            Self::All => set,
            Self::Exclude(excluded) if excluded.is_empty() => set,
            Self::Exclude(excluded) => set.recursive_difference(excluded),
            Self::Include(patterns) => {
                let patterns: Vec<&[Step]> = patterns.iter().map(|pattern| pattern.0.as_slice()).collect();
                included(&set, &patterns)
            }
        }
    }
}

fn included(set: &FieldSet, patterns: &[&[Step]]) -> FieldSet {
    if patterns.iter().any(|pattern| pattern.is_empty()) {
        return set.clone();
    }
    let mut out = FieldSet::new();
    for node in &set.nodes {
        let matching: Vec<&[Step]> = patterns
            .iter()
            .filter_map(|pattern| pattern.split_first())
            .filter(|(step, _)| match step {
                Step::Any => true,
                Step::Element(element) => *element == node.element,
            })
            .map(|(_, rest)| rest)
            .collect();
        if !matching.is_empty() {
            // A parent of a pattern is kept as well as what the pattern names.
            out.add(Node {
                element: node.element.clone(),
                member: node.member,
                children: included(&node.children, &matching),
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_keep_subtrees() {
        let set = FieldSet::of_fields(&[&["spec"], &["spec", "a"], &["spec", "b", "c"], &["status", "x"]]);
        let cases = [
            (Filter::All, ".spec\n.spec.a\n.spec.b.c\n.status.x"),
            (Filter::exclude(&[&["status"]]), ".spec\n.spec.a\n.spec.b.c"),
            (Filter::include(&[&["spec", "b"]]), ".spec\n.spec.b.c"),
            (Filter::include(&[&["*", "x"]]), ".spec\n.status.x"),
        ];
        for (filter, want) in cases {
            assert_eq!(filter.apply(set.clone()).to_string(), want);
        }
    }
}
