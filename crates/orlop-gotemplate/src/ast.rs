//! Parsed templates, and how Go prints their nodes in errors.

use crate::number::Number;
use crate::text::quote_into;
use crate::value::{Str, Value};

/// One parsed template: a file's own text, or one `define` or `block` of it.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The template's name.
    pub(crate) name: Str,
    /// The name of the file, for error messages.
    pub(crate) parse_name: Str,
    /// The whole text that was parsed, for positions.
    pub(crate) text: Str,
    pub(crate) root: Vec<Node>,
}

/// A place in the text, in bytes.
pub(crate) type Pos = u32;

/// What can stand between other text.
#[derive(Debug)]
pub(crate) enum Node {
    Text { start: Pos, end: Pos },
    Action(Pipe),
    If(Box<Branch>),
    With(Box<Branch>),
    Range(Box<Branch>),
    Template(Box<TemplateCall>),
    Break { pos: Pos },
    Continue { pos: Pos },
}

/// `if`, `with` or `range`; a chain of `else if` is a list, because it may be long.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) first: Arm,
    pub(crate) more: Vec<Arm>,
    pub(crate) otherwise: Option<Vec<Node>>,
}

/// A pipeline and what it guards.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) pipe: Pipe,
    pub(crate) body: Vec<Node>,
}

/// `template "name" pipeline`.
#[derive(Debug)]
pub(crate) struct TemplateCall {
    pub(crate) pos: Pos,
    pub(crate) name: Str,
    pub(crate) pipe: Option<Pipe>,
}

/// Commands whose values flow from left to right, perhaps into variables.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) pos: Pos,
    pub(crate) assign: bool,
    pub(crate) decl: Vec<Variable>,
    pub(crate) cmds: Vec<Command>,
}

/// A declared or assigned variable.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) id: u32,
    pub(crate) name: Str,
}

/// A word and its arguments.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) pos: Pos,
    pub(crate) args: Vec<Expr>,
}

/// An operand.
#[derive(Debug)]
pub(crate) enum Expr {
    Bool { pos: Pos, value: bool },
    Dot { pos: Pos },
    Nil { pos: Pos },
    Field { pos: Pos, path: Vec<Str> },
    Variable { pos: Pos, id: u32, name: Str, path: Vec<Str> },
    Function { pos: Pos, index: usize, name: Str },
    Number(Box<Number>),
    Str { pos: Pos, quoted: (Pos, Pos), value: Value },
    Chain { pos: Pos, head: Box<Expr>, path: Vec<Str> },
    Pipe(Box<Pipe>),
}

/// The node that an error is about.
#[derive(Clone, Copy)]
pub(crate) enum At<'t> {
    Start,
    Node(&'t Node),
    Pipe(&'t Pipe),
    Command(&'t Command),
    Expr(&'t Expr),
}

impl At<'_> {
    /// Where the node starts.
    pub(crate) fn pos(self) -> usize {
        let pos = match self {
            Self::Start => 0,
            Self::Node(node) => node.pos(),
            Self::Pipe(pipe) => pipe.pos,
            Self::Command(command) => command.pos,
            Self::Expr(expr) => expr.pos(),
        };
        pos as usize
    }

    /// The node as Go prints it.
    pub(crate) fn print(self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Start => {}
            Self::Node(node) => node.print(text, &mut out),
            Self::Pipe(pipe) => pipe.print(text, &mut out),
            Self::Command(command) => command.print(text, &mut out),
            Self::Expr(expr) => expr.print(text, &mut out),
        }
        out
    }
}

/// Whether nothing but space is there, so that it does not replace a template of the same name.
pub(crate) fn is_empty(nodes: &[Node], text: &[u8]) -> bool {
    nodes.iter().all(|node| match node {
        Node::Text { start, end } => {
            String::from_utf8_lossy(&text[*start as usize..*end as usize]).trim().is_empty()
        }
        _ => false,
    })
}

impl Node {
    fn pos(&self) -> Pos {
        match self {
            Self::Text { start, .. } => *start,
            Self::Action(pipe) => pipe.pos,
            Self::If(branch) | Self::With(branch) | Self::Range(branch) => branch.first.pipe.pos,
            Self::Template(call) => call.pos,
            Self::Break { pos } | Self::Continue { pos } => *pos,
        }
    }

    fn print(&self, text: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Text { start, end } => out.extend_from_slice(&text[*start as usize..*end as usize]),
            Self::Action(pipe) => {
                out.extend_from_slice(b"{{");
                pipe.print(text, out);
                out.extend_from_slice(b"}}");
            }
            Self::If(branch) => branch.print(b"if", text, out),
            Self::With(branch) => branch.print(b"with", text, out),
            Self::Range(branch) => branch.print(b"range", text, out),
            Self::Template(call) => {
                out.extend_from_slice(b"{{template ");
                quote_into(out, &call.name, false);
                if let Some(pipe) = &call.pipe {
                    out.push(b' ');
                    pipe.print(text, out);
                }
                out.extend_from_slice(b"}}");
            }
            Self::Break { .. } => out.extend_from_slice(b"{{break}}"),
            Self::Continue { .. } => out.extend_from_slice(b"{{continue}}"),
        }
    }
}

