//! Nothing that a chart can write makes the engine panic.

use orlop_gotemplate::{Limits, MissingKey, Set, Value};
use proptest::prelude::*;

/// Arguments that reach the corners of the functions.
const WORDS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "3",
    "1.5",
    "9223372036854775807",
    "-9223372036854775808",
    "1e300",
    "true",
    "nil",
    "\"\"",
    "\"a\"",
    "\"é\\n😀\"",
    "\"\\xff\"",
    "\"(a\"",
    "\"[^\\\\w-\"",
    "\"a{2,3}*\"",
    "\">=1.x || <2\"",
    "(list)",
    "(list 1 nil (list \"a\"))",
    "(dict)",
    "(dict \"a\" (dict \"b\" nil))",
    ".",
    "(until 3)",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_call_panics(
        function in 0usize..500,
        args in proptest::collection::vec(proptest::sample::select(WORDS.to_vec()), 0..4),
    ) {
        let functions = orlop_helm::sprig::functions();
        let name = functions[function % functions.len()].0;
        let limits = Limits { steps_max: 10_000, output_max: 1 << 28, ..Limits::default() };
        let mut set = Set::new().option(MissingKey::Zero).limits(limits).funcs(functions);
        if let Ok(template) = set.parse("t", format!("{{{{ {name} {} }}}}", args.join(" "))) {
            let _ = set.execute_template(&template, &Value::map([("a", Value::int(1))]), &mut Vec::new());
        }
    }

    #[test]
    fn any_string_becomes_yaml(text in ".{0,200}", key in ".{0,150}") {
        let value = Value::map([(key.as_str(), Value::list(vec![text.as_str().into()]))]);
        let _ = orlop_helm::yaml::to_yaml(&value);
    }

    #[test]
    fn any_expression_is_compiled_or_refused(pattern in "[\\\\\\[\\]{}()*+?^$|a-c0-9,:&~-]{0,16}") {
        let mut set = Set::new().funcs(orlop_helm::sprig::functions());
        let data = Value::map([("p", pattern.into())]);
        let template = set.parse("t", "{{ regexMatch .p \"abc\" }}").unwrap();
        prop_assert!(set.execute_template(&template, &data, &mut Vec::new()).is_ok());
    }
}
