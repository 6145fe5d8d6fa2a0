//! Sets of templates that see each other, with their functions, options and limits.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::ast::{Tree, is_empty};
use crate::builtins::Builtin;
use crate::error::{Details, Error, Stage};
use crate::exec::{Context, Run};
use crate::func::Func;
use crate::parse::{self, Functions};
use crate::text::quote;
use crate::value::{Str, Value};

/// What a missing key of a map means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// `missingkey=default`: no value, printed as `<no value>`
    #[default]
    Invalid,
    /// `missingkey=zero`: the zero value of the map's element type
    Zero,
    /// `missingkey=error`: execution stops
    Error,
}

/// How much an execution may use. Templates called and executed by functions count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Levels of nested templates, blocks and parentheses; each takes some stack, under 2 KiB in a release build
    pub depth_max: usize,
    /// Nodes walked and iterations made
    pub steps_max: u64,
    /// Bytes written and strings built
    pub output_max: usize,
}

impl Default for Limits {
    /// Deep enough for a thread of 2 MiB, and as good as unlimited otherwise.
    fn default() -> Self {
        Self { depth_max: 500, steps_max: u64::MAX, output_max: usize::MAX }
    }
}

/// A parsed template, to be executed in its set or in one cloned from it.
#[derive(Clone, Debug)]
pub struct Template(pub(crate) Rc<Tree>);

impl Template {
    /// The template's name.
    pub fn name(&self) -> &Str {
        &self.0.name
    }
}

/// Templates that can call each other. Cloning is cheap; what is parsed into a clone stays there.
#[derive(Clone, Debug)]
pub struct Set {
    name: Str,
    templates: Rc<BTreeMap<Str, Rc<Tree>>>,
    /// What was parsed while the map above was shared.
    overlay: BTreeMap<Str, Rc<Tree>>,
    functions: Rc<Table>,
    left: Str,
    right: Str,
    pub(crate) missing_key: MissingKey,
    pub(crate) limits: Limits,
}

/// The functions of a set. A name keeps its place, because trees refer to places.
#[derive(Clone, Debug)]
struct Table {
    places: BTreeMap<Str, usize>,
    entries: Vec<Entry>,
}

/// What a function's name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Builtin(Builtin),
    Host(Rc<Func>),
}

impl Functions for Table {
    fn find(&self, name: &[u8]) -> Option<usize> {
        self.places.get(name).copied()
    }
}

impl Table {
    fn put(&mut self, name: Str, entry: Entry) {
        if let Some(place) = self.places.get(&name) {
            self.entries[*place] = entry;
        } else {
            self.places.insert(name, self.entries.len());
            self.entries.push(entry);
        }
    }
}

impl Default for Set {
    fn default() -> Self {
        Self::new()
    }
}

impl Set {
    /// An empty set with Go's own functions.
    pub fn new() -> Self {
        Self::named("")
    }

    /// An empty set whose name shows where a template is not found.
    pub fn named(name: impl Into<Str>) -> Self {
        let mut table = Table { places: BTreeMap::new(), entries: Vec::new() };
        for builtin in Builtin::ALL {
            table.put(Str::from(builtin.name()), Entry::Builtin(builtin));
        }
        Self {
            name: name.into(),
            templates: Rc::default(),
            overlay: BTreeMap::new(),
            functions: Rc::new(table),
            left: Str::from("{{"),
            right: Str::from("}}"),
            missing_key: MissingKey::default(),
            limits: Limits::default(),
        }
    }

    /// Says what a missing key means.
    #[must_use]
    pub fn option(mut self, missing_key: MissingKey) -> Self {
        self.missing_key = missing_key;
        self
    }

    /// Adds functions; they may replace Go's own and each other.
    #[must_use]
    pub fn funcs<N: Into<Str>>(mut self, functions: impl IntoIterator<Item = (N, Func)>) -> Self {
        for (name, func) in functions {
            self.set_func(name, Rc::new(func));
        }
        self
    }

    /// Adds or replaces one function, also for what is parsed already.
    pub fn set_func(&mut self, name: impl Into<Str>, func: Rc<Func>) {
        Rc::make_mut(&mut self.functions).put(name.into(), Entry::Host(func));
    }

    /// Sets the delimiters of actions for what is parsed from now on; an empty one is the default.
    #[must_use]
    pub fn delims(mut self, left: &str, right: &str) -> Self {
        self.left = Str::from(if left.is_empty() { "{{" } else { left });
        self.right = Str::from(if right.is_empty() { "}}" } else { right });
        self
    }

    /// Sets what an execution may use.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Parses a text under a name and takes in what it defines; the last definition of a name wins,
    /// except that an empty one does not replace another.
    pub fn parse(&mut self, name: impl Into<Str>, text: impl Into<Str>) -> Result<Template, Error> {
        let (name, text) = (name.into(), text.into());
        let delims: (&[u8], &[u8]) = (&self.left, &self.right);
        let trees = parse::parse(&name, &text, delims, &*self.functions)?;
        let mut own = None;
        for tree in trees {
            let tree = Rc::new(tree);
            if tree.name == name {
                own = Some(Template(Rc::clone(&tree)));
            }
            let keeps_old = is_empty(&tree.root, &tree.text) && self.tree(&tree.name).is_some();
            if !keeps_old {
                match Rc::get_mut(&mut self.templates) {
                    Some(templates) if self.overlay.is_empty() => templates.insert(tree.name.clone(), tree),
                    _ => self.overlay.insert(tree.name.clone(), tree),
                };
            }
        }
        own.ok_or_else(|| self.not_found(&name))
    }

    /// The set's own name.
    pub fn name(&self) -> &Str {
        &self.name
    }

    /// The template of that name.
    pub fn lookup(&self, name: &[u8]) -> Option<Template> {
        self.tree(name).map(|tree| Template(Rc::clone(tree)))
    }

    /// The names of all templates, in order.
    pub fn names(&self) -> Vec<Str> {
        let mut names: Vec<Str> = self.templates.keys().chain(self.overlay.keys()).cloned().collect();
        names.sort();
        names.dedup();
        names
    }

    /// Executes a template by name and appends its output, up to the place of an error.
    pub fn execute(&self, name: &str, data: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
        let template = self.lookup(name.as_bytes()).ok_or_else(|| self.not_found(name.as_bytes()))?;
        self.execute_template(&template, data, out)
    }

    /// Executes a parsed template and appends its output, up to the place of an error.
    pub fn execute_template(
        &self,
        template: &Template,
        data: &Value,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut run = Run::new(self.limits);
        Context::new(self, &mut run).run_tree(&template.0, data, out)
    }

    pub(crate) fn tree(&self, name: &[u8]) -> Option<&Rc<Tree>> {
        self.overlay.get(name).or_else(|| self.templates.get(name))
    }

    pub(crate) fn entry(&self, place: usize) -> Option<&Entry> {
        self.functions.entries.get(place)
    }

    /// The function of that name that the host gave.
    pub fn func(&self, name: &[u8]) -> Option<Rc<Func>> {
        match self.functions.find(name).and_then(|place| self.entry(place)) {
            Some(Entry::Host(func)) => Some(Rc::clone(func)),
            _ => None,
        }
    }

    pub(crate) fn not_found(&self, name: &[u8]) -> Error {
        let message = format!("no template {} associated with template {}", quote(name), quote(&self.name));
        Error::from(Details {
            text: format!("template: {message}"),
            stage: Stage::Lookup,
            template: String::from_utf8_lossy(name).into_owned(),
            file: String::new(),
            line: 0,
            column: None,
            context: String::new(),
            message,
            cause: None,
        })
    }
}
