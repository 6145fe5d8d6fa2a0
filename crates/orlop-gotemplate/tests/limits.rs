//! Hostile input ends with an error, within bounded time, memory and stack.

use orlop_gotemplate::{Func, Limits, Set, Type, Value};
use proptest::prelude::*;

fn run(set: &mut Set, text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let template = set.parse("t", text).map_err(|error| error.to_string())?;
    set.execute_template(&template, &Value::int(1), &mut out).map_err(|error| error.to_string())?;
    Ok(out)
}

fn include() -> Func {
    Func::new([Type::Str, Type::Any], Type::Str, |context, args| {
        let Value::Str(name) = &args[0] else { return Err("no name".into()) };
        Ok(Value::from(context.execute(name, &args[1])?))
    })
}

#[test]
fn recursion_ends_with_the_error_of_go() {
    for text in [
        r#"{{define "r"}}{{template "r" .}}{{end}}{{template "r" .}}"#,
        r#"{{define "r"}}{{if .}}{{with .}}{{range 1}}{{template "r" 1}}{{end}}{{end}}{{end}}{{end}}{{template "r" .}}"#,
        r#"{{define "r"}}{{(include "r" (print (print (or (include "r" .)))))}}{{end}}{{template "r" .}}"#,
    ] {
        let mut set = Set::new().funcs([("include", include())]);
        let error = run(&mut set, text).unwrap_err();
        assert!(error.ends_with("exceeded maximum template depth (100000)"), "{error}");
    }
}

#[test]
fn nesting_of_text_is_bounded() {
    let parens = format!("{{{{{}1{}}}}}", "(".repeat(100_000), ")".repeat(100_000));
    let ifs = "{{if 1}}".repeat(100_000);
    let chain = format!("{{{{if 0}}}}{}{{{{end}}}}", "{{else if 0}}".repeat(20_000));
    assert_eq!(run(&mut Set::new(), &parens).unwrap_err(), "template: t:1: max expression depth exceeded");
    assert_eq!(run(&mut Set::new(), &ifs).unwrap_err(), "template: t:1: max expression depth exceeded");
    assert_eq!(run(&mut Set::new(), &chain), Ok(Vec::new()));
}

#[test]
fn steps_and_output_are_bounded() {
    let limits = Limits { steps_max: 10_000, output_max: 100_000, ..Limits::default() };
    let mut set = Set::new().limits(limits);
    let error = run(&mut set, "{{range 1000000000}}{{end}}").unwrap_err();
    assert!(error.ends_with("exceeded maximum of 10000 steps"), "{error}");
    let error = run(&mut set, r#"{{$x := "ab"}}{{range 100}}{{$x = print $x $x}}{{end}}"#).unwrap_err();
    assert!(error.ends_with("exceeded maximum output of 100000 bytes"), "{error}");
    let error = run(&mut set, r#"{{range 1000}}{{printf "%1000d" 1}}{{end}}"#).unwrap_err();
    assert!(error.ends_with("exceeded maximum output of 100000 bytes"), "{error}");
}

#[test]
fn values_of_any_depth_are_printed_and_freed() {
    let mut value = Value::Nil;
    for i in 0..200_000 {
        value = if i % 2 == 0 { Value::list(vec![value]) } else { Value::map([("k", value)]) };
    }
    let printed = orlop_gotemplate::fmt::sprint(std::slice::from_ref(&value));
    assert!(printed.len() < 2000);
    drop(value);
}

#[test]
fn a_map_that_contains_itself_can_be_printed() {
    let value = Value::map([("a", Value::int(1))]);
    if let Value::Map(map) = &value {
        map.set("self", value.clone());
        assert!(orlop_gotemplate::fmt::sprint(std::slice::from_ref(&value)).ends_with(b"]"));
        map.remove(b"self");
    }
}

fn word() -> impl Strategy<Value = String> {
    let words = [
        "{{",
        "}}",
        "{{- ",
        " -}}",
        "(",
        ")",
        "|",
        ".",
        ".a",
        "$",
        "$x",
        ":=",
        "=",
        ",",
        " ",
        "\n",
        "\"",
        "`",
        "'",
        "if",
        "else",
        "end",
        "range",
        "with",
        "define",
        "template",
        "block",
        "break",
        "continue",
        "nil",
        "true",
        "1",
        "-1",
        "1.5e300",
        "0x1p-2",
        "1i",
        "\"%*d%[1]v\"",
        "printf",
        "print",
        "index",
        "slice",
        "len",
        "eq",
        "lt",
        "and",
        "or",
        "not",
        "call",
        "html",
        "js",
        "urlquery",
        "/*",
        "*/",
        "é",
        "\u{0}",
        "text",
    ];
    prop_oneof![8 => proptest::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => ".{0,4}"]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(words in proptest::collection::vec(word(), 0..40)) {
        let limits = Limits { steps_max: 10_000, output_max: 1_000_000, ..Limits::default() };
        let _ = run(&mut Set::new().limits(limits), &words.concat());
    }

    #[test]
    fn no_action_panics(words in proptest::collection::vec(word(), 0..12)) {
        let limits = Limits { steps_max: 10_000, output_max: 1_000_000, ..Limits::default() };
        let _ = run(&mut Set::new().limits(limits), &format!("{{{{$x := .}}}}{{{{{}}}}}", words.join(" ")));
    }

    #[test]
    fn no_format_panics(format in "[%a-zA-Z0-9+# *.\\[\\]-]{0,12}", number in any::<f64>(), int in any::<i64>()) {
        let args = [Value::Float(number), Value::int(int), Value::from("é\u{0}"), Value::Nil, Value::list(vec![Value::Float(number)])];
        let _ = orlop_gotemplate::fmt::sprintf(format.as_bytes(), &args);
    }
}
