//! Tokens into trees. Errors name the line of the last token read, as Go's do.

use crate::ast::{Arm, Branch, Command, Expr, Node, Pipe, Pos, TemplateCall, Tree, Variable, is_empty};
use crate::error::{Details, Error, Stage};
use crate::lex::{Kind, Lexer, Token};
use crate::number::Number;
use crate::text::{quote, unquote};
use crate::value::{Str, Value};

/// How deep actions and parentheses may nest; the tree is walked on the stack.
pub(crate) const NESTING_MAX: usize = 250;

/// What the parser asks about functions.
pub(crate) trait Functions {
    /// The place of a function in the set.
    fn find(&self, name: &[u8]) -> Option<usize>;
}

/// Parses a text into its own tree, the last, and those it defines.
pub(crate) fn parse(
    name: &Str,
    text: &Str,
    delims: (&[u8], &[u8]),
    functions: &dyn Functions,
) -> Result<Vec<Tree>, Error> {
    if u32::try_from(text.len()).is_err() {
        return Err(error(name, 1, "text is too long"));
    }
    let mut lexer = Lexer::new(text, delims.0, delims.1);
    lexer.break_ok = functions.find(b"break").is_none();
    lexer.continue_ok = functions.find(b"continue").is_none();
    let mut parser = Parser {
        name,
        text,
        lexer,
        functions,
        trees: Vec::new(),
        names: vec![Str::from("$")],
        state: State::new(),
        nesting: 0,
    };
    let root = parser.file()?;
    parser.add(name.clone(), root)?;
    Ok(parser.trees)
}

fn error(file: &Str, line: usize, message: &str) -> Error {
    let file = file.to_text();
    Error::from(Details {
        text: format!("template: {file}:{line}: {message}"),
        stage: Stage::Parse,
        template: file.clone(),
        file,
        line,
        column: None,
        context: String::new(),
        message: message.to_owned(),
        cause: None,
    })
}

type Parsed<T> = Result<T, Error>;

/// What ends a list of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closer {
    End,
    Else,
}

impl Closer {
    fn print(self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

enum Item {
    Node(Node),
    Closer(Closer),
}

/// What belongs to the tree being parsed; a definition starts afresh.
struct State {
    tokens: [Token; 3],
    peeked: usize,
    variables: Vec<u32>,
    action_line: usize,
    range_depth: usize,
}

impl State {
    fn new() -> Self {
        Self {
            tokens: [Token::NONE, Token::NONE, Token::NONE],
            peeked: 0,
            variables: vec![0],
            action_line: 0,
            range_depth: 0,
        }
    }
}

struct Parser<'t> {
    name: &'t Str,
    text: &'t Str,
    lexer: Lexer<'t>,
    functions: &'t dyn Functions,
    trees: Vec<Tree>,
    names: Vec<Str>,
    state: State,
    nesting: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    If,
    Range,
    With,
}

impl Control {
    fn name(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::Range => "range",
            Self::With => "with",
        }
    }

    fn node(self, branch: Branch) -> Node {
        match self {
            Self::If => Node::If(Box::new(branch)),
            Self::Range => Node::Range(Box::new(branch)),
            Self::With => Node::With(Box::new(branch)),
        }
    }
}

