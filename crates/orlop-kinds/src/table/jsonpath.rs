//! JSONPath as client-go has it: fields, indices, slices, wildcards, unions, filters and recursive descent.
//!
//! A path is read once and gives the first value it finds in an object. What the original refuses while it
//! evaluates, such as an index out of bounds, gives nothing.

use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;

/// How deeply filters and unions may be nested.
const NESTING_MAX: usize = 16;

/// A path, ready to be used.
#[derive(Clone, Debug)]
pub(super) struct Path(Vec<Node>);

#[derive(Clone, Debug)]
enum Node {
    Constant(Value),
    Field(String),
    Slice([Option<i64>; 3], bool),
    Filter(Vec<Node>, Option<(Operator, Vec<Node>)>),
    Wildcard,
    Recursive,
    Union(Vec<Vec<Node>>),
    /// A word that means nothing here.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Unknown,
}

type Found<'a> = Vec<Cow<'a, Value>>;

impl Path {
    /// Reads a path; nothing if it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Reader { rest: text, depth: 0 }.nodes().map(Self)
    }

    /// The first value at the path.
    pub(super) fn first<'a>(&self, object: &'a Value) -> Option<Cow<'a, Value>> {
        evaluate(&self.0, vec![Cow::Borrowed(object)])?.into_iter().next()
    }
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn nodes(mut self) -> Option<Vec<Node>> {
        let mut nodes = Vec::new();
        loop {
            if self.rest.starts_with('}') {
                return Some(nodes);
            }
            if let Some(rest) = self.rest.strip_prefix("[?(") {
                self.rest = rest;
                nodes.push(self.filter()?);
                continue;
            }
            if let Some(rest) = self.rest.strip_prefix("..") {
                if matches!(nodes.last(), Some(Node::Recursive)) {
                    return None;
                }
                self.rest = rest;
                nodes.push(Node::Recursive);
                if rest.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
                    nodes.push(self.field());
                }
                continue;
            }
            let Some(next) = self.rest.chars().next() else { return Some(nodes) };
            match next {
                '\r' | '\n' => return None,
                ' ' | '@' | '$' => self.rest = &self.rest[1..],
                '[' => {
                    let end = self.rest.find([']', '\n']).filter(|end| self.rest[*end..].starts_with(']'))?;
                    let inner = &self.rest[1..end];
                    self.rest = &self.rest[end + 1..];
                    self.array(inner, &mut nodes)?;
                }
                '"' | '\'' => nodes.push(Node::Constant(self.quoted(next)?.into())),
                '.' => {
                    self.rest = &self.rest[1..];
                    nodes.push(self.field());
                }
                '+' | '-' | '0'..='9' => nodes.push(self.number()?),
                '_' => nodes.push(self.word()),
                c if c.is_alphanumeric() => nodes.push(self.word()),
                _ => return None,
            }
        }
    }

    fn nested(&self, text: &'a str) -> Option<Vec<Node>> {
        (self.depth < NESTING_MAX).then_some(())?;
        Reader { rest: text, depth: self.depth + 1 }.nodes()
    }

    /// A field up to a terminator that is not escaped.
    fn field(&mut self) -> Node {
        let mut name = String::new();
        let mut chars = self.rest.char_indices();
        let mut end = self.rest.len();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => name.extend(chars.next().map(|(_, c)| c).filter(|c| *c != '\\')),
                c if is_terminator(c) => {
                    end = at;
                    break;
                }
                c => name.push(c),
            }
        }
        self.rest = &self.rest[end..];
        if name == "*" { Node::Wildcard } else { Node::Field(name) }
    }

    fn word(&mut self) -> Node {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        self.rest = &self.rest[end..];
        match word {
            "true" => Node::Constant(true.into()),
            "false" => Node::Constant(false.into()),
            _ => Node::Unknown,
        }
    }

    fn number(&mut self) -> Option<Node> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = &self.rest[sign..];
        let end = sign + digits.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(digits.len());
        let text = &self.rest[..end];
        self.rest = &self.rest[end..];
        if let Ok(whole) = text.parse::<i64>() {
            return Some(Node::Constant(whole.into()));
        }
        text.parse::<f64>().ok().map(|float| Node::Constant(float.into()))
    }

    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.rest = &self.rest[at + 2..];
                    return Some(text);
                }
                '\n' => return None,
                '\\' => text.push(match chars.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    c @ ('\\' | '"' | '\'') => c,
                    _ => return None,
                }),
                c => text.push(c),
            }
        }
        None
    }

    fn array(&self, inner: &'a str, nodes: &mut Vec<Node>) -> Option<()> {
        let inner = if inner == "*" { ":" } else { inner };
        let parts: Vec<&str> = inner.split(',').collect();
        if parts.len() > 1 {
            (self.depth < NESTING_MAX).then_some(())?;
            let mut union = Vec::new();
            for part in parts {
                let mut nodes = Vec::new();
                Reader { rest: "", depth: self.depth + 1 }.array(part.trim_matches(' '), &mut nodes)?;
                union.push(nodes);
            }
            nodes.push(Node::Union(union));
            return Some(());
        }
        let key = inner.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            let mut key = Reader { rest: key, depth: self.depth + 1 };
            nodes.push(key.field());
            nodes.extend(key.nodes()?);
            return Some(());
        }
        let parts: Vec<&str> = inner.split(':').collect();
        let mut params = [None; 3];
        if parts.len() > 3 {
            return None;
        }
        for (param, part) in params.iter_mut().zip(&parts) {
            if !part.is_empty() {
                *param = Some(part.parse().ok().filter(|_| !part.starts_with('+'))?);
            }
        }
        let is_index = parts.len() == 1;
        if is_index {
            params[1] = Some(params[0].unwrap_or(0) + 1);
        }
        nodes.push(Node::Slice(params, is_index));
        Some(())
    }

    /// A filter up to its `)]`; a closing parenthesis within quotes does not count.
    fn filter(&mut self) -> Option<Node> {
        let mut quote = None;
        let mut closed = false;
        let mut before = '\0';
        let mut end = None;
        for (at, c) in self.rest.char_indices() {
            match c {
                '\n' => return None,
                '"' | '\'' if quote.is_none() => quote = Some(c),
                '"' | '\'' => closed |= before != '\\' && quote == Some(c),
                ')' if quote.is_some() == closed => {
                    end = Some(at);
                    break;
                }
                _ => {}
            }
            before = c;
        }
        let end = end?;
        let inner = &self.rest[..end];
        self.rest = self.rest[end + 1..].strip_prefix(']')?;
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let split = inner.find(is_operator).filter(|at| *at > 0).and_then(|at| {
            let run = &inner[at..];
            // Something must be left to compare with, if only the operator's end.
            let width =
                run.find(|c| !is_operator(c)).or_else(|| run.len().checked_sub(1).filter(|w| *w > 0))?;
            Some((at, at + width))
        });
        let Some((from, to)) = split else { return Some(Node::Filter(self.nested(inner)?, None)) };
        let operator = match &inner[from..to] {
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            "==" => Operator::Equal,
            "!=" => Operator::NotEqual,
            _ => Operator::Unknown,
        };
        Some(Node::Filter(self.nested(&inner[..from])?, Some((operator, self.nested(&inner[to..])?))))
    }
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

