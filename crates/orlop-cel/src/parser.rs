//! Tokens to a tree: a precedence climber over CEL's grammar that expands the macros on its way.

use crate::ast::{Expr, Field, Fold, Id, Kind, Literal};
use crate::decl::RESERVED;
use crate::lexer::{Lexeme, Token, lex, unescape};
use crate::source::Issue;

/// A parsed expression and the position of each of its nodes.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) expr: Expr,
    /// Offset in characters by node number.
    pub(crate) positions: Vec<usize>,
}

const DEPTH_MAX: usize = 50;
const HEIGHT_MAX: usize = 160;
/// Most nodes that a macro repeats.
const REPEATED_MAX: usize = 200;
const SOURCE_MAX: usize = 100_000;
const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
const IN_LIST: &str = "{'[', ']', '{', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
const IN_MAP: &str = "{'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
const IN_CALL: &str = "{'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// Parses the text, or tells everything that is wrong with it.
pub(crate) fn parse(source: &str) -> Result<Parsed, Vec<Issue>> {
    let size = source.chars().count();
    if size > SOURCE_MAX {
        let message = format!("expression code point size exceeds limit: size: {size}, limit {SOURCE_MAX}");
        return Err(vec![Issue { offset: 0, message }]);
    }
    let (lexemes, mut issues) = lex(source);
    let mut parser = Parser { lexemes, at: 0, depth: 0, positions: Vec::new(), issues: Vec::new() };
    let parsed =
        parser.expr().and_then(|expr| parser.end().and_then(|()| parser.check_height(&expr)).map(|()| expr));
    issues.append(&mut parser.issues);
    if let Err(Stop(issue)) = &parsed {
        issues.push(issue.clone());
    }
    issues.sort_by_key(|issue| issue.offset);
    match parsed {
        Ok(expr) if issues.is_empty() => Ok(Parsed { expr, positions: parser.positions }),
        _ => Err(issues),
    }
}

fn begins_operand(token: &Token) -> bool {
    match token {
        Token::Sign(sign) => matches!(*sign, "[" | "{" | "(" | "." | "-" | "!" | "true" | "false" | "null"),
        Token::Quoted(_) | Token::End => false,
        _ => true,
    }
}

/// A syntax error ends the parse.
struct Stop(Issue);

pub(crate) struct Parser {
    lexemes: Vec<Lexeme>,
    at: usize,
    depth: usize,
    positions: Vec<usize>,
    issues: Vec<Issue>,
}

type Parse<T> = Result<T, Stop>;

impl Parser {
    fn peek(&self) -> &Lexeme {
        &self.lexemes[self.at.min(self.lexemes.len() - 1)]
    }

    fn next(&mut self) -> Lexeme {
        let lexeme = self.peek().clone();
        self.at = (self.at + 1).min(self.lexemes.len() - 1);
        lexeme
    }

    fn is(&self, sign: &str) -> bool {
        matches!(&self.peek().token, Token::Sign(found) if *found == sign)
    }

    fn eat(&mut self, sign: &str) -> Option<usize> {
        self.is(sign).then(|| self.next().offset)
    }

    /// The sign, or the way the original gets on without it: a token too much is dropped, a missing sign assumed.
    fn expect(&mut self, sign: &str) -> Parse<()> {
        self.expect_of(sign, &format!("'{sign}'"))
    }

    fn expect_of(&mut self, sign: &str, expected: &str) -> Parse<()> {
        if self.eat(sign).is_some() {
            return Ok(());
        }
        let Lexeme { token, offset, text } = self.peek().clone();
        let after = self.lexemes.get(self.at + 1).map(|l| &l.token);
        if token != Token::End
            && after.is_some_and(|token| matches!(token, Token::Sign(found) if *found == sign))
        {
            self.complain(offset, format!("Syntax error: extraneous input '{text}' expecting {expected}"));
            self.next();
            self.next();
            return Ok(());
        }
        let alone = !expected.starts_with('{');
        if alone && (if sign == ":" { begins_operand(&token) } else { token == Token::End }) {
            self.complain(offset, format!("Syntax error: missing '{sign}' at '{text}'"));
            return Ok(());
        }
        Err(self.unexpected(expected))
    }

