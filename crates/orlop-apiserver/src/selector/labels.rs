//! Label selectors: `app=a,tier in (x, y),!old`.

use orlop_schema::names;
use serde_json::Value;
use std::collections::BTreeSet;

/// A conjunction of requirements; an empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    /// Reads a selector; the error is worded as in Kubernetes.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Parser { tokens: lex(text), at: 0 }.selector()
    }

    /// Reads a `LabelSelector` object (`matchLabels`, `matchExpressions`). A missing one matches nothing, an
    /// empty one everything; what is malformed matches nothing.
    pub(crate) fn from_object(selector: &Value) -> Option<Self> {
        let mut all = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let wanted = BTreeSet::from([value.as_str()?.to_owned()]);
            all.push(Requirement { key: key.clone(), test: Test::In(wanted) });
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let key = expression.get("key")?.as_str()?.to_owned();
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values: BTreeSet<String> = values.filter_map(|v| Some(v.as_str()?.to_owned())).collect();
            let test = match expression.get("operator")?.as_str()? {
                "In" => Test::In(values),
                "NotIn" => Test::NotIn(values),
                "Exists" => Test::Exists,
                "DoesNotExist" => Test::Absent,
                _ => return None,
            };
            all.push(Requirement { key, test });
        }
        selector.is_object().then_some(Self(all))
    }

    /// Whether everything matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub(crate) fn matches(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.iter().find(|(key, _)| **key == *requirement.key).map(|(_, value)| &**value);
            match (&requirement.test, value) {
                (Test::Exists, value) => value.is_some(),
                (Test::Absent, value) => value.is_none(),
                (Test::In(values), value) => value.is_some_and(|v| values.contains(v)),
                (Test::NotIn(values), value) => value.is_none_or(|v| !values.contains(v)),
                (Test::Above(limit), value) => number(value).is_some_and(|n| n > *limit),
                (Test::Below(limit), value) => number(value).is_some_and(|n| n < *limit),
            }
        })
    }
}