/// The values that the nodes lead to; nothing if the original would complain.
fn evaluate<'a>(nodes: &[Node], input: Found<'a>) -> Option<Found<'a>> {
    nodes.iter().try_fold(input, |found, node| step(node, found))
}

fn step<'a>(node: &Node, input: Found<'a>) -> Option<Found<'a>> {
    let mut found = Vec::new();
    match node {
        Node::Unknown => return None,
        Node::Constant(value @ Value::String(_)) => found.push(Cow::Owned(value.clone())),
        Node::Constant(value) => found.extend(input.iter().map(|_| Cow::Owned(value.clone()))),
        Node::Field(name) => found.extend(input.into_iter().filter_map(|value| get(value, name))),
        Node::Wildcard => input.into_iter().for_each(|value| found.extend(children(value))),
        Node::Recursive => input.into_iter().for_each(|value| descend(value, &mut found)),
        Node::Union(lists) => {
            for list in lists {
                found.extend(evaluate(list, input.clone())?);
            }
        }
        Node::Slice(params, is_index) => {
            for value in input.into_iter().filter(|value| !value.is_null()) {
                let items = list(value)?;
                let (from, to, step) = bounds(*params, *is_index, items.len())?;
                if from == to {
                    return Some(found);
                }
                found.extend(items.into_iter().take(to).skip(from).step_by(step));
            }
        }
        Node::Filter(left, test) => {
            for value in input {
                let Cow::Borrowed(Value::Array(items)) = value else { return None };
                for item in items {
                    if passes(left, test.as_ref(), item)? {
                        found.push(Cow::Borrowed(item));
                    }
                }
            }
        }
    }
    Some(found)
}

fn get<'a>(value: Cow<'a, Value>, name: &str) -> Option<Cow<'a, Value>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        Cow::Owned(_) => None,
    }
}