impl Branch {
    /// Go knows no chains: each further arm is printed inside the `else` of the one before.
    fn print(&self, keyword: &[u8], text: &[u8], out: &mut Vec<u8>) {
        for (i, arm) in std::iter::once(&self.first).chain(&self.more).enumerate() {
            if i > 0 {
                out.extend_from_slice(b"{{else}}");
            }
            out.extend_from_slice(b"{{");
            out.extend_from_slice(keyword);
            out.push(b' ');
            arm.pipe.print(text, out);
            out.extend_from_slice(b"}}");
            arm.body.iter().for_each(|node| node.print(text, out));
        }
        if let Some(otherwise) = &self.otherwise {
            out.extend_from_slice(b"{{else}}");
            otherwise.iter().for_each(|node| node.print(text, out));
        }
        for _ in 0..=self.more.len() {
            out.extend_from_slice(b"{{end}}");
        }
    }
}

impl Pipe {
    pub(crate) fn print(&self, text: &[u8], out: &mut Vec<u8>) {
        for (i, variable) in self.decl.iter().enumerate() {
            if i > 0 {
                out.extend_from_slice(b", ");
            }
            out.extend_from_slice(&variable.name);
        }
        if !self.decl.is_empty() {
            out.extend_from_slice(if self.assign { b" = " } else { b" := " });
        }
        for (i, command) in self.cmds.iter().enumerate() {
            if i > 0 {
                out.extend_from_slice(b" | ");
            }
            command.print(text, out);
        }
    }
}

impl Command {
    fn print(&self, text: &[u8], out: &mut Vec<u8>) {
        for (i, arg) in self.args.iter().enumerate() {
            if i > 0 {
                out.push(b' ');
            }
            arg.print_operand(text, out);
        }
    }
}

impl Expr {
    pub(crate) fn pos(&self) -> Pos {
        match self {
            Self::Bool { pos, .. }
            | Self::Dot { pos }
            | Self::Nil { pos }
            | Self::Field { pos, .. }
            | Self::Variable { pos, .. }
            | Self::Function { pos, .. }
            | Self::Str { pos, .. }
            | Self::Chain { pos, .. } => *pos,
            Self::Number(number) => number.pos,
            Self::Pipe(pipe) => pipe.pos,
        }
    }

    /// Inside a command a pipeline keeps its parentheses.
    fn print_operand(&self, text: &[u8], out: &mut Vec<u8>) {
        if matches!(self, Self::Pipe(_)) {
            out.push(b'(');
            self.print(text, out);
            out.push(b')');
        } else {
            self.print(text, out);
        }
    }

    pub(crate) fn print(&self, text: &[u8], out: &mut Vec<u8>) {
        let fields = |out: &mut Vec<u8>, path: &[Str]| {
            for field in path {
                out.push(b'.');
                out.extend_from_slice(field);
            }
        };
        match self {
            Self::Bool { value, .. } => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Self::Dot { .. } => out.push(b'.'),
            Self::Nil { .. } => out.extend_from_slice(b"nil"),
            Self::Field { path, .. } => fields(out, path),
            Self::Variable { name, path, .. } => {
                out.extend_from_slice(name);
                fields(out, path);
            }
            Self::Function { name, .. } => out.extend_from_slice(name),
            Self::Number(number) => out.extend_from_slice(&number.text),
            Self::Str { quoted: (start, end), .. } => {
                out.extend_from_slice(&text[*start as usize..*end as usize]);
            }
            Self::Chain { head, path, .. } => {
                head.print_operand(text, out);
                fields(out, path);
            }
            Self::Pipe(pipe) => pipe.print(text, out),
        }
    }
}