fn number(value: Option<&str>) -> Option<i64> {
    value?.parse().ok()
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Symbol(&'static str),
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(text) => text,
            Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

const SYMBOLS: [&str; 9] = ["==", "!=", "(", ")", ",", "!", "=", ">", "<"];

fn is_special(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn lex(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t', '\r', '\n']);
    while !rest.is_empty() {
        let taken = if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            tokens.push(Token::Symbol(symbol));
            symbol.len()
        } else {
            let end =
                rest.find(|c| is_special(c) || matches!(c, ' ' | '\t' | '\r' | '\n')).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            end
        };
        rest = rest[taken..].trim_start_matches([' ', '\t', '\r', '\n']);
    }
    tokens
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Token {
        self.tokens.get(self.at).cloned().unwrap_or(Token::End)
    }

    fn take(&mut self) -> Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(mut self) -> Result<LabelSelector, String> {
        let mut all = Vec::new();
        loop {
            match self.peek() {
                Token::Word(_) | Token::Symbol("!") => {
                    let requirement = self.requirement();
                    all.push(requirement.map_err(|why| format!("unable to parse requirement: {why}"))?);
                    match self.take() {
                        Token::End => break,
                        Token::Symbol(",") => match self.peek() {
                            Token::Word(_) | Token::Symbol("!") => {}
                            other => return Err(expected(&other, "identifier after ','")),
                        },
                        other => return Err(expected(&other, "',' or 'end of string'")),
                    }
                }
                Token::End => break,
                other => return Err(expected(&other, "!, identifier, or 'end of string'")),
            }
        }
        all.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(LabelSelector(all))
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.take();
        let absent = token == Token::Symbol("!");
        if absent {
            token = self.take();
        }
        let Token::Word(key) = token else { return Err(expected(&token, "identifier")) };
        let wrong = names::qualified_name(&key);
        if !wrong.is_empty() {
            return Err(format!("key: Invalid value: \"{key}\": {}", wrong.join("; ")));
        }
        if absent {
            return Ok(Requirement { key, test: Test::Absent });
        }
        let test = match self.peek() {
            Token::End | Token::Symbol(",") => Test::Exists,
            _ => self.test(&key)?,
        };
        Ok(Requirement { key, test })
    }

    fn test(&mut self, key: &str) -> Result<Test, String> {
        let operator = self.take();
        let values = match operator.text() {
            "in" | "notin" => self.values()?,
            "=" | "==" | "!=" | ">" | "<" => BTreeSet::from([self.exact_value()?]),
            _ => return Err(expected(&operator, "in, notin, =, ==, !=, gt, lt")),
        };
        if matches!(operator.text(), ">" | "<") {
            let value = values.first().map(String::as_str).unwrap_or_default();
            let limit = value.parse().map_err(|_| {
                let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                format!("values[0]: Invalid value: \"{value}\": {detail}")
            })?;
            return Ok(if operator.text() == ">" { Test::Above(limit) } else { Test::Below(limit) });
        }
        for (n, value) in values.iter().enumerate() {
            let wrong = names::label_value(value);
            if !wrong.is_empty() {
                return Err(format!("values[{n}][{key}]: Invalid value: \"{value}\": {}", wrong.join("; ")));
            }
        }
        Ok(if matches!(operator.text(), "notin" | "!=") { Test::NotIn(values) } else { Test::In(values) })
    }

    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let open = self.take();
        if open != Token::Symbol("(") {
            // The original has no comma here.
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        let mut values = BTreeSet::new();
        match self.peek() {
            Token::Word(_) | Token::Symbol(",") => {}
            Token::Symbol(")") => {
                // No value at all reads as the empty value.
                self.take();
                return Ok(BTreeSet::from([String::new()]));
            }
            other => return Err(expected(&other, "',', ')' or identifier")),
        }
        loop {
            match self.take() {
                Token::Word(value) => {
                    values.insert(value);
                    match self.peek() {
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => break,
                        other => return Err(expected(&other, "',' or ')'")),
                    }
                }
                Token::Symbol(",") => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    match self.peek() {
                        Token::Symbol(")") => {
                            values.insert(String::new());
                            break;
                        }
                        Token::Symbol(",") => {
                            self.take();
                            values.insert(String::new());
                        }
                        _ => {}
                    }
                }
                other => return Err(expected(&other, "',', or identifier")),
            }
        }
        self.take();
        Ok(values)
    }

    fn exact_value(&mut self) -> Result<String, String> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(String::new()),
            Token::Word(value) => {
                self.take();
                Ok(value)
            }
            other => Err(expected(&other, "identifier")),
        }
    }
}

fn expected(found: &Token, what: &str) -> String {
    format!("found '{}', expected: {what}", found.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<(Box<str>, Box<str>)> {
        text.split(',').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
    }

    #[test]
    fn selectors_match() {
        for (selector, object, expected) in [
            ("", "a=1", true),
            ("a", "a=1", true),
            ("!a", "a=1", false),
            ("!a", "b=1", true),
            ("a=1", "a=1", true),
            ("a==1,b!=2", "a=1,b=2", false),
            ("a!=1", "b=1", true),
            ("a in (1, 2)", "a=2", true),
            ("a notin (1,2)", "a=3", true),
            ("a notin (1,2)", "", true),
            ("a>1", "a=2", true),
            ("a<1", "a=x", false),
            ("a=", "a=", true),
            ("in in (in)", "in=in", true),
        ] {
            let parsed = LabelSelector::parse(selector).expect(selector);
            assert_eq!(parsed.matches(&labels(object)), expected, "{selector} on {object}");
        }
    }

    #[test]
    fn bad_selectors_say_what_was_expected() {
        for (selector, message) in [
            ("app in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("app===a", "unable to parse requirement: found '=', expected: identifier"),
            (",", "found ',', expected: !, identifier, or 'end of string'"),
            ("(", "found '(', expected: !, identifier, or 'end of string'"),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ] {
            assert_eq!(LabelSelector::parse(selector), Err(message.to_owned()), "{selector}");
        }
    }
}
