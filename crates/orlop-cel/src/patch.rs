//! What mutating policies give: apply configurations and JSON patches, as JSON.

use serde_json::{Map, Number, Value as Json};

use crate::base64;
use crate::library;
use crate::value::{Key, Object, Value};

/// Whole numbers up to here are the same in JSON everywhere.
const WHOLE_MAX: i64 = (1 << 53) - 1;

impl Value {
    /// The value as JSON, or why it is none.
    pub fn to_json(&self) -> Result<Json, String> {
        Ok(match self {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) => Json::from(*value),
            Value::Uint(value) => Json::from(*value),
            Value::Double(value) if value.fract() == 0.0 && value.abs() <= WHOLE_MAX as f64 => {
                Json::from(*value as i64)
            }
            Value::Double(value) => Number::from_f64(*value).map_or(Json::Null, Json::Number),
            Value::String(text) => Json::from(&**text),
            Value::Bytes(bytes) => Json::from(base64::encode(bytes)),
            Value::Duration(_) | Value::Timestamp(_) => Json::from(library::display(self)),
            Value::List(list) => {
                Json::Array(list.items.iter().map(Value::to_json).collect::<Result<_, _>>()?)
            }
            Value::Map(map) => {
                let mut fields = Map::new();
                for (key, value) in &**map {
                    let Key::String(key) = key else {
                        return Err(format!("map key {key:?} is not a string"));
                    };
                    fields.insert(key.to_string(), value.to_json()?);
                }
                Json::Object(fields)
            }
            Value::Object(object) => {
                let mut fields = Map::new();
                for (name, value) in &object.fields {
                    let value =
                        value.to_json().map_err(|why| format!("fail to convert field {name:?}: {why}"))?;
                    fields.insert(name.to_string(), value);
                }
                Json::Object(fields)
            }
            other => return Err(format!("unable to convert {} to JSON", other.type_name())),
        })
    }

    /// An apply configuration: the JSON of an `Object{…}`.
    pub fn to_configuration(&self) -> Result<Json, String> {
        check_names(self)?;
        self.to_json()
    }

    /// A JSON patch: the JSON of a list of `JSONPatch{…}`.
    pub fn to_patch(&self) -> Result<Json, String> {
        const MISMATCH: &str = "type mismatch: JSONPatchType.expression should evaluate to array";
        let Value::List(list) = self else { return Err(MISMATCH.to_owned()) };
        let operations = list.items.iter().map(|item| match item {
            Value::Object(operation) if &*operation.name == "JSONPatch" => write_operation(operation),
            _ => Err(format!("{MISMATCH} of JSONPatch")),
        });
        operations.collect::<Result<Vec<_>, _>>().map(Json::Array)
    }
}

fn write_operation(operation: &Object) -> Result<Json, String> {
    let mut fields = Map::new();
    for name in ["op", "path", "from"] {
        let text = operation.fields.get(name).and_then(Value::as_str).unwrap_or_default();
        if name != "from" || !text.is_empty() {
            fields.insert(name.to_owned(), Json::from(text));
        }
    }
    if let Some(value) = operation.fields.get("value") {
        check_names(value)?;
        let json = value.to_json().map_err(|why| {
            format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}")
        })?;
        fields.insert("value".to_owned(), json);
    }
    Ok(Json::Object(fields))
}

/// Types of objects within an object must be named after the path that leads to them.
fn check_names(value: &Value) -> Result<(), String> {
    let Value::Object(root) = value else { return Ok(()) };
    let mut wrong = Vec::new();
    compare_names(value, &root.name, &mut wrong);
    if wrong.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", wrong.join("\n"))) }
}

fn compare_names(value: &Value, expected: &str, wrong: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            if *object.name != *expected {
                wrong.push(format!(
                    "unexpected type name \"{}\", expected \"{expected}\", which matches field name path from root \
                     Object type",
                    object.name
                ));
            }
            for (name, field) in &object.fields {
                compare_names(field, &format!("{expected}.{name}"), wrong);
            }
        }
        Value::List(list) => list.items.iter().for_each(|item| compare_names(item, expected, wrong)),
        Value::Map(map) => map.values().for_each(|item| compare_names(item, expected, wrong)),
        _ => {}
    }
}