impl Parser<'_> {
    fn next(&mut self) -> Token {
        if self.state.peeked > 0 {
            self.state.peeked -= 1;
        } else {
            self.state.tokens[0] = self.lexer.next();
        }
        self.state.tokens[self.state.peeked].clone()
    }

    fn backup(&mut self) {
        self.state.peeked += 1;
    }

    fn backup2(&mut self, first: Token) {
        self.state.tokens[1] = first;
        self.state.peeked = 2;
    }

    fn backup3(&mut self, first: Token, second: Token) {
        self.state.tokens[1] = second;
        self.state.tokens[2] = first;
        self.state.peeked = 3;
    }

    fn peek(&mut self) -> &Token {
        if self.state.peeked == 0 {
            self.state.peeked = 1;
            self.state.tokens[0] = self.lexer.next();
        }
        &self.state.tokens[self.state.peeked - 1]
    }

    fn next_non_space(&mut self) -> Token {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> &Token {
        self.next_non_space();
        self.backup();
        &self.state.tokens[self.state.peeked - 1]
    }

    fn value(&self, token: &Token) -> &[u8] {
        &self.text[token.start..token.end]
    }

    fn fail<T>(&self, message: &str) -> Parsed<T> {
        Err(error(self.name, self.state.tokens[0].line, message))
    }

    fn unexpected<T>(&self, token: &Token, context: &str) -> Parsed<T> {
        let shown = token.describe(self.text);
        if token.kind != Kind::Error {
            return self.fail(&format!("unexpected {shown} in {context}"));
        }
        let line = self.state.action_line;
        if line == 0 || line == token.line {
            return self.fail(&shown);
        }
        let action = if shown.ends_with(" action") { "" } else { " in action" };
        self.fail(&format!("{shown}{action} started at {}:{line}", self.name.to_text()))
    }

    fn expect(&mut self, kinds: &[Kind], context: &str) -> Parsed<Token> {
        let token = self.next_non_space();
        if kinds.contains(&token.kind) { Ok(token) } else { self.unexpected(&token, context) }
    }

    fn enter(&mut self) -> Parsed<()> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return self.fail("max expression depth exceeded");
        }
        Ok(())
    }

    fn add(&mut self, name: Str, root: Vec<Node>) -> Parsed<()> {
        let old = self.trees.iter().position(|tree| tree.name == name);
        match old {
            Some(old) if !is_empty(&self.trees[old].root, self.text) => {
                if !is_empty(&root, self.text) {
                    let message = format!("template: multiple definition of template {}", quote(&name));
                    return self.fail(&message);
                }
                return Ok(());
            }
            Some(old) => {
                self.trees.remove(old);
            }
            None => {}
        }
        self.trees.push(Tree { name, parse_name: self.name.clone(), text: self.text.clone(), root });
        Ok(())
    }

    fn file(&mut self) -> Parsed<Vec<Node>> {
        let mut root = Vec::new();
        while self.peek().kind != Kind::Eof {
            if self.peek().kind == Kind::LeftDelim {
                let delim = self.next();
                if self.next_non_space().kind == Kind::Define {
                    self.definition()?;
                    continue;
                }
                self.backup2(delim);
            }
            match self.text_or_action()? {
                Item::Node(node) => root.push(node),
                Item::Closer(closer) => return self.fail(&format!("unexpected {}", closer.print())),
            }
        }
        Ok(root)
    }

    fn definition(&mut self) -> Parsed<()> {
        const CONTEXT: &str = "define clause";
        let outer = std::mem::replace(&mut self.state, State::new());
        let token = self.expect(&[Kind::Str, Kind::RawString], CONTEXT)?;
        let name = self.unquoted(&token)?;
        self.expect(&[Kind::RightDelim], CONTEXT)?;
        let (root, closer) = self.item_list()?;
        if closer != Closer::End {
            return self.fail(&format!("unexpected {} in {CONTEXT}", closer.print()));
        }
        self.add(name, root)?;
        self.state = outer;
        Ok(())
    }

    fn unquoted(&self, token: &Token) -> Parsed<Str> {
        match unquote(self.value(token)) {
            Some(text) => Ok(Str::from(text)),
            None => self.fail("invalid syntax"),
        }
    }

    fn item_list(&mut self) -> Parsed<(Vec<Node>, Closer)> {
        let mut list = Vec::new();
        while self.peek_non_space().kind != Kind::Eof {
            match self.text_or_action()? {
                Item::Node(node) => list.push(node),
                Item::Closer(closer) => return Ok((list, closer)),
            }
        }
        self.fail("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        match token.kind {
            Kind::Text => Ok(Item::Node(Node::Text { start: token.start as Pos, end: token.end as Pos })),
            Kind::LeftDelim => {
                self.state.action_line = token.line;
                let item = self.action();
                if item.is_ok() {
                    self.state.action_line = 0;
                }
                item
            }
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        let node = match token.kind {
            Kind::Block => self.block()?,
            Kind::Break | Kind::Continue => self.jump(&token)?,
            Kind::Else => {
                if !matches!(self.peek_non_space().kind, Kind::If | Kind::With) {
                    self.expect(&[Kind::RightDelim], "else")?;
                }
                return Ok(Item::Closer(Closer::Else));
            }
            Kind::End => {
                self.expect(&[Kind::RightDelim], "end")?;
                return Ok(Item::Closer(Closer::End));
            }
            Kind::If => self.control(Control::If)?,
            Kind::Range => self.control(Control::Range)?,
            Kind::With => self.control(Control::With)?,
            Kind::Template => self.template()?,
            _ => {
                self.backup();
                Node::Action(self.pipeline("command", Kind::RightDelim)?)
            }
        };
        Ok(Item::Node(node))
    }

    fn jump(&mut self, token: &Token) -> Parsed<Node> {
        let (shown, pos) = match token.kind {
            Kind::Break => ("{{break}}", token.start as Pos),
            _ => ("{{continue}}", token.start as Pos),
        };
        let next = self.next_non_space();
        if next.kind != Kind::RightDelim {
            return self.unexpected(&next, shown);
        }
        if self.state.range_depth == 0 {
            return self.fail(&format!("{shown} outside {{{{range}}}}"));
        }
        Ok(if token.kind == Kind::Break { Node::Break { pos } } else { Node::Continue { pos } })
    }

    /// `if`, `with` and `range`. A chain of `else if` is read in a loop: it may be long.
    fn control(&mut self, control: Control) -> Parsed<Node> {
        self.enter()?;
        let scope = self.state.variables.len();
        let mut branch: Option<Branch> = None;
        loop {
            let pipe = self.pipeline(control.name(), Kind::RightDelim)?;
            let ranging = usize::from(control == Control::Range);
            self.state.range_depth += ranging;
            let (body, closer) = self.item_list()?;
            self.state.range_depth -= ranging;
            let arm = Arm { pipe, body };
            let branch = match &mut branch {
                Some(branch) => {
                    branch.more.push(arm);
                    branch
                }
                None => branch.insert(Branch { first: arm, more: Vec::new(), otherwise: None }),
            };
            if closer == Closer::End {
                break;
            }
            let again = match control {
                Control::If => self.peek().kind == Kind::If,
                Control::With => self.peek().kind == Kind::With,
                Control::Range => false,
            };
            if again {
                self.next();
                continue;
            }
            let (otherwise, closer) = self.item_list()?;
            if closer != Closer::End {
                return self.fail(&format!("expected end; found {}", closer.print()));
            }
            branch.otherwise = Some(otherwise);
            break;
        }
        self.state.variables.truncate(scope);
        self.nesting -= 1;
        match branch {
            Some(branch) => Ok(control.node(branch)),
            None => self.fail("missing branch"),
        }
    }

    fn block(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, Kind::RightDelim)?;
        self.enter()?;
        let outer = std::mem::replace(&mut self.state, State::new());
        let (root, closer) = self.item_list()?;
        let inner = std::mem::replace(&mut self.state, outer);
        if closer != Closer::End {
            return self.fail(&format!("unexpected {} in {CONTEXT}", closer.print()));
        }
        let outer = std::mem::replace(&mut self.state, inner);
        self.add(name.clone(), root)?;
        self.state = outer;
        self.nesting -= 1;
        Ok(Node::Template(Box::new(TemplateCall { pos: token.start as Pos, name, pipe: Some(pipe) })))
    }

    fn template(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let mut pipe = None;
        if self.next_non_space().kind != Kind::RightDelim {
            self.backup();
            pipe = Some(self.pipeline(CONTEXT, Kind::RightDelim)?);
        }
        Ok(Node::Template(Box::new(TemplateCall { pos: token.start as Pos, name, pipe })))
    }

    fn template_name(&self, token: &Token, context: &str) -> Parsed<Str> {
        match token.kind {
            Kind::Str | Kind::RawString => self.unquoted(token),
            _ => self.unexpected(token, context),
        }
    }

    fn pipeline(&mut self, context: &str, end: Kind) -> Parsed<Pipe> {
        let pos = self.peek_non_space().start as Pos;
        let mut pipe = Pipe { pos, assign: false, decl: Vec::new(), cmds: Vec::new() };
        self.declarations(&mut pipe, context)?;
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => {
                    self.check_pipeline(&pipe, context)?;
                    return Ok(pipe);
                }
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawString
                | Kind::Str
                | Kind::Variable
                | Kind::LeftParen => {
                    self.backup();
                    let command = self.command()?;
                    pipe.cmds.push(command);
                }
                _ => return self.unexpected(&token, context),
            }
        }
    }

    fn declarations(&mut self, pipe: &mut Pipe, context: &str) -> Parsed<()> {
        loop {
            if self.peek_non_space().kind != Kind::Variable {
                return Ok(());
            }
            let variable = self.next();
            let after = self.peek().clone();
            let next = self.peek_non_space().clone();
            let comma = next.kind == Kind::Char && self.value(&next) == b",";
            if !comma && !matches!(next.kind, Kind::Assign | Kind::Declare) {
                // A variable used, not declared: put back what was read.
                if after.kind == Kind::Space {
                    self.backup3(variable, after);
                } else {
                    self.backup2(variable);
                }
                return Ok(());
            }
            self.next_non_space();
            let declared = self.variable(&variable);
            self.state.variables.push(declared.id);
            pipe.decl.push(declared);
            if !comma {
                pipe.assign = next.kind == Kind::Assign;
                return Ok(());
            }
            if context != "range" || pipe.decl.len() >= 2 {
                return self.fail(&format!("too many declarations in {context}"));
            }
            if !matches!(self.peek_non_space().kind, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
                return self.fail("range can only initialize variables");
            }
        }
    }

    fn variable(&mut self, token: &Token) -> Variable {
        let name = Str::from(self.value(token));
        Variable { id: self.intern(&name), name }
    }

    fn intern(&mut self, name: &Str) -> u32 {
        let id = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.clone());
            self.names.len() - 1
        });
        id as u32
    }

    fn check_pipeline(&self, pipe: &Pipe, context: &str) -> Parsed<()> {
        if pipe.cmds.is_empty() {
            return self.fail(&format!("missing value for {context}"));
        }
        for (i, command) in pipe.cmds.iter().enumerate().skip(1) {
            if matches!(
                command.args[0],
                Expr::Bool { .. } | Expr::Dot { .. } | Expr::Nil { .. } | Expr::Number(_) | Expr::Str { .. }
            ) {
                return self.fail(&format!("non executable command in pipeline stage {}", i + 1));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Parsed<Command> {
        let pos = self.peek_non_space().start as Pos;
        let mut args = Vec::new();
        loop {
            self.peek_non_space();
            if let Some(operand) = self.operand()? {
                args.push(operand);
            }
            let token = self.next();
            match token.kind {
                Kind::Space => {}
                Kind::RightDelim | Kind::RightParen => {
                    self.backup();
                    break;
                }
                Kind::Pipe => break,
                _ => return self.unexpected(&token, "operand"),
            }
        }
        if args.is_empty() {
            return self.fail("empty command");
        }
        Ok(Command { pos, args })
    }

    fn operand(&mut self) -> Parsed<Option<Expr>> {
        let Some(mut head) = self.term()? else { return Ok(None) };
        if self.peek().kind != Kind::Field {
            return Ok(Some(head));
        }
        let at = self.peek().start as Pos;
        let mut more = Vec::new();
        while self.peek().kind == Kind::Field {
            let token = self.next();
            more.push(Str::from(&self.value(&token)[1..]));
        }
        match &mut head {
            Expr::Field { pos, path } | Expr::Variable { pos, path, .. } => {
                *pos = at;
                path.append(&mut more);
                Ok(Some(head))
            }
            Expr::Bool { .. } | Expr::Str { .. } | Expr::Number(_) | Expr::Nil { .. } | Expr::Dot { .. } => {
                let mut shown = Vec::new();
                head.print(self.text, &mut shown);
                self.fail(&format!("unexpected . after term {}", quote(&shown)))
            }
            _ => Ok(Some(Expr::Chain { pos: at, head: Box::new(head), path: more })),
        }
    }

    fn term(&mut self) -> Parsed<Option<Expr>> {
        let token = self.next_non_space();
        let pos = token.start as Pos;
        Ok(Some(match token.kind {
            Kind::Identifier => {
                let name = Str::from(self.value(&token));
                let Some(index) = self.functions.find(&name) else {
                    return self.fail(&format!("function {} not defined", quote(&name)));
                };
                Expr::Function { pos, index, name }
            }
            Kind::Dot => Expr::Dot { pos },
            Kind::Nil => Expr::Nil { pos },
            Kind::Variable => {
                let Variable { id, name } = self.variable(&token);
                if !self.state.variables.contains(&id) {
                    return self.fail(&format!("undefined variable {}", quote(&name)));
                }
                Expr::Variable { pos, id, name, path: Vec::new() }
            }
            Kind::Field => Expr::Field { pos, path: vec![Str::from(&self.value(&token)[1..])] },
            Kind::Bool => Expr::Bool { pos, value: self.value(&token) == b"true" },
            Kind::CharConstant => self.number(Number::character(pos, self.value(&token)))?,
            Kind::Complex => self.number(Number::complex(pos, self.value(&token)))?,
            Kind::Number => self.number(Number::plain(pos, self.value(&token)))?,
            Kind::LeftParen => {
                self.enter()?;
                let pipe = self.pipeline("parenthesized pipeline", Kind::RightParen)?;
                self.nesting -= 1;
                Expr::Pipe(Box::new(pipe))
            }
            Kind::Str | Kind::RawString => {
                let quoted = (token.start as Pos, token.end as Pos);
                Expr::Str { pos, quoted, value: Value::Str(self.unquoted(&token)?) }
            }
            _ => {
                self.backup();
                return Ok(None);
            }
        }))
    }

    fn number(&self, number: Result<Number, String>) -> Parsed<Expr> {
        match number {
            Ok(number) => Ok(Expr::Number(Box::new(number))),
            Err(message) => self.fail(&message),
        }
    }
}