/// The items of a list; nothing if it is none. Values that are not of the object are scalars.
fn list(value: Cow<'_, Value>) -> Option<Found<'_>> {
    match value {
        Cow::Borrowed(Value::Array(items)) => Some(items.iter().map(Cow::Borrowed).collect()),
        _ => None,
    }
}

fn children(value: Cow<'_, Value>) -> Found<'_> {
    match value {
        Cow::Borrowed(Value::Object(fields)) => fields.values().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::String(text)) => text.bytes().map(|b| Cow::Owned(b.into())).collect(),
        _ => Vec::new(),
    }
}

fn descend<'a>(value: Cow<'a, Value>, found: &mut Found<'a>) {
    let below = children(value.clone());
    if !below.is_empty() {
        found.push(value);
        below.into_iter().for_each(|child| descend(child, found));
    }
}

/// From where to where a slice goes and in which steps; nothing if it is out of bounds.
fn bounds(params: [Option<i64>; 3], is_index: bool, length: usize) -> Option<(usize, usize, usize)> {
    let length = i64::try_from(length).ok()?;
    let from = params[0].unwrap_or(0);
    let from = if from < 0 { from + length } else { from };
    let to = params[1].unwrap_or(length);
    let to = if to < 0 || (to == 0 && is_index) { to + length } else { to };
    if from == to {
        return Some((0, 0, 1));
    }
    if from >= length || from < 0 || to > length || to < 0 || from > to {
        return None;
    }
    let step = params[2].unwrap_or(1);
    Some((from as usize, to as usize, usize::try_from(step).ok().filter(|step| *step > 0)?))
}

fn passes(left: &[Node], test: Option<&(Operator, Vec<Node>)>, item: &Value) -> Option<bool> {
    let lefts = evaluate(left, vec![Cow::Borrowed(item)]);
    let Some((operator, right)) = test else {
        return Some(lefts.is_some_and(|lefts| !lefts.is_empty()));
    };
    let lefts = lefts?;
    if lefts.is_empty() {
        return Some(false);
    }
    let rights = evaluate(right, vec![Cow::Borrowed(item)])?;
    match (lefts.as_slice(), rights.as_slice()) {
        (_, []) => Some(false),
        ([left], [right]) => compare(*operator, left, right),
        _ => None,
    }
}

/// Scalars of one kind can be compared; booleans only for equality.
fn compare(operator: Operator, left: &Value, right: &Value) -> Option<bool> {
    let order = match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => {
            return match operator {
                Operator::Equal => Some(a == b),
                Operator::NotEqual => Some(a != b),
                _ => None,
            };
        }
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
            _ => return None,
        },
        _ => return None,
    };
    match operator {
        Operator::Less => Some(order == Some(Ordering::Less)),
        Operator::LessOrEqual => Some(matches!(order, Some(Ordering::Less | Ordering::Equal))),
        Operator::Greater => Some(!matches!(order, Some(Ordering::Less | Ordering::Equal))),
        Operator::GreaterOrEqual => Some(order != Some(Ordering::Less)),
        Operator::Equal => Some(order == Some(Ordering::Equal)),
        Operator::NotEqual => Some(order != Some(Ordering::Equal)),
        Operator::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_find_what_they_find_in_client_go() {
        let object = json!({"a": {"b.c": 1, "list": [1, 2, 3], "n": null}, "s": "text",
            "conditions": [{"type": "Ready", "status": "True", "n": 1}, {"type": "A)", "status": "False", "n": 2}]});
        for (path, expected) in [
            (".s", Some(json!("text"))),
            (".a.b\\.c", Some(json!(1))),
            (".a['b\\.c']", Some(json!(1))),
            (".a.n", Some(json!(null))),
            (".missing.deep", None),
            (".a.list[0]", Some(json!(1))),
            (".a.list[-1]", Some(json!(3))),
            (".a.list[1:3]", Some(json!(2))),
            (".a.list[::2]", Some(json!(1))),
            (".a.list[*]", Some(json!(1))),
            (".a.list[7]", None),
            (".a.list[2,0]", Some(json!(3))),
            (".s[0]", None),
            (r#".conditions[?(@.type=="Ready")].status"#, Some(json!("True"))),
            (r#".conditions[?(@.type == "A)")].status"#, Some(json!("False"))),
            (".conditions[?(@.type=='B')].status", None),
            (".conditions[?(@.n>1)].type", Some(json!("A)"))),
            (".conditions[?(@.n>=1.5)].type", None),
            (".conditions[?(@.missing)].type", None),
            ("..status", Some(json!("True"))),
            (".a.*", Some(json!(1))),
            (".", None),
        ] {
            let path_read = Path::parse(path).unwrap_or_else(|| panic!("{path}"));
            assert_eq!(path_read.first(&object).map(Cow::into_owned), expected, "{path}");
        }
        let deep = ".a[?(@".repeat(100_000);
        for bad in
            [".a[", ".a[x]", ".a[?(@.b", ".a....b", ".a[?(@.b==\"c)]", ".a[?(@.b==)]", "\n", "#", &deep]
        {
            assert!(Path::parse(bad).is_none(), "{bad:.20}");
        }
    }
}
