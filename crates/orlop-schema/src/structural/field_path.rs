//! Paths into a schema, such as `.spec.replicas` or `.map['key']`, as definitions write them.

use super::Schema;
use crate::field::Path;

/// Whether a path may use brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrays {
    /// It may.
    Allowed,
    /// It may not.
    Refused,
}

/// A path that leads nowhere, in the words of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PathError(String);

/// Follows a path; returns it in the form of field errors, and the schema it leads to.
pub fn resolve<'a>(
    path: &str,
    schema: &'a Schema,
    arrays: Arrays,
) -> Result<(Path, Option<&'a Schema>), PathError> {
    let fail = |why: &str| PathError(why.to_owned());
    let mut tokens = tokens(path).into_iter();
    let mut here = Some(schema);
    let mut found = Path::root();
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next().ok_or_else(|| fail("unexpected end of JSON path"))?.to_owned(),
            "[" if arrays == Arrays::Refused => return Err(fail("array notation is not allowed")),
            "[" => {
                let quoted = tokens.next().ok_or_else(|| fail("unexpected end of JSON path"))?;
                let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let Some(inner) = inner else {
                    return Err(PathError(format!("expected single quoted string but got {quoted}")));
                };
                inner.replace("\\'", "'").replace("\\\\", "\\")
            }
            other => return Err(PathError(format!("expected [ or . but got: {other}"))),
        };
        let nowhere = || fail("does not refer to a valid field");
        let schema = here.ok_or_else(nowhere)?;
        if !schema.properties.is_empty() {
            found = found.child(&name);
            here = Some(schema.properties.get(&name).ok_or_else(nowhere)?);
        } else if schema.additional.is_some() {
            found = found.key(&name);
            here = schema.additional.schema();
        } else {
            return Err(nowhere());
        }
        if token == "[" {
            match tokens.next() {
                Some("]") => {}
                Some(other) => return Err(PathError(format!("expected ] but got {other}"))),
                None => return Err(fail("unexpected end of JSON path")),
            }
        }
    }
    Ok((found, here))
}

/// Delimiters, quoted strings, and what stands between them.
fn tokens(path: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let end = if let Some(quoted) = rest.strip_prefix('\'') {
            let mut escaped = false;
            let close = quoted.char_indices().find(|(_, c)| {
                let closes = *c == '\'' && !escaped;
                escaped = *c == '\\';
                closes
            });
            close.map_or(rest.len(), |(index, _)| index + 2)
        } else {
            match rest.find(['.', '[', ']']) {
                Some(0) => 1,
                Some(end) => end,
                None => rest.len(),
            }
        };
        let (token, tail) = rest.split_at(end);
        all.push(token);
        rest = tail;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_schemas_or_say_why_not() {
        let schema = Schema::parse(&json!({"properties": {
            "a": {"properties": {"b": {"type": "string"}}},
            "m": {"additionalProperties": {"type": "integer"}},
        }}));
        for (path, arrays, wanted) in [
            (".a.b", Arrays::Refused, Ok(("a.b", "string"))),
            (".m.k", Arrays::Refused, Ok(("m[k]", "integer"))),
            (".m['k.l']", Arrays::Allowed, Ok(("m[k.l]", "integer"))),
            (".m['k']", Arrays::Refused, Err("array notation is not allowed")),
            (".a.c", Arrays::Refused, Err("does not refer to a valid field")),
            (".a.b.c", Arrays::Refused, Err("does not refer to a valid field")),
            ("a", Arrays::Refused, Err("expected [ or . but got: a")),
            (".", Arrays::Refused, Err("unexpected end of JSON path")),
            (".m[k]", Arrays::Allowed, Err("expected single quoted string but got k")),
        ] {
            let found = resolve(path, &schema, arrays);
            let found =
                found.as_ref().map(|(path, schema)| (path.as_str(), schema.map_or("", |s| s.ty.as_str())));
            assert_eq!(found.map_err(ToString::to_string), wanted.map_err(str::to_owned), "{path}");
        }
    }
}
