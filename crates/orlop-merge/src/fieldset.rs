//! Sets of field paths and their algebra.

use std::cmp::Ordering;
use std::fmt;

use crate::path::{Path, PathElement};

/// A set of paths, kept as a sorted tree.
///
/// A path in the set does not put its parents into the set, nor its children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element; each node is a member or has members below, never neither.
    pub(crate) nodes: Vec<Node>,
}

/// One element of one level of a [`FieldSet`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) element: PathElement,
    /// Whether the path that ends here is in the set.
    pub(crate) member: bool,
    pub(crate) children: FieldSet,
}

impl FieldSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// The set of these paths of plain field names.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        paths.iter().map(|names| Path::fields(names)).collect()
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of paths in the set.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.children.len()).sum()
    }

    /// Adds a path; the empty path names the whole object, which nobody owns, and is ignored.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let index = match self.find(first) {
            Ok(index) => index,
            Err(index) => {
                self.nodes.insert(index, Node::new(first.clone()));
                index
            }
        };
        if rest.is_empty() {
            self.nodes[index].member = true;
        } else {
            self.nodes[index].children.insert(rest);
        }
    }

    /// Whether the path is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        self.get(first)
            .is_some_and(|node| if rest.is_empty() { node.member } else { node.children.contains(rest) })
    }

    /// The paths below `element`, without it.
    pub fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.get(element).map(|node| &node.children).filter(|children| !children.is_empty())
    }

    /// All paths in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if self.is_empty() || other.is_empty() {
            return if self.is_empty() { other.clone() } else { self.clone() };
        }
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        self.zip(other, |pair| match pair {
            Pair::Left(node) | Pair::Right(node) => nodes.push(node.clone()),
            Pair::Both(left, right) => nodes.push(Node {
                element: left.element.clone(),
                member: left.member || right.member,
                children: left.children.union(&right.children),
            }),
        });
        Self { nodes }
    }

    /// The paths in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut nodes = Vec::new();
        self.zip(other, |pair| {
            if let Pair::Both(left, right) = pair {
                push(
                    &mut nodes,
                    left,
                    left.member && right.member,
                    left.children.intersection(&right.children),
                );
            }
        });
        Self { nodes }
    }

    /// The paths of this set that are not in the other; a path in the other does not remove what is below it.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        let mut nodes = Vec::with_capacity(self.nodes.len());
        self.zip(other, |pair| match pair {
            Pair::Left(node) => nodes.push(node.clone()),
            Pair::Both(left, right) => {
                push(
                    &mut nodes,
                    left,
                    left.member && !right.member,
                    left.children.difference(&right.children),
                );
            }
            Pair::Right(_) => {}
        });
        Self { nodes }
    }

    /// As [`difference`](Self::difference), but a path in the other removes everything below it too.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        let mut nodes = Vec::with_capacity(self.nodes.len());
        self.zip(other, |pair| match pair {
            Pair::Left(node) => nodes.push(node.clone()),
            Pair::Both(left, right) if !right.member => {
                push(&mut nodes, left, left.member, left.children.recursive_difference(&right.children));
            }
            _ => {}
        });
        Self { nodes }
    }

    /// Whether every path of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        let mut subset = true;
        self.zip(other, |pair| match pair {
            Pair::Left(_) => subset = false,
            Pair::Both(left, right) => {
                subset &= (!left.member || right.member) && left.children.is_subset(&right.children);
            }
            Pair::Right(_) => {}
        });
        subset
    }

    /// All paths: those that end at a level before those that go deeper.
    pub fn paths(&self) -> Vec<Path> {
        let mut out = Vec::with_capacity(self.len());
        self.collect_paths(&mut Vec::new(), &mut out);
        out
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Path>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            out.push(Path(path));
        }
        for node in &self.nodes {
            prefix.push(node.element.clone());
            node.children.collect_paths(prefix, out);
            prefix.pop();
        }
    }

    pub(crate) fn get(&self, element: &PathElement) -> Option<&Node> {
        self.find(element).ok().map(|index| &self.nodes[index])
    }

    /// The node of a field, without building its element.
    pub(crate) fn get_field(&self, name: &str) -> Option<&Node> {
        self.nodes
            .binary_search_by(|node| match &node.element {
                PathElement::Field(field) => (**field).cmp(name),
                _ => Ordering::Greater,
            })
            .ok()
            .map(|index| &self.nodes[index])
    }

    /// Adds a node that sorts after all others, or merges it into its place; nodes without paths are left out.
    pub(crate) fn add(&mut self, node: Node) {
        if !node.member && node.children.is_empty() {
            return;
        }
        if self.nodes.last().is_none_or(|last| last.element < node.element) {
            self.nodes.push(node);
            return;
        }
        match self.find(&node.element) {
            Ok(index) => {
                let present = &mut self.nodes[index];
                present.member |= node.member;
                present.children = present.children.union(&node.children);
            }
            Err(index) => self.nodes.insert(index, node),
        }
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes.binary_search_by(|node| node.element.cmp(element))
    }

    fn zip<'a>(&'a self, other: &'a Self, mut visit: impl FnMut(Pair<'a>)) {
        let (mut left, mut right) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(left), Some(right)) => left.element.cmp(&right.element),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return,
            };
            let pair = match order {
                Ordering::Less => left.next().map(Pair::Left),
                Ordering::Greater => right.next().map(Pair::Right),
                Ordering::Equal => left.next().zip(right.next()).map(|(left, right)| Pair::Both(left, right)),
            };
            if let Some(pair) = pair {
                visit(pair);
            }
        }
    }
}

impl Node {
    fn new(element: PathElement) -> Self {
        Self { element, member: false, children: FieldSet::new() }
    }
}

impl FromIterator<Path> for FieldSet {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(&path.0);
        }
        set
    }
}

impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.paths().iter().map(Path::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

enum Pair<'a> {
    Left(&'a Node),
    Right(&'a Node),
    Both(&'a Node, &'a Node),
}

fn push(nodes: &mut Vec<Node>, origin: &Node, member: bool, children: FieldSet) {
    if member || !children.is_empty() {
        nodes.push(Node { element: origin.element.clone(), member, children });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(paths: &[&str]) -> FieldSet {
        paths.iter().map(|path| Path::fields(&path.split('.').collect::<Vec<_>>())).collect()
    }

    #[test]
    fn algebra_works_on_paths_not_on_subtrees() {
        let (a, b) = (set(&["a", "a.b", "c.d", "e"]), set(&["a", "c", "c.x", "e.f"]));
        assert_eq!(a.union(&b), set(&["a", "a.b", "c", "c.d", "c.x", "e", "e.f"]));
        assert_eq!(a.intersection(&b), set(&["a"]));
        assert_eq!(a.difference(&b), set(&["a.b", "c.d", "e"]));
        assert_eq!(a.recursive_difference(&b), set(&["e"]));
        assert!(set(&["a", "c.d"]).is_subset(&a));
        assert!(!set(&["a", "c"]).is_subset(&a));
        assert_eq!(a.len(), 4);
        assert!(a.contains(&Path::fields(&["c", "d"]).0));
        assert!(!a.contains(&Path::fields(&["c"]).0));
    }

    #[test]
    fn paths_list_a_level_before_what_is_below() {
        assert_eq!(set(&["a.b", "a", "c"]).to_string(), ".a\n.c\n.a.b");
    }
}