    fn stop(&self, message: String) -> Stop {
        Stop(Issue { offset: self.peek().offset, message: format!("Syntax error: {message}") })
    }

    fn unexpected(&self, expected: &str) -> Stop {
        let next = self.lexemes.get(self.at + 1);
        let single = expected == "<EOF>" && next.is_some_and(|l| l.token == Token::End);
        let word = if single { "extraneous" } else { "mismatched" };
        self.stop(format!("{word} input '{}' expecting {expected}", self.peek().text))
    }

    fn end(&mut self) -> Parse<()> {
        if self.peek().token == Token::End { Ok(()) } else { Err(self.unexpected("<EOF>")) }
    }

    fn complain(&mut self, offset: usize, message: impl Into<String>) {
        self.issues.push(Issue { offset, message: message.into() });
    }

    fn position(&self, id: Id) -> usize {
        self.positions.get(id).copied().unwrap_or_default()
    }

    fn node(&mut self, offset: usize, kind: Kind) -> Expr {
        let id = self.positions.len();
        self.positions.push(offset);
        let over = |found: Option<usize>| found.unwrap_or_default() + 1;
        let height = match &kind {
            Kind::Literal(_) | Kind::Ident(_) => 1,
            Kind::Select { operand, .. } => operand.height + 1,
            Kind::Call { target, args, .. } => {
                over(target.iter().map(|t| t.height).chain(args.iter().map(|a| a.height)).max())
            }
            Kind::List { items, .. } => over(items.iter().map(|i| i.height).max()),
            Kind::Map { entries } => over(entries.iter().flat_map(|(k, v, _)| [k.height, v.height]).max()),
            Kind::Struct { fields, .. } => over(fields.iter().map(|f| f.value.height).max()),
            Kind::Fold(f) => {
                over([&f.range, &f.init, &f.condition, &f.step, &f.result].iter().map(|e| e.height).max())
            }
        };
        Expr { id, height, kind }
    }

    fn call(&mut self, offset: usize, function: &str, args: Vec<Expr>) -> Expr {
        self.node(offset, Kind::Call { function: function.to_owned(), target: None, args })
    }

    fn literal(&mut self, offset: usize, value: Literal) -> Expr {
        self.node(offset, Kind::Literal(value))
    }

    fn too_deep(&self) -> Stop {
        Stop(Issue {
            offset: self.peek().offset,
            message: "expression recursion limit exceeded: 250".to_owned(),
        })
    }

