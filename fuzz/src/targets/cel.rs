//! CEL: expressions as rules and policies carry them, and the rules of whole schemas.

use super::{Form, Target, field_words, lines, words};
use orlop_cel::admission::{Compiler, Declared, Input, Returns, Session};
use orlop_cel::{Budget, Check, Env, Node, OldSelf, Output, Program, Value as CelValue, rules};
use orlop_schema::field::Path;
use orlop_schema::structural::{self, Schema};
use serde_json::{Value, json};

const WORDS: &str = r#"self oldSelf object request params variables .s .i .l .m .x .d .t .n .b .o ( ) [ ] { } + - * / % == != < <= > >= && || ! ? : , . 'a' "\u00e9" r'\d' b'x' 1 2u 3.5 0 0x7f -9223372036854775808 9223372036854775807 18446744073709551615u true false null has(self.s) .size() .all(x,x>1) .exists(x,x==2) .exists_one(x,true) .map(x,x+1) .filter(x,x<2) .startsWith('a') .matches('a+') .contains( .split(',') .join() .substring(1) .replace('a','b') .format([1]) .lowerAscii() .indexOf('a') int( string( double( uint( bytes( duration('1h') timestamp('2026-01-01T00:00:00Z') type( dyn( quantity('1Gi') ip('1.2.3.4') cidr('10.0.0.0/8') url('https://a.b/c') semver('1.2.3') optional.of(1) optional.none() .orValue(1) .?a [?0] .isSorted() .sum() .min() .max() .first() .last() .sort() .flatten() .distinct() lists.range(10) sets.contains( math.greatest( math.least( .getSeconds() .getFullYear('UTC') .find('a') .findAll('a') .reverse() in cel.bind(v,1,v) .transformList(i,v,v) .transformMap(k,v,v) strings.quote( base64.encode( base64.decode( .charAt(0) .lastIndexOf('a') .trim() authorizer.group('') format.named('dns1123Label')"#;

/// Expressions.
pub(super) struct Expressions {
    schema: Schema,
    object: Value,
    policy: Compiler,
    input: Input,
}

impl Expressions {
    pub(super) fn new() -> Self {
        let schema = json!({"type": "object", "properties": {
            "s": {"type": "string", "maxLength": 20}, "i": {"type": "integer"}, "n": {"type": "number"},
            "b": {"type": "boolean"}, "d": {"type": "string", "format": "duration"},
            "t": {"type": "string", "format": "date-time"}, "y": {"type": "string", "format": "byte"},
            "l": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
            "k": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
                  "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "o": {"type": "object", "properties": {"a": {"type": "string", "nullable": true}}},
            "x": {"x-kubernetes-int-or-string": true}}});
        let object = json!({
            "s": "é1", "i": -3, "n": 1.5, "b": true, "d": "1h", "t": "2026-01-01T00:00:00Z", "y": "AA==",
            "l": [1, 2, i64::MIN], "k": [{"a": "x", "b": 1}], "m": {"k": "v"}, "o": {}, "x": "5"});
        let seen = CelValue::dynamic(&object);
        let null = CelValue::dynamic(&Value::Null);
        let input = Input {
            object: seen.clone(),
            old_object: null.clone(),
            request: CelValue::dynamic(&json!({"operation": "CREATE", "userInfo": {"username": "u"}})),
            params: seen,
            namespace: null,
            resource: Check::default(),
        };
        Self { schema: Schema::parse(&schema), object, policy: Compiler::composed(), input }
    }
}

impl Target for Expressions {
    fn form(&self) -> Form {
        Form::Bytes
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        lines(include_str!("../../seeds/cel.txt"))
    }

    fn words(&self) -> Vec<String> {
        words(WORDS)
    }

    fn run(&mut self, input: &[u8]) -> Result<String, String> {
        let source = String::from_utf8_lossy(input);
        let declared = Declared { params: true, authorizer: true, patches: true };
        let compiled = self.policy.compile(&source, declared, Returns::Anything);
        let session = Session::new(&self.policy, &self.input, None);
        let policy = match session.evaluate(&compiled, &mut Budget::object()) {
            Ok(value) => value.type_name().to_owned(),
            Err(fault) => last_line(&fault.to_string()),
        };
        let env = Env::crd(&self.schema, Node::Inner).map_err(|error| error.to_string())?;
        let old_self = if source.len().is_multiple_of(2) { OldSelf::Required } else { OldSelf::Optional };
        let rule = match Program::compile(&source, &env, old_self, Output::Bool) {
            Ok(program) => {
                let mut budget = Budget::object();
                match program.evaluate(&self.schema, &self.object, Some(&self.object), &mut budget) {
                    Ok(value) => value.type_name().to_owned(),
                    Err(error) => error.to_string(),
                }
            }
            Err(error) => last_line(&error.to_string().replace("compilation failed: ", "")),
        };
        Ok(format!("{rule} {policy}"))
    }
}

/// The first complaint without the source it quotes.
fn last_line(text: &str) -> String {
    let start = text.find("<input>").map_or(text, |at| &text[at..]);
    start.lines().next().unwrap_or_default().to_owned()
}

/// Schemas with rules, and objects under them: `{"schema": …, "object": …, "old": …}`.
pub(super) struct Rules;

impl Target for Rules {
    fn form(&self) -> Form {
        Form::Tree
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        lines(include_str!("../../seeds/rules.jsonl"))
    }

    fn words(&self) -> Vec<String> {
        let mut all = words(WORDS);
        all.extend(words("type object array string integer number boolean properties items additionalProperties x-kubernetes-validations rule message messageExpression reason fieldPath optionalOldSelf nullable default enum pattern format maxLength maxItems maxProperties allOf anyOf not x-kubernetes-list-type map set atomic x-kubernetes-list-map-keys x-kubernetes-int-or-string x-kubernetes-preserve-unknown-fields x-kubernetes-embedded-resource"));
        all.extend(field_words());
        all
    }

    fn run(&mut self, input: &[u8]) -> Result<String, String> {
        let tree: Value = serde_json::from_slice(input).unwrap_or_default();
        let schema = Schema::parse(&tree["schema"]);
        if let Some(error) = structural::shape::check(&schema, &Path::new("s")).first() {
            return Ok(format!("shape {}", error.detail));
        }
        let found = rules::check(&schema, &Path::new("s"));
        let mut object = tree["object"].clone();
        structural::default::default(&mut object, &schema);
        structural::prune::prune(&mut object, &schema);
        let faults = structural::validate::validate(&object, &schema, None);
        let Some(compiled) = rules::compile(&schema) else { return Ok("no rules".to_owned()) };
        let old = tree.get("old");
        let outcome = rules::validate(&compiled, &schema, &object, old, &mut Budget::object());
        let detail = |errors: &[orlop_schema::field::FieldError]| {
            errors.first().map_or_else(String::new, |error| last_line(&error.detail))
        };
        Ok(format!("{} | {} | {}", detail(&found), detail(&outcome.errors), detail(&faults)))
    }
}
