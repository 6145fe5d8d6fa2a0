//! Walking trees: text, branches, loops and template calls.

use crate::ast::{At, Branch, Node, TemplateCall, Tree};
use crate::error::{Details, Error, FuncError, Stage};
use crate::fmt::{print_into, sprintf};
use crate::set::{Limits, Set, Template};
use crate::text::{lossy, newlines, quote};
use crate::types::Type;
use crate::value::{Iterate, Str, Value};

/// What all templates of one execution share.
pub(crate) struct Run {
    limits: Limits,
    steps: u64,
    written: usize,
    depth: usize,
}

impl Run {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, steps: 0, written: 0, depth: 0 }
    }
}

/// What a function of the host may use of the execution that called it.
pub struct Context<'a> {
    set: &'a Set,
    run: &'a mut Run,
}

impl<'a> Context<'a> {
    pub(crate) fn new(set: &'a Set, run: &'a mut Run) -> Self {
        Self { set, run }
    }

    /// The set whose template is executing.
    pub fn set(&self) -> &'a Set {
        self.set
    }

    /// Executes a template of the set and gives back its output.
    pub fn execute(&mut self, name: &[u8], data: &Value) -> Result<Vec<u8>, Error> {
        let tree = self.set.tree(name).ok_or_else(|| self.set.not_found(name))?;
        let mut out = Vec::new();
        self.run_tree(tree, data, &mut out)?;
        Ok(out)
    }

    /// Executes a template in another set, such as a clone with more templates, within the same limits.
    pub fn execute_in(&mut self, set: &Set, template: &Template, data: &Value) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        Context { set, run: self.run }.run_tree(&template.0, data, &mut out)?;
        Ok(out)
    }

    /// Calls a function with arguments that fit its parameters.
    pub fn call(&mut self, func: &crate::Func, args: &[Value]) -> Result<Value, FuncError> {
        func.run(self, args)
    }

    pub(crate) fn run_tree(&mut self, tree: &Tree, data: &Value, out: &mut Vec<u8>) -> Outcome<()> {
        let dot = Rv::concrete(data.clone());
        let mut state =
            State { set: self.set, run: self.run, out, tree, vars: vec![(0, dot.clone())], at: At::Start };
        state.enter()?;
        state.walk(&dot, &tree.root)?;
        state.leave();
        Ok(())
    }
}

pub(crate) type Outcome<T> = Result<T, Error>;

/// A value and whether its static type is an interface: Go's `reflect.Value`, as far as templates can tell.
#[derive(Clone, Debug)]
pub(crate) struct Rv {
    pub(crate) v: Value,
    pub(crate) iface: bool,
}

impl Rv {
    /// No value at all.
    pub(crate) const INVALID: Self = Self { v: Value::Nil, iface: false };

    pub(crate) fn concrete(v: Value) -> Self {
        Self { v, iface: false }
    }

    /// A value of a static type.
    pub(crate) fn of(v: Value, static_type: &Type) -> Self {
        Self { v, iface: *static_type == Type::Any }
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.iface || !matches!(self.v, Value::Nil)
    }

    /// The static type where it is an interface, else the dynamic one.
    pub(crate) fn type_name(&self) -> String {
        if self.iface { Type::Any.to_string() } else { self.v.type_name() }
    }
}

/// How a walk ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
}

/// One executing template.
pub(crate) struct State<'t, 'r> {
    pub(crate) set: &'t Set,
    pub(crate) run: &'r mut Run,
    pub(crate) out: &'r mut Vec<u8>,
    pub(crate) tree: &'t Tree,
    pub(crate) vars: Vec<(u32, Rv)>,
    pub(crate) at: At<'t>,
}