    /// One level deeper, as far as that goes.
    fn guarded(&mut self, parse: fn(&mut Self) -> Parse<Expr>) -> Parse<Expr> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.too_deep());
        }
        let found = parse(self);
        self.depth -= 1;
        found
    }

    fn expr(&mut self) -> Parse<Expr> {
        self.guarded(Self::conditional)
    }

    fn conditional(&mut self) -> Parse<Expr> {
        let condition = self.logic("||")?;
        Ok(match self.eat("?") {
            None => condition,
            Some(offset) => {
                let yes = self.logic("||")?;
                self.expect(":")?;
                let no = self.expr()?;
                self.call(offset, "_?_:_", vec![condition, yes, no])
            }
        })
    }

    /// Chains of `||` and `&&` become balanced trees, so that long chains stay shallow.
    fn logic(&mut self, sign: &str) -> Parse<Expr> {
        let mut terms = vec![self.logic_term(sign)?];
        let mut offsets = Vec::new();
        while let Some(offset) = self.eat(sign) {
            offsets.push(offset);
            terms.push(self.logic_term(sign)?);
        }
        let function = if sign == "||" { "_||_" } else { "_&&_" };
        Ok(self.balance(function, &mut terms.into_iter(), &offsets))
    }

    fn logic_term(&mut self, sign: &str) -> Parse<Expr> {
        if sign == "||" { self.logic("&&") } else { self.binary(0) }
    }

    fn balance(&mut self, function: &str, terms: &mut std::vec::IntoIter<Expr>, offsets: &[usize]) -> Expr {
        if offsets.is_empty() {
            return terms.next().unwrap_or(Expr { id: 0, height: 1, kind: Kind::Literal(Literal::Null) });
        }
        let middle = offsets.len() / 2;
        let left = self.balance(function, terms, &offsets[..middle]);
        let right = self.balance(function, terms, &offsets[middle + 1..]);
        self.call(offsets[middle], function, vec![left, right])
    }

    fn binary(&mut self, level: usize) -> Parse<Expr> {
        const LEVELS: [&[&str]; 3] =
            [&["<", "<=", ">=", ">", "==", "!=", "in"], &["+", "-"], &["*", "/", "%"]];
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Token::Sign(sign) = self.peek().token
            && signs.contains(&sign)
        {
            let offset = self.next().offset;
            let right = self.binary(level + 1)?;
            let function = if sign == "in" { "@in".to_owned() } else { format!("_{sign}_") };
            left = self.call(offset, &function, vec![left, right]);
            self.check_height(&left)?;
        }
        Ok(left)
    }

    fn check_height(&self, expr: &Expr) -> Parse<()> {
        if expr.height > HEIGHT_MAX { Err(self.too_deep()) } else { Ok(()) }
    }

    fn unary(&mut self) -> Parse<Expr> {
        for (sign, function) in [("!", "!_"), ("-", "-_")] {
            let number = matches!(
                self.lexemes.get(self.at + 1).map(|l| &l.token),
                Some(Token::Int(_) | Token::Float(_))
            );
            if self.is(sign) && !(sign == "-" && number) {
                let offset = self.peek().offset;
                let mut count = 0;
                while self.eat(sign).is_some() {
                    count += 1;
                }
                if self.peek().token == Token::End {
                    let end = self.peek().offset;
                    if sign == "!" {
                        return Err(self.stop(format!("extraneous input '<EOF>' expecting {OPERAND}")));
                    }
                    self.complain(end, "Syntax error: no viable alternative at input '-'");
                }
                let operand = self.member()?;
                return Ok(if count % 2 == 0 { operand } else { self.call(offset, function, vec![operand]) });
            }
        }
        self.member()
    }

    fn member(&mut self) -> Parse<Expr> {
        let mut expr = self.primary()?;
        loop {
            if let Some(dot) = self.eat(".") {
                let optional = self.eat("?").is_some();
                let lexeme = self.next();
                let name = match lexeme.token {
                    Token::Ident(name) => name,
                    Token::Quoted(_) => {
                        self.complain(lexeme.offset, "unsupported syntax: '`'");
                        lexeme.text
                    }
                    Token::Sign("in") => {
                        // the word is read as the operator it is
                        self.at -= 1;
                        self.complain(lexeme.offset, "Syntax error: no viable alternative at input '.in'");
                        return Ok(expr);
                    }
                    Token::Sign("true" | "false" | "null") => {
                        self.at -= 1;
                        return Err(self.unexpected("IDENTIFIER"));
                    }
                    _ => {
                        self.at = self.at.saturating_sub(usize::from(lexeme.text != "<EOF>"));
                        let text =
                            if lexeme.text == "<EOF>" { ".".to_owned() } else { format!(".{}", lexeme.text) };
                        return Err(self.stop(format!("no viable alternative at input '{text}'")));
                    }
                };
                if optional {
                    let field = self.literal(lexeme.offset, Literal::String(name));
                    expr = self.call(dot, "_?._", vec![expr, field]);
                } else if let Some(open) = self.eat("(") {
                    let args = self.arguments()?;
                    expr = self.receiver_call(open, expr, name, args);
                } else {
                    expr = self.node(dot, Kind::Select { operand: Box::new(expr), field: name, test: false });
                }
            } else if let Some(open) = self.eat("[") {
                let function = if self.eat("?").is_some() { "_[?_]" } else { "_[_]" };
                if function == "_[_]" && self.peek().token == Token::End {
                    return Err(self.unexpected(&OPERAND.replace("'!', ", "'!', '?', ")));
                }
                let index = self.expr()?;
                self.expect("]")?;
                expr = self.call(open, function, vec![expr, index]);
            } else {
                return Ok(expr);
            }
            self.check_height(&expr)?;
        }
    }

    fn arguments(&mut self) -> Parse<Vec<Expr>> {
        let mut args = Vec::new();
        if self.eat(")").is_some() {
            return Ok(args);
        }
        if self.peek().token == Token::End {
            return Err(self.unexpected(IN_CALL));
        }
        if self.is(",") {
            let offset = self.next().offset;
            self.complain(offset, format!("Syntax error: extraneous input ',' expecting {IN_CALL}"));
            if self.eat(")").is_some() {
                return Ok(args);
            }
        }
        loop {
            args.push(self.expr()?);
            if self.eat(",").is_none() {
                self.expect(")")?;
                return Ok(args);
            }
        }
    }

    fn primary(&mut self) -> Parse<Expr> {
        let Lexeme { token, offset, text } = self.peek().clone();
        match token {
            Token::Sign("(") => {
                self.next();
                let inner = self.expr()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Sign("[") => self.list(),
            Token::Sign("{") => self.map(),
            Token::Sign(word @ ("true" | "false")) => {
                self.next();
                Ok(self.literal(offset, Literal::Bool(word == "true")))
            }
            Token::Sign("null") => {
                self.next();
                Ok(self.literal(offset, Literal::Null))
            }
            Token::Sign("-") => {
                self.next();
                let number = self.next();
                Ok(self.number(offset, &number.token, "-"))
            }
            Token::Sign(".") | Token::Ident(_) => self.name(),
            Token::Int(_) | Token::Uint(_) | Token::Float(_) => {
                self.next();
                Ok(self.number(offset, &token, ""))
            }
            Token::String(_) | Token::Bytes(_) => {
                self.next();
                let bytes = unescape(&text).unwrap_or_else(|()| {
                    self.complain(offset, "invalid string literal: unable to unescape string");
                    Vec::new()
                });
                let value = match (token, String::from_utf8(bytes)) {
                    (Token::Bytes(_), Ok(text)) => Literal::Bytes(text.into_bytes()),
                    (Token::Bytes(_), Err(bytes)) => Literal::Bytes(bytes.into_bytes()),
                    (_, text) => Literal::String(text.unwrap_or_default()),
                };
                Ok(self.literal(offset, value))
            }
            _ if self.at + 1 < self.lexemes.len() && begins_operand(&self.lexemes[self.at + 1].token) => {
                self.complain(offset, format!("Syntax error: extraneous input '{text}' expecting {OPERAND}"));
                self.next();
                self.guarded(Self::primary)
            }
            _ => Err(self.unexpected(OPERAND)),
        }
    }

    fn number(&mut self, offset: usize, token: &Token, sign: &str) -> Expr {
        let whole = |text: &str| match text.strip_prefix("0x") {
            Some(hex) => (format!("{sign}{hex}"), 16),
            None => (format!("{sign}{text}"), 10),
        };
        let (value, what) = match token {
            Token::Int(text) => {
                let (text, radix) = whole(text);
                (i64::from_str_radix(&text, radix).ok().map(Literal::Int), "int")
            }
            Token::Uint(text) => {
                let (text, radix) = whole(text);
                (u64::from_str_radix(&text, radix).ok().map(Literal::Uint), "uint")
            }
            Token::Float(text) => (
                format!("{sign}{text}").parse().ok().filter(|f: &f64| f.is_finite()).map(Literal::Double),
                "double",
            ),
            _ => (None, "int"),
        };
        if value.is_none() {
            self.complain(offset, format!("invalid {what} literal"));
        }
        self.literal(offset, value.unwrap_or(Literal::Null))
    }

    /// A variable, a global call, or a message literal.
    fn name(&mut self) -> Parse<Expr> {
        let leading = self.eat(".").is_some();
        let lexeme = self.next();
        let Token::Ident(word) = lexeme.token else {
            self.at = self.at.saturating_sub(usize::from(lexeme.text != "<EOF>"));
            return Err(self.unexpected("IDENTIFIER"));
        };
        if RESERVED.contains(&word.as_str()) {
            self.complain(lexeme.offset, format!("reserved identifier: {word}"));
        }
        let name = if leading { format!(".{word}") } else { word.clone() };
        if let Some(open) = self.eat("(") {
            let args = self.arguments()?;
            return Ok(self.global_call(open, name, args));
        }
        if let Some(length) = self.message_name() {
            let mut full = name;
            for _ in 0..length {
                self.next();
                full = format!("{full}.{}", self.next().text);
            }
            let open = self.next().offset;
            let mut fields = Vec::new();
            while !self.is("}") {
                let optional = self.eat("?").is_some();
                let name = self.next().text.clone();
                let id = self.positions.len();
                self.positions.push(self.peek().offset);
                self.expect(":")?;
                fields.push(Field { id, name, value: self.expr()?, optional });
                if self.eat(",").is_none() {
                    break;
                }
            }
            self.expect("}")?;
            return Ok(self.node(open, Kind::Struct { name: full, fields }));
        }
        Ok(self.node(lexeme.offset, Kind::Ident(name)))
    }

    /// How many `.word` follow before a `{`, if that is what comes.
    fn message_name(&self) -> Option<usize> {
        let mut at = self.at;
        let token = |at: usize| self.lexemes.get(at).map(|l| &l.token);
        while token(at) == Some(&Token::Sign(".")) && matches!(token(at + 1), Some(Token::Ident(_))) {
            at += 2;
        }
        (token(at) == Some(&Token::Sign("{"))).then_some((at - self.at) / 2)
    }

    fn list(&mut self) -> Parse<Expr> {
        let open = self.next().offset;
        let (mut items, mut optional) = (Vec::new(), Vec::new());
        if self.peek().token == Token::End {
            return Err(self.unexpected(IN_LIST));
        }
        self.trailing_comma("]", items.is_empty());
        while !self.is("]") {
            if self.eat("?").is_some() {
                optional.push(items.len());
            }
            items.push(self.expr()?);
            if self.eat(",").is_none() {
                break;
            }
            if self.is(",") {
                return Err(self.unexpected("']'"));
            }
        }
        self.expect_of("]", "{']', ','}")?;
        Ok(self.node(open, Kind::List { items, optional }))
    }

    fn map(&mut self) -> Parse<Expr> {
        let open = self.next().offset;
        let mut entries = Vec::new();
        if self.peek().token == Token::End {
            return Err(self.unexpected(IN_MAP));
        }
        self.trailing_comma("}", entries.is_empty());
        while !self.is("}") {
            let optional = self.eat("?").is_some();
            let key = self.expr()?;
            self.expect(":")?;
            entries.push((key, self.expr()?, optional));
            if self.eat(",").is_none() {
                break;
            }
        }
        self.expect_of("}", "{'}', ','}")?;
        Ok(self.node(open, Kind::Map { entries }))
    }

    /// `[,]` and `{,}` are empty.
    fn trailing_comma(&mut self, close: &str, empty: bool) {
        let next = self.lexemes.get(self.at + 1).map(|l| &l.token);
        if empty && self.is(",") && matches!(next, Some(Token::Sign(sign)) if *sign == close) {
            self.next();
        }
    }

    fn global_call(&mut self, open: usize, name: String, mut args: Vec<Expr>) -> Expr {
        if name == "has" && args.len() == 1 {
            let arg = args.remove(0);
            return match arg.kind {
                Kind::Select { operand, field, test: false } => {
                    self.node(open, Kind::Select { operand, field, test: true })
                }
                _ => {
                    self.complain(self.position(arg.id), "invalid argument to has() macro");
                    arg
                }
            };
        }
        self.call(open, &name, args)
    }

    fn receiver_call(&mut self, open: usize, target: Expr, name: String, args: Vec<Expr>) -> Expr {
        match (name.as_str(), args.len()) {
            ("all" | "exists" | "exists_one" | "existsOne" | "map" | "filter", 2)
            | (
                "map" | "all" | "exists" | "existsOne" | "transformList" | "transformMap"
                | "transformMapEntry",
                3,
            )
            | ("transformList" | "transformMap" | "transformMapEntry", 4) => {
                self.fold_macro(open, target, &name, args)
            }
            ("optMap" | "optFlatMap", 2) => self.optional_macro(open, target, &name, args),
            ("sortBy", 2) => self.sort_by(open, target, args),
            _ => self.node(open, Kind::Call { function: name, target: Some(Box::new(target)), args }),
        }
    }

    fn variable(&mut self, arg: &Expr, complaint: &str) -> Option<String> {
        match &arg.kind {
            Kind::Ident(name) if matches!(name.as_str(), "__result__" | "@result") => {
                self.complain(self.position(arg.id), "iteration variable overwrites accumulator variable");
                None
            }
            Kind::Ident(name) if !name.starts_with('.') => Some(name.clone()),
            _ => {
                self.complain(self.position(arg.id), complaint.to_owned());
                None
            }
        }
    }

    fn accu(&mut self, open: usize) -> Expr {
        self.node(open, Kind::Ident("@result".to_owned()))
    }

    fn list_of(&mut self, open: usize, items: Vec<Expr>) -> Expr {
        self.node(open, Kind::List { items, optional: Vec::new() })
    }

    /// The quantifiers and transformations, with one or two loop variables.
    fn fold_macro(&mut self, open: usize, target: Expr, name: &str, args: Vec<Expr>) -> Expr {
        let two = name.starts_with("transform") || (args.len() == 3 && name != "map");
        let complaint = if matches!(name, "map" | "filter") {
            "argument is not an identifier"
        } else {
            "argument must be a simple name"
        };
        let Some(iter) = self.variable(&args[0], complaint) else { return target };
        let mut iter2 = None;
        if two {
            let Some(second) = self.variable(&args[1], complaint) else { return target };
            if second == iter {
                self.complain(self.position(args[1].id), format!("duplicate variable name: {iter}"));
                return target;
            }
            iter2 = Some(second);
        }
        let variable = args[0].clone();
        let mut rest: Vec<Expr> = args.into_iter().skip(if two { 2 } else { 1 }).collect();
        let body = rest.pop().unwrap_or_else(|| variable.clone());
        let mut filter = rest.pop();
        let truth = |parser: &mut Self, value: bool| parser.literal(open, Literal::Bool(value));
        let (init, condition, step, result) = match name {
            "all" => {
                let init = truth(self, true);
                let accu = self.accu(open);
                let condition = self.call(open, "@not_strictly_false", vec![accu]);
                let accu = self.accu(open);
                (init, condition, self.call(open, "_&&_", vec![accu, body]), self.accu(open))
            }
            "exists" => {
                let init = truth(self, false);
                let accu = self.accu(open);
                let not = self.call(open, "!_", vec![accu]);
                let condition = self.call(open, "@not_strictly_false", vec![not]);
                let accu = self.accu(open);
                (init, condition, self.call(open, "_||_", vec![accu, body]), self.accu(open))
            }
            "exists_one" | "existsOne" => {
                let init = self.literal(open, Literal::Int(0));
                let condition = truth(self, true);
                let (accu, one) = (self.accu(open), self.literal(open, Literal::Int(1)));
                let add = self.call(open, "_+_", vec![accu, one]);
                let accu = self.accu(open);
                let step = self.call(open, "_?_:_", vec![body, add, accu]);
                let (accu, one) = (self.accu(open), self.literal(open, Literal::Int(1)));
                (init, condition, step, self.call(open, "_==_", vec![accu, one]))
            }
            "transformMap" | "transformMapEntry" => {
                let init = self.node(open, Kind::Map { entries: Vec::new() });
                let condition = truth(self, true);
                let accu = self.accu(open);
                let args = if name == "transformMap" { vec![accu, variable, body] } else { vec![accu, body] };
                (init, condition, self.call(open, "cel.@mapInsert", args), self.accu(open))
            }
            _ => {
                let init = self.list_of(open, Vec::new());
                let condition = truth(self, true);
                let item = if name == "filter" {
                    filter = Some(body);
                    variable
                } else {
                    body
                };
                let (accu, item) = (self.accu(open), self.list_of(open, vec![item]));
                (init, condition, self.call(open, "_+_", vec![accu, item]), self.accu(open))
            }
        };
        let step = match filter {
            None => step,
            Some(filter) => {
                let accu = self.accu(open);
                self.call(open, "_?_:_", vec![filter, step, accu])
            }
        };
        let accu = "@result".to_owned();
        self.node(
            open,
            Kind::Fold(Box::new(Fold { iter, iter2, range: target, accu, init, condition, step, result })),
        )
    }

    /// A loop over nothing that only names a value.
    fn bind(&mut self, open: usize, name: String, value: Expr, result: Expr) -> Expr {
        let range = self.list_of(open, Vec::new());
        let condition = self.literal(open, Literal::Bool(false));
        let step = self.node(open, Kind::Ident(name.clone()));
        let fold = Fold {
            iter: "#unused".to_owned(),
            iter2: None,
            range,
            accu: name,
            init: value,
            condition,
            step,
            result,
        };
        self.node(open, Kind::Fold(Box::new(fold)))
    }

    fn member_call(&mut self, open: usize, target: Expr, name: &str) -> Expr {
        self.node(
            open,
            Kind::Call { function: name.to_owned(), target: Some(Box::new(target)), args: Vec::new() },
        )
    }

    /// `target.optMap(v, expr)` is `target.hasValue() ? optional.of(v bound in expr) : optional.none()`.
    fn optional_macro(&mut self, open: usize, target: Expr, name: &str, args: Vec<Expr>) -> Expr {
        let mut args = args.into_iter();
        let (Some(variable), Some(body)) = (args.next(), args.next()) else { return target };
        let complaint = format!("{name}() variable name must be a simple identifier");
        let Some(variable) = self.variable(&variable, &complaint) else { return target };
        // the original repeats the target; chains of macros would grow without bound, so that large ones are named instead
        let simple = target.weight() <= REPEATED_MAX;
        let (subject, again) = if simple {
            (target.clone(), target.clone())
        } else {
            (
                self.node(open, Kind::Ident("@target".to_owned())),
                self.node(open, Kind::Ident("@target".to_owned())),
            )
        };
        let has = self.member_call(open, subject, "hasValue");
        let value = self.member_call(open, again, "value");
        let bound = self.bind(open, variable, value, body);
        let some = if name == "optMap" { self.call(open, "optional.of", vec![bound]) } else { bound };
        let none = self.call(open, "optional.none", Vec::new());
        let chosen = self.call(open, "_?_:_", vec![has, some, none]);
        if simple { chosen } else { self.bind(open, "@target".to_owned(), target, chosen) }
    }

    /// `list.sortBy(v, key)` sorts by the keys it maps.
    fn sort_by(&mut self, open: usize, target: Expr, args: Vec<Expr>) -> Expr {
        if !matches!(args[0].kind, Kind::Ident(_)) {
            self.complain(
                self.position(args[0].id),
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
            );
            return target;
        }
        let named = || Kind::Ident("@__sortBy_input__".to_owned());
        let (first, second) = (self.node(open, named()), self.node(open, named()));
        let keys = self.fold_macro(open, first, "map", args);
        let sorted = self.node(
            open,
            Kind::Call {
                function: "@sortByAssociatedKeys".to_owned(),
                target: Some(Box::new(second)),
                args: vec![keys],
            },
        );
        self.bind(open, "@__sortBy_input__".to_owned(), target, sorted)
    }
}
