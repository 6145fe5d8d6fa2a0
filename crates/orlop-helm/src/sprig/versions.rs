//! Semantic versions in templates.

use std::rc::Rc;

use orlop_gotemplate::{CallResult, Func, Object, Str, Type, Value};

use super::{INT, func, strval, text};
use crate::semver::{Constraints, Version};

pub(super) fn functions() -> Vec<(&'static str, Func)> {
    vec![
        ("semver", func(&[Type::Str], Type::Named("*semver.Version".into()), semver)),
        ("semverCompare", func(&[Type::Str, Type::Str], Type::Bool, compare)),
    ]
}

fn semver(args: &[Value]) -> CallResult {
    let version = Version::parse(&String::from_utf8_lossy(text(&args[0])))?;
    Ok(Value::Object(Rc::new(Semver(version))))
}

fn compare(args: &[Value]) -> CallResult {
    let constraints = Constraints::parse(&String::from_utf8_lossy(text(&args[0])))?;
    let version = Version::parse(&String::from_utf8_lossy(text(&args[1])))?;
    Ok(constraints.check(&version).into())
}

/// A version with the methods of `*semver.Version`.
struct Semver(Version);

impl Object for Semver {
    fn type_name(&self) -> Rc<str> {
        "*semver.Version".into()
    }

    fn string(&self) -> Option<Str> {
        Some(self.0.to_string().into())
    }

    fn method(&self, name: &[u8]) -> Option<Rc<Func>> {
        let uint = Type::Uint(orlop_gotemplate::Uint::U64);
        let version = &self.0;
        let number = |number: u64| Value::Uint(orlop_gotemplate::Uint::U64, number);
        let (result, value) = match name {
            b"Major" => (uint, number(version.major)),
            b"Minor" => (uint, number(version.minor)),
            b"Patch" => (uint, number(version.patch)),
            b"Prerelease" => (Type::Str, version.prerelease.as_str().into()),
            b"Metadata" => (Type::Str, version.metadata.as_str().into()),
            b"Original" => (Type::Str, version.original.as_str().into()),
            b"String" => (Type::Str, version.to_string().into()),
            b"Compare" | b"Equal" | b"LessThan" | b"GreaterThan" => {
                return Some(Rc::new(self.comparison(name)));
            }
            _ => return None,
        };
        Some(Rc::new(Func::new([], result, move |_, _| Ok(value.clone()))))
    }
}

impl Semver {
    fn comparison(&self, name: &[u8]) -> Func {
        let (version, name) = (self.0.clone(), name.to_vec());
        let result = if name == b"Compare" { INT } else { Type::Bool };
        Func::new([Type::Named(self.type_name())], result, move |_, args| {
            let other = Version::parse(&strval(&args[0]).to_text())?;
            let order = version.compare(&other);
            Ok(match name.as_slice() {
                b"Equal" => order.is_eq().into(),
                b"LessThan" => order.is_lt().into(),
                b"GreaterThan" => order.is_gt().into(),
                _ => Value::int(order as i64),
            })
        })
    }
}