impl<'t> State<'t, '_> {
    /// An error about the node that is being executed.
    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        let message = message.into();
        let template = self.tree.name.to_text();
        let file = self.tree.parse_name.to_text();
        if matches!(self.at, At::Start) {
            return Error::from(Details {
                text: format!("template: {template}: {message}"),
                stage: Stage::Execute,
                template,
                file,
                line: 0,
                column: None,
                context: String::new(),
                message,
                cause: None,
            });
        }
        let before = &self.tree.text[..self.at.pos()];
        let line = 1 + newlines(before);
        let column = before.iter().rev().take_while(|b| **b != b'\n').count();
        let context = lossy(&self.at.print(&self.tree.text));
        let name = quote(&self.tree.name);
        Error::from(Details {
            text: format!("template: {file}:{line}:{column}: executing {name} at <{context}>: {message}"),
            stage: Stage::Execute,
            template,
            file,
            line,
            column: Some(column),
            context,
            message,
            cause: None,
        })
    }

    pub(crate) fn fail<T>(&self, message: impl Into<String>) -> Outcome<T> {
        Err(self.error(message))
    }

    /// One level deeper on the stack.
    pub(crate) fn enter(&mut self) -> Outcome<()> {
        if self.run.depth >= self.run.limits.depth_max {
            return self.fail("exceeded maximum template depth (100000)");
        }
        self.run.depth += 1;
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.run.depth -= 1;
    }

    fn step(&mut self) -> Outcome<()> {
        self.run.steps += 1;
        if self.run.steps > self.run.limits.steps_max {
            return self.fail(format!("exceeded maximum of {} steps", self.run.limits.steps_max));
        }
        Ok(())
    }

    /// Accounts for bytes written or built.
    pub(crate) fn charge(&mut self, bytes: usize) -> Outcome<()> {
        self.run.written = self.run.written.saturating_add(bytes);
        if self.run.written > self.run.limits.output_max {
            return self.fail(format!("exceeded maximum output of {} bytes", self.run.limits.output_max));
        }
        Ok(())
    }

    /// What a function of the host is called with.
    pub(crate) fn context(&mut self) -> Context<'_> {
        Context { set: self.set, run: self.run }
    }

    pub(crate) fn walk(&mut self, dot: &Rv, nodes: &'t [Node]) -> Outcome<Flow> {
        for node in nodes {
            self.at = At::Node(node);
            self.step()?;
            let flow = match node {
                Node::Text { start, end } => {
                    let text = &self.tree.text[*start as usize..*end as usize];
                    self.charge(text.len())?;
                    self.out.extend_from_slice(text);
                    Flow::Next
                }
                Node::Action(pipe) => {
                    let value = self.eval_pipeline(dot, pipe)?;
                    if pipe.decl.is_empty() {
                        self.at = At::Node(node);
                        self.print(node, &value)?;
                    }
                    Flow::Next
                }
                Node::If(branch) => self.walk_branch(dot, branch, false)?,
                Node::With(branch) => self.walk_branch(dot, branch, true)?,
                Node::Range(branch) => self.walk_range(dot, branch)?,
                Node::Template(call) => self.walk_template(dot, node, call)?,
                Node::Break { .. } => Flow::Break,
                Node::Continue { .. } => Flow::Continue,
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn print(&mut self, node: &Node, value: &Rv) -> Outcome<()> {
        let before = self.out.len();
        match &value.v {
            Value::Nil => self.out.extend_from_slice(b"<no value>"),
            Value::Func(func) => {
                let shown = lossy(&At::Node(node).print(&self.tree.text));
                return self.fail(format!("can't print {shown} of type {}", func.type_name()));
            }
            printable => print_into(self.out, printable),
        }
        self.charge(self.out.len() - before)
    }

    /// `if` and `with`: the first arm whose value is true.
    fn walk_branch(&mut self, dot: &Rv, branch: &'t Branch, with: bool) -> Outcome<Flow> {
        self.enter()?;
        let mark = self.vars.len();
        let mut flow = None;
        for arm in std::iter::once(&branch.first).chain(&branch.more) {
            self.step()?;
            let value = self.eval_pipeline(dot, &arm.pipe)?;
            if value.v.truth() {
                flow = Some(self.walk(if with { &value } else { dot }, &arm.body)?);
                break;
            }
        }
        let flow = match (flow, &branch.otherwise) {
            (Some(flow), _) => flow,
            (None, Some(otherwise)) => self.walk(dot, otherwise)?,
            (None, None) => Flow::Next,
        };
        self.vars.truncate(mark);
        self.leave();
        Ok(flow)
    }

    fn walk_range(&mut self, dot: &Rv, branch: &'t Branch) -> Outcome<Flow> {
        self.enter()?;
        let outer = self.vars.len();
        let value = self.eval_pipeline(dot, &branch.first.pipe)?;
        let mark = self.vars.len();
        let mut ran = false;
        self.iterate(&value.v, branch, &mut |state: &mut Self, index, elem| {
            ran = true;
            state.step()?;
            state.bind(branch, index, &elem)?;
            let flow = state.walk(&elem, &branch.first.body)?;
            state.vars.truncate(mark);
            Ok(flow != Flow::Break)
        })?;
        let mut flow = Flow::Next;
        if !ran && let Some(otherwise) = &branch.otherwise {
            flow = self.walk(dot, otherwise)?;
        }
        self.vars.truncate(outer);
        self.leave();
        Ok(flow)
    }

    /// Gives the loop's variables their values of this round.
    fn bind(&mut self, branch: &'t Branch, index: Rv, elem: &Rv) -> Outcome<()> {
        let top = self.vars.len();
        match (branch.first.pipe.decl.as_slice(), branch.first.pipe.assign) {
            ([], _) => {}
            ([one], true) => self.set_var(one, elem.clone())?,
            ([key, item, ..], true) => {
                self.set_var(key, index)?;
                self.set_var(item, elem.clone())?;
            }
            ([_], false) => self.vars[top - 1].1 = elem.clone(),
            ([_, _, ..], false) => {
                self.vars[top - 1].1 = elem.clone();
                self.vars[top - 2].1 = index;
            }
        }
        Ok(())
    }

    /// Calls `round` for each element until it answers false.
    fn iterate(
        &mut self,
        value: &Value,
        branch: &'t Branch,
        round: &mut dyn FnMut(&mut Self, Rv, Rv) -> Outcome<bool>,
    ) -> Outcome<()> {
        let variables = branch.first.pipe.decl.len();
        match value {
            Value::Nil | Value::TypedNil(_) => {}
            Value::Int(..) | Value::Uint(..) if variables > 1 => {
                let shown = lossy(&sprintf(b"%v", std::slice::from_ref(value)));
                return self.fail(format!("can't use {shown} to iterate over more than one variable"));
            }
            Value::Int(kind, count) => {
                for i in 0..*count {
                    if !round(self, Rv::INVALID, Rv::concrete(Value::Int(*kind, i)))? {
                        break;
                    }
                }
            }
            Value::Uint(kind, count) => {
                for i in 0..*count {
                    if !round(self, Rv::INVALID, Rv::concrete(Value::Uint(*kind, i)))? {
                        break;
                    }
                }
            }
            Value::List(list) => {
                for (i, item) in list.items().iter().enumerate() {
                    let index = Rv::concrete(Value::int(i as i64));
                    if !round(self, index, Rv::of(item.clone(), list.elem()))? {
                        break;
                    }
                }
            }
            Value::Bytes(bytes) => {
                for (i, byte) in bytes.iter().enumerate() {
                    let index = Rv::concrete(Value::int(i as i64));
                    let byte = Value::Uint(crate::types::Uint::U8, u64::from(*byte));
                    if !round(self, index, Rv::concrete(byte))? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for (key, item) in map.entries() {
                    if !round(self, Rv::concrete(Value::Str(key)), Rv::of(item, map.elem()))? {
                        break;
                    }
                }
            }
            Value::Object(object) => {
                if let Some(inner) = object.underlying() {
                    return self.iterate(&inner, branch, round);
                }
                match object.iterate() {
                    Some(Iterate::Seq(_)) if variables > 1 => {
                        let shown = lossy(&sprintf(b"%v", std::slice::from_ref(value)));
                        return self.fail(format!("can't use {shown} iterate over more than one variable"));
                    }
                    Some(Iterate::Seq(items)) => {
                        for item in items {
                            if !round(self, Rv::INVALID, Rv::concrete(item))? {
                                break;
                            }
                        }
                    }
                    Some(Iterate::Seq2(pairs)) => {
                        for (key, item) in pairs {
                            let (index, elem) =
                                if variables > 1 { (Rv::concrete(key), item) } else { (Rv::INVALID, key) };
                            if !round(self, index, Rv::concrete(elem))? {
                                break;
                            }
                        }
                    }
                    None => return self.not_iterable(value),
                }
            }
            _ => return self.not_iterable(value),
        }
        Ok(())
    }

    fn not_iterable(&self, value: &Value) -> Outcome<()> {
        let shown = lossy(&sprintf(b"%v", std::slice::from_ref(value)));
        self.fail(format!("range can't iterate over {shown}"))
    }

    fn walk_template(&mut self, dot: &Rv, node: &'t Node, call: &'t TemplateCall) -> Outcome<Flow> {
        self.at = At::Node(node);
        let Some(tree) = self.set.tree(&call.name) else {
            return self.fail(format!("template {} not defined", quote(&call.name)));
        };
        self.enter()?;
        let dot = match &call.pipe {
            Some(pipe) => self.eval_pipeline(dot, pipe)?,
            None => Rv::INVALID,
        };
        let mut callee = State {
            set: self.set,
            run: self.run,
            out: self.out,
            tree,
            vars: vec![(0, dot.clone())],
            at: At::Start,
        };
        callee.walk(&dot, &tree.root)?;
        self.leave();
        Ok(Flow::Next)
    }

    /// The nearest variable of that name, set anew.
    pub(crate) fn set_var(&mut self, variable: &crate::ast::Variable, value: Rv) -> Outcome<()> {
        match self.vars.iter_mut().rev().find(|(id, _)| *id == variable.id) {
            Some(slot) => {
                slot.1 = value;
                Ok(())
            }
            None => self.undefined(&variable.name),
        }
    }

    pub(crate) fn undefined<T>(&self, name: &Str) -> Outcome<T> {
        self.fail(format!("undefined variable: {}", name.to_text()))
    }
}
