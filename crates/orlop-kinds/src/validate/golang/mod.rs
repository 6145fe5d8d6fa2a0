//! How the API server's Go code prints its own structures in messages.
//!
//! Validation there works on internal types, which have Go field names, no omitted fields and a fixed field
//! order. `layouts.txt` lists those types: each line is a type and its fields, written
//! `printed[?]=json:type`, where `?` marks a field that is left out when empty. In a type, `*` is a pointer,
//! `[` a list, `{` a map; the rest are scalars (`s i b f`), quantities (`q`), int-or-strings (`o`), bytes
//! (`y`), times (`t`), durations (`d`), raw JSON (`r`) or the name of another line.

mod diff;

use orlop_schema::field::go_escape;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

/// The fields of one Go type, in order.
type Layout = Vec<Field>;

struct Field {
    printed: &'static str,
    json: Vec<&'static str>,
    kind: &'static str,
    omitted_when_empty: bool,
}

fn layouts() -> &'static BTreeMap<&'static str, Layout> {
    static LAYOUTS: OnceLock<BTreeMap<&'static str, Layout>> = OnceLock::new();
    LAYOUTS.get_or_init(|| {
        include_str!("layouts.txt")
            .lines()
            .filter_map(|line| {
                let (name, fields) = line.split_once(' ')?;
                Some((name, fields.split(' ').filter_map(field).collect()))
            })
            .collect()
    })
}

fn field(text: &'static str) -> Option<Field> {
    let (printed, rest) = text.split_once('=')?;
    let (json, kind) = rest.split_once(':')?;
    let bare = printed.trim_end_matches('?');
    let omitted_when_empty = bare.len() != printed.len();
    Some(Field { printed: bare, json: json.split('/').collect(), kind, omitted_when_empty })
}

/// A value as Go would marshal it: ordered, complete.
enum Node {
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// The value of a Go type on one line, as it stands in `Invalid value: …`.
pub(crate) fn print(kind: &'static str, value: &Value) -> String {
    let mut out = String::new();
    node(kind, value).write(&mut out, None);
    out
}

/// The difference of two values of a Go type, as it follows messages about immutable specs.
pub(crate) fn difference(kind: &'static str, old: &Value, new: &Value) -> String {
    let pretty = |value| {
        let mut out = String::new();
        node(kind, value).write(&mut out, Some(0));
        out
    };
    diff::unified(&pretty(old), &pretty(new))
}

fn node(kind: &'static str, value: &Value) -> Node {
    if let Some(inner) = kind.strip_prefix('*') {
        return if value.is_null() { Node::Text("null".to_owned()) } else { node(inner, value) };
    }
    if let Some(inner) = kind.strip_prefix('[') {
        return match value.as_array() {
            Some(items) => Node::List(items.iter().map(|item| node(inner, item)).collect()),
            None => Node::Text("null".to_owned()),
        };
    }
    if let Some(inner) = kind.strip_prefix('{') {
        return match value.as_object() {
            Some(map) => Node::Object(map.iter().map(|(k, v)| (k.clone(), node(inner, v))).collect()),
            None => Node::Text("null".to_owned()),
        };
    }
    let zero = match kind {
        "s" | "y" if value.is_null() => {
            if kind == "s" {
                "\"\""
            } else {
                "null"
            }
        }
        "i" | "o" | "f" if value.is_null() => "0",
        "b" if value.is_null() => "false",
        "q" if value.is_null() => "\"0\"",
        "d" if value.is_null() => "\"0s\"",
        _ => "",
    };
    if !zero.is_empty() {
        return Node::Text(zero.to_owned());
    }
    let Some(layout) = layouts().get(kind) else {
        return Node::Text(go_escape(&value.to_string()));
    };
    let reshaped;
    let value = if kind == "core.PodSpec" {
        reshaped = internal_pod_spec(value);
        &reshaped
    } else {
        value
    };
    Node::Object(
        layout
            .iter()
            .filter_map(|field| {
                let found = field.json.iter().try_fold(value, |at, key| at.get(key)).unwrap_or(&Value::Null);
                if field.omitted_when_empty && is_zero(found) {
                    return None;
                }
                Some((field.printed.to_owned(), node(field.kind, found)))
            })
            .collect(),
    )
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
    }
}

/// Internally the host namespaces of a pod belong to its security context, which always exists.
fn internal_pod_spec(spec: &Value) -> Value {
    let Some(map) = spec.as_object() else { return json!({}) };
    let mut map: Map<String, Value> = map.clone();
    let mut context = map.get("securityContext").and_then(Value::as_object).cloned().unwrap_or_default();
    for key in ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"] {
        if let Some(value) = map.remove(key) {
            context.insert(key.to_owned(), value);
        }
    }
    map.insert("securityContext".to_owned(), Value::Object(context));
    Value::Object(map)
}

impl Node {
    /// Writes JSON, indented by one blank per level when a level is given.
    fn write(&self, out: &mut String, level: Option<usize>) {
        match self {
            Self::Text(text) => out.push_str(text),
            Self::List(items) if items.is_empty() => out.push_str("[]"),
            Self::Object(fields) if fields.is_empty() => out.push_str("{}"),
            Self::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    new_line(out, level.map(|l| l + 1));
                    item.write(out, level.map(|l| l + 1));
                }
                new_line(out, level);
                out.push(']');
            }
            Self::Object(fields) => {
                out.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    new_line(out, level.map(|l| l + 1));
                    let colon = if level.is_some() { ": " } else { ":" };
                    let _ = write!(out, "{}{colon}", go_escape(&Value::String(name.clone()).to_string()));
                    value.write(out, level.map(|l| l + 1));
                }
                new_line(out, level);
                out.push('}');
            }
        }
    }
}

fn new_line(out: &mut String, level: Option<usize>) {
    if let Some(level) = level {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', level));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_complete_and_in_go_order() {
        for (kind, value, text) in [
            (
                "core.ServicePort",
                json!({"protocol": "TCP", "port": 1}),
                r#"{"Name":"","Protocol":"TCP","AppProtocol":null,"Port":1,"TargetPort":0,"NodePort":0}"#,
            ),
            (
                "meta.LabelSelector",
                json!({"matchLabels": {"app": "<b>"}}),
                r#"{"matchLabels":{"app":"\u003cb\u003e"}}"#,
            ),
            ("apps.DeploymentStrategy", json!({"type": "Foo"}), r#"{"Type":"Foo","RollingUpdate":null}"#),
            ("*meta.LabelSelector", Value::Null, "null"),
        ] {
            assert_eq!(print(kind, &value), text);
        }
    }

    #[test]
    fn a_difference_shows_three_lines_around() {
        let text = difference(
            "core.ServicePort",
            &json!({"name": "a", "port": 1}),
            &json!({"name": "a", "port": 2}),
        );
        assert_eq!(
            text,
            "@@ -2,7 +2,7 @@\n  \"Name\": \"a\",\n  \"Protocol\": \"\",\n  \"AppProtocol\": null,\n- \"Port\": 1,\n+ \"Port\": 2,\n  \"TargetPort\": 0,\n  \"NodePort\": 0\n }\n"
        );
    }
}
