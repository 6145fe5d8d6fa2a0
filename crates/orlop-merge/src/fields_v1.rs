//! Field sets as JSON: the `fieldsV1` of a managed fields entry.

use serde_json::{Map, Value};

use crate::fieldset::{FieldSet, Node};
use crate::path::PathElement;
use crate::value::DEPTH_MAX;

/// Why a `fieldsV1` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldsError {
    /// A key is not `f:…`, `k:…`, `v:…` or `i:…` with proper content.
    #[error("parsing key as path element: {0}")]
    Key(String),
    /// A value is not an object.
    #[error("expected object for {0}")]
    NotAnObject(String),
    /// It nests too deep.
    #[error("exceeded max depth")]
    Depth,
}

impl FieldSet {
    /// The set as `fieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(self.to_map())
    }

    /// The set a `fieldsV1` stands for; elements of unknown kinds are left out.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, FieldsError> {
        match fields {
            Value::Null => Ok(Self::new()),
            Value::Object(map) => Ok(read(map, DEPTH_MAX)?.set),
            other => Err(FieldsError::NotAnObject(other.to_string())),
        }
    }

    /// As [`from_fields_v1`](Self::from_fields_v1), and whether writing the set gives the same JSON again.
    pub(crate) fn read_fields_v1(fields: &Value) -> Result<(Self, bool), FieldsError> {
        match fields {
            Value::Object(map) => read(map, DEPTH_MAX).map(|read| (read.set, read.canonical)),
            other => Ok((Self::from_fields_v1(other)?, false)),
        }
    }

    fn to_map(&self) -> Map<String, Value> {
        let mut map = Map::new();
        for node in &self.nodes {
            let mut children = node.children.to_map();
            if node.member && !children.is_empty() {
                children.insert(".".into(), Value::Object(Map::new()));
            }
            map.insert(to_key(&node.element), Value::Object(children));
        }
        map
    }
}

/// What a map says: paths below it, and whether its own path is a member.
struct Read {
    set: FieldSet,
    member: bool,
    canonical: bool,
}

fn read(map: &Map<String, Value>, depth: usize) -> Result<Read, FieldsError> {
    if depth == 0 {
        return Err(FieldsError::Depth);
    }
    let mut out =
        Read { set: FieldSet { nodes: Vec::with_capacity(map.len()) }, member: false, canonical: true };
    for (key, value) in map {
        if key == "." {
            out.member = true;
            out.canonical &= map.len() > 1 && value.as_object().is_some_and(Map::is_empty);
            continue;
        }
        let Some(element) = from_key(key)? else {
            out.canonical = false;
            continue;
        };
        out.canonical &= matches!(element, PathElement::Field(_)) || to_key(&element) == *key;
        let (children, member) = match value {
            Value::Object(map) if map.is_empty() => (FieldSet::new(), true),
            Value::Object(map) => {
                let below = read(map, depth - 1)?;
                out.canonical &= below.canonical;
                (below.set, below.member)
            }
            Value::Null => {
                out.canonical = false;
                (FieldSet::new(), true)
            }
            _ => return Err(FieldsError::NotAnObject(key.clone())),
        };
        out.set.add(Node { element, member, children });
    }
    out.member |= out.set.is_empty();
    Ok(out)
}

fn to_key(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => {
            let mut key = String::with_capacity(name.len() + 2);
            key.push_str("f:");
            key.push_str(name);
            key
        }
        PathElement::Key(fields) => {
            let mut key = String::from("k:{");
            for (index, (name, value)) in fields.iter().enumerate() {
                if index > 0 {
                    key.push(',');
                }
                push_json_string(&mut key, name);
                key.push(':');
                match value {
                    Value::String(text) => push_json_string(&mut key, text),
                    other => key.push_str(&other.to_string()),
                }
            }
            key.push('}');
            key
        }
        PathElement::Value(value) => format!("v:{value}"),
        PathElement::Index(index) => format!("i:{index}"),
    }
}

fn push_json_string(out: &mut String, text: &str) {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte) && !matches!(byte, b'"' | b'\\')) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

/// `None` for a kind of element this version does not know.
fn from_key(key: &str) -> Result<Option<PathElement>, FieldsError> {
    let bad = |why: &str| FieldsError::Key(format!("{why}: {key}"));
    let (kind, content) = match key.split_at_checked(1) {
        _ if key.len() < 2 => return Err(FieldsError::Key("key must be 2 characters long:".into())),
        Some((kind, rest)) => match rest.strip_prefix(':') {
            Some(content) => (kind, content),
            None => return Err(bad("missing colon")),
        },
        None => return Err(bad("missing colon")),
    };
    Ok(Some(match kind {
        "f" => PathElement::field(content),
        "v" => PathElement::value(first_value(content).ok_or_else(|| bad("invalid value"))?),
        "k" => match first_value(content) {
            Some(Value::Object(fields)) => PathElement::from_key_fields(
                fields.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            ),
            Some(Value::Null) => PathElement::from_key_fields(Vec::new()),
            _ => return Err(bad("invalid key")),
        },
        "i" => PathElement::Index(content.parse().map_err(|_| bad("invalid index"))?),
        _ => return Ok(None),
    }))
}

/// The first JSON value of a text; what follows is ignored, as the original ignores it.
fn first_value(text: &str) -> Option<Value> {
    serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_v1_reads_and_writes() {
        let fields = json!({"f:spec": {"f:containers": {
            "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:image": {}},
            "v:\"x\"": {},
            "i:3": {},
        }}});
        let set = FieldSet::from_fields_v1(&fields).unwrap();
        assert_eq!(
            set.to_string(),
            ".spec.containers[containerPort=80,protocol=\"TCP\"]\n.spec.containers[=\"x\"]\n.spec.containers[3]\n\
             .spec.containers[containerPort=80,protocol=\"TCP\"].image"
        );
        assert_eq!(set.to_fields_v1(), fields);
    }

    #[test]
    fn odd_fields_v1() {
        let cases = [
            (json!(null), Some("")),
            (json!({}), Some("")),
            (json!({"f:a": null}), Some(".a")),
            (json!({"f:a": {"z:new": {}}}), Some(".a")),
            (json!({"z:new": {"f:a": {}}}), Some("")),
            (json!({".": {}, "f:a": {}}), Some(".a")),
            (json!({"f:": {}}), Some(".")),
            (json!({"v:1 garbage": {}}), Some("[=1]")),
            (json!({"x": {}}), None),
            (json!({"fa": {}}), None),
            (json!({"é": {}}), None),
            (json!({"k:[1]": {}}), None),
            (json!({"k:{": {}}), None),
            (json!({"i:x": {}}), None),
            (json!({"f:a": 1}), None),
            (json!([]), None),
        ];
        for (fields, want) in cases {
            let got = FieldSet::from_fields_v1(&fields).ok().map(|set| set.to_string());
            assert_eq!(got.as_deref(), want, "{fields}");
        }
    }
}
