//! The other way Kubernetes fills its structs: from a map, after a strategic merge patch. The result is that of
//! decoding JSON, but the errors read differently, and the first one in field order ends it.

use super::{DecodeError, Decoded, decode, time};
use crate::catalog::{Catalog, Shape, Struct, Type, TypeId, catalog};
use orlop_schema::quantity::Quantity;
use serde_json::{Map, Value};
use time::Layout;

/// Gives a map the form of a Go type, with the errors of `FromUnstructured`.
pub fn from_unstructured(ty: TypeId, mut value: Value) -> Result<Decoded, DecodeError> {
    check(catalog(), ty, &mut value).map_err(DecodeError)?;
    let mut decoded = decode(ty, value)?;
    decoded.strict.sort();
    Ok(decoded)
}

/// Refuses what does not fit; floats that are whole become the integers they stand for.
fn check(catalog: &Catalog, id: TypeId, value: &mut Value) -> Result<(), String> {
    let ty = catalog.get(id);
    match (&ty.shape, &mut *value) {
        (_, Value::Null) => Ok(()),
        (Shape::Pointer(inner), _) => check(catalog, *inner, value),
        (Shape::Struct(owner), Value::Object(map)) => check_fields(catalog, owner, map),
        (Shape::Struct(_), other) => Err(format!("cannot restore struct from: {}", kind_of(other))),
        (Shape::List(inner), Value::Array(items)) => {
            items.iter_mut().try_for_each(|item| check(catalog, *inner, item))
        }
        (Shape::Bytes, Value::String(text)) => super::base64::decode(text)
            .map(drop)
            .map_err(|error| format!("error decoding from json: {error}")),
        (Shape::Bytes, Value::Array(_)) => Ok(()),
        (Shape::List(_) | Shape::Bytes, other) => {
            Err(format!("cannot restore slice from {}", kind_of(other)))
        }
        (Shape::Map(inner), Value::Object(map)) => {
            map.values_mut().try_for_each(|item| check(catalog, *inner, item))
        }
        (Shape::Map(_), other) => Err(format!("cannot restore map from {}", kind_of(other))),
        (Shape::Time, other) => check_time(other, Layout::Seconds),
        (Shape::MicroTime, other) => check_time(other, Layout::Micros),
        (Shape::Quantity, other) => {
            let text = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            Quantity::parse(text.trim()).map(drop).map_err(|error| error.to_string())
        }
        (Shape::IntOrString, Value::String(_)) => Ok(()),
        (Shape::IntOrString, Value::Number(number)) if number.as_i64().is_some_and(fits_i32) => Ok(()),
        (Shape::IntOrString, other) => Err(into_go_value(other, "int32")),
        (Shape::String | Shape::Bool | Shape::Int(..) | Shape::Float, _) => check_scalar(ty, value),
        _ => Ok(()),
    }
}

/// The fields in the order they are declared, those of embedded structs in their place.
fn check_fields(catalog: &Catalog, owner: &Struct, map: &mut Map<String, Value>) -> Result<(), String> {
    for field in &owner.declared {
        match (&catalog.get(field.ty).shape, field.inline) {
            (Shape::Struct(embedded), true) => check_fields(catalog, embedded, map)?,
            _ => {
                if let Some(value) = map.get_mut(field.name) {
                    check(catalog, field.ty, value)?;
                }
            }
        }
    }
    Ok(())
}

fn check_scalar(ty: &Type, value: &mut Value) -> Result<(), String> {
    let convertible = match (&ty.shape, &*value) {
        (Shape::String, Value::String(_))
        | (Shape::Bool, Value::Bool(_))
        | (Shape::Float, Value::Number(_)) => {
            return Ok(());
        }
        (Shape::Int(..), Value::Number(number)) if !number.is_f64() => return Ok(()),
        (Shape::Int(..), Value::Number(number)) => match crate::json::integral(number) {
            Some(whole) => {
                *value = whole.into();
                return Ok(());
            }
            None => true,
        },
        // Go can make a string of an integer, one character long; that is not meant here.
        (Shape::String, Value::Number(number)) => !number.is_f64(),
        _ => false,
    };
    if convertible {
        return Err(format!("cannot convert {} to {}", kind_of(value), ty.go));
    }
    let kind = match &ty.shape {
        Shape::String => "string",
        Shape::Bool => "bool",
        Shape::Float => "float64",
        Shape::Int(_, max) if *max == i64::from(i32::MAX) => "int32",
        _ => "int64",
    };
    Err(format!("unrecognized type: {kind}"))
}

fn check_time(value: &Value, layout: Layout) -> Result<(), String> {
    match value {
        Value::String(text) => time::canonical(text, layout).map(drop),
        other => Err(into_go_value(other, "string")),
    }
}

fn into_go_value(value: &Value, go: &str) -> String {
    let kind = match value {
        Value::Number(number) if go != "string" => format!("number {number}"),
        other => super::kind_of(other).to_owned(),
    };
    format!("json: cannot unmarshal {kind} into Go value of type {go}")
}

fn fits_i32(number: i64) -> bool {
    i32::try_from(number).is_ok()
}

/// The Go kind of a value in a map.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_read_as_from_a_map() {
        for (spec, error) in [
            (json!({"replicas": "x"}), "unrecognized type: int32"),
            (json!({"replicas": 1.5}), "cannot convert float64 to int32"),
            (json!({"paused": 1}), "unrecognized type: bool"),
            (json!({"selector": "x"}), "cannot restore struct from: string"),
            (json!({"selector": {"matchLabels": []}}), "cannot restore map from slice"),
            (json!({"selector": {"matchLabels": {"a": 1}}}), "cannot convert int64 to string"),
            (json!({"template": {"spec": {"containers": {}}}}), "cannot restore slice from map"),
            (json!({"template": {"spec": {"restartPolicy": 1}}}), "cannot convert int64 to v1.RestartPolicy"),
        ] {
            let ty = catalog().type_of("apps", "v1", "Deployment").expect("built in");
            let found = from_unstructured(ty, json!({"spec": spec})).map(|decoded| decoded.value);
            assert_eq!(found, Err(DecodeError(error.to_owned())), "{spec}");
        }
    }

    #[test]
    fn whole_floats_are_integers_and_unknown_fields_are_sorted() {
        let ty = catalog().type_of("apps", "v1", "ReplicaSet").expect("built in");
        let value = json!({"zz": 1, "metadata": {"b": 1, "a": 1}, "spec": {"replicas": 2.0}});
        let decoded = from_unstructured(ty, value).expect("fits");
        assert_eq!(decoded.value["spec"]["replicas"], 2);
        assert_eq!(
            decoded.strict,
            [r#"unknown field "metadata.a""#, r#"unknown field "metadata.b""#, r#"unknown field "zz""#]
        );
    }
}
