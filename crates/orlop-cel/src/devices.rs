//! Selectors of devices: whether an expression of a ResourceClaim or DeviceClass compiles.

use std::collections::BTreeMap;

use crate::check::{Scope, Structs, check};
use crate::parser::parse;
use crate::program::{CompileError, instantiation_fault};
use crate::source::{Issue, render};
use crate::types::Type;

const DEVICE: &str = "kubernetes.DRADevice";

/// Refuses what does not compile. Expressions with `cel.bind` are taken as they are, and costs are not estimated.
pub fn check_selector(source: &str) -> Result<(), CompileError> {
    if source.contains("cel.bind(") {
        return Ok(());
    }
    let refuse = |issues: Vec<Issue>| CompileError::Issues(render(source, &issues));
    let fields = [
        ("driver", "string"),
        ("allowMultipleAllocations", "bool"),
        ("attributes", "map<string,map<string,dyn>>"),
        ("capacity", "map<string,map<string,quantity>>"),
    ];
    let fields: BTreeMap<String, Type> =
        fields.into_iter().map(|(name, ty)| (name.to_owned(), Type::read(ty))).collect();
    let structs = Structs::from([(DEVICE.into(), fields)]);
    let variables = [("device", Type::Struct(DEVICE.into()))];
    let scope = Scope { variables: &variables, structs: &structs, patches: false };
    let checked = check(parse(source).map_err(refuse)?, scope).map_err(refuse)?;
    if !matches!(checked.output, Type::Bool | Type::Dyn) {
        let found = checked.output.go_name();
        return Err(CompileError::Output(format!("must evaluate to bool or the unknown type, not {found}")));
    }
    match instantiation_fault(&checked.expr) {
        Some(why) => Err(CompileError::Instantiation(why)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::check_selector;

    #[test]
    fn selectors_compile_or_say_why_not() {
        for (source, expected) in [
            ("device.driver == 'a' && device.attributes['a'].model == 'b'", ""),
            ("device.capacity['a'].memory.compareTo(quantity('1Gi')) >= 0", ""),
            ("device.attributes['a'].shared", ""),
            ("cel.bind(a, device.attributes['a'], a.b)", ""),
            ("device.driver", "must evaluate to bool or the unknown type, not string"),
            ("device.none", "undefined field 'none'"),
            ("foo(", "Syntax error: mismatched input '<EOF>'"),
        ] {
            let found = check_selector(source).map_err(|error| error.to_string()).err().unwrap_or_default();
            assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{source}: {found}");
        }
    }
}
