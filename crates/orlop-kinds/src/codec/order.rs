//! Objects as Go writes them: fields of structs in the order they are declared. Messages that quote a patched
//! object show which parts of it the patch went through, because those have become maps with sorted keys.

use crate::catalog::{Shape, TypeId, catalog};
use serde_json::Value;

/// Which parts of an object a patch has turned into sorted maps.
#[derive(Clone, Copy, Debug)]
pub enum Touched<'a> {
    /// All of it.
    Everything,
    /// Whatever this value has an object for.
    Like(&'a Value),
    /// Nothing.
    Nothing,
}

impl Touched<'_> {
    fn child(self, name: &str) -> Self {
        match self {
            Self::Like(patch) => match patch.get(name) {
                Some(below @ Value::Object(_)) => Self::Like(below),
                _ => Self::Nothing,
            },
            other => other,
        }
    }
}

/// An object of a type as the text that Go would have for it.
pub fn go_text(ty: TypeId, value: &Value, touched: Touched<'_>) -> String {
    let mut out = String::new();
    write(ty, value, touched, &mut out);
    out
}

fn write(ty: TypeId, value: &Value, touched: Touched<'_>, out: &mut String) {
    match (&catalog().get(ty).shape, value) {
        (Shape::Pointer(inner), value) => write(*inner, value, touched, out),
        (Shape::Struct(owner), Value::Object(map)) => {
            let mut names: Vec<&str> = map.keys().map(String::as_str).collect();
            if matches!(touched, Touched::Nothing) {
                let order = declared(ty);
                names.sort_by_key(|name| order.iter().position(|known| known == name).unwrap_or(usize::MAX));
            }
            out.push('{');
            for (n, name) in names.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(name).to_string());
                out.push(':');
                match owner.field(name) {
                    Some(field) => write(field.ty, &map[name], touched.child(name), out),
                    None => out.push_str(&map[name].to_string()),
                }
            }
            out.push('}');
        }
        (Shape::List(inner), Value::Array(items)) => {
            let inside = if matches!(touched, Touched::Everything) { touched } else { Touched::Nothing };
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write(*inner, item, inside, out);
            }
            out.push(']');
        }
        (_, value) => out.push_str(&value.to_string()),
    }
}

/// Names of a struct's JSON fields in the order Go declares them.
fn declared(ty: TypeId) -> Vec<&'static str> {
    let Shape::Struct(owner) = &catalog().get(ty).shape else { return Vec::new() };
    let mut names = Vec::new();
    for field in &owner.declared {
        if field.inline {
            names.extend(declared(field.ty));
        } else {
            names.push(field.name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn untouched_structs_keep_the_order_of_go() {
        let ty = catalog().type_of("", "v1", "ConfigMap").expect("there are config maps");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "1", "a": "2"},
            "metadata": {"creationTimestamp": "t", "name": "x", "labels": {"z": "1"}}});
        let patch = json!({"data": {"a": "2"}});
        assert_eq!(
            go_text(ty, &object, Touched::Like(&patch)),
            r#"{"apiVersion":"v1","data":{"a":"2","b":"1"},"kind":"ConfigMap","metadata":{"name":"x","creationTimestamp":"t","labels":{"z":"1"}}}"#
        );
        assert!(go_text(ty, &object, Touched::Everything).contains(r#""metadata":{"creationTimestamp""#));
    }
}
