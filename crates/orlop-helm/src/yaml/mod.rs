//! YAML as goyaml v2 writes it behind sigs.k8s.io/yaml, which is what `toYaml` prints.

mod emit;
mod resolve;
mod scalar;

use orlop_gotemplate::{Str, Value};

use crate::json::float_text;
use emit::Emitter;

/// How deep values may nest.
const DEPTH_MAX: usize = 500;

/// `yaml.Marshal`: the document with its final newline.
pub fn to_yaml(value: &Value) -> Result<Vec<u8>, String> {
    let mut emitter = Emitter::new();
    node(&mut emitter, value, emit::Place::ROOT, 0)?;
    Ok(emitter.finish())
}

fn node(emitter: &mut Emitter, value: &Value, place: emit::Place, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err("json: unsupported value: encountered a cycle".to_owned());
    }
    match value {
        Value::Nil | Value::TypedNil(_) => emitter.plain(b"null", place),
        Value::Bool(truth) => emitter.plain(if *truth { b"true" } else { b"false" }, place),
        Value::Int(_, int) => emitter.plain(int.to_string().as_bytes(), place),
        Value::Uint(_, uint) => emitter.plain(uint.to_string().as_bytes(), place),
        Value::Float(float) => emitter.plain(number(*float)?.as_bytes(), place),
        Value::Str(text) => emitter.string(&read_back(&String::from_utf8_lossy(text))?, place),
        Value::Bytes(bytes) => {
            use base64::Engine as _;
            emitter.string(&base64::engine::general_purpose::STANDARD.encode(bytes.as_bytes()), place);
        }
        Value::List(list) => {
            if list.items().is_empty() {
                emitter.empty(b'[', b']');
                return Ok(());
            }
            emitter.open_sequence(place);
            for item in list.items() {
                emitter.item();
                node(emitter, item, emit::Place::ITEM, depth + 1)?;
            }
            emitter.close();
        }
        Value::Map(map) => mapping(emitter, map.entries(), depth)?,
        Value::Object(object) => match object.underlying() {
            Some(inner) => node(emitter, &inner, place, depth)?,
            None => mapping(emitter, object.fields(), depth)?,
        },
        other => return Err(format!("json: unsupported type: {}", other.type_name())),
    }
    Ok(())
}

fn mapping(emitter: &mut Emitter, entries: Vec<(Str, Value)>, depth: usize) -> Result<(), String> {
    if entries.is_empty() {
        emitter.empty(b'{', b'}');
        return Ok(());
    }
    let mut keyed = Vec::with_capacity(entries.len());
    for (key, item) in entries {
        keyed.push((read_back(&key.to_text())?, item));
    }
    emitter.open_mapping();
    for (key, item) in resolve::sorted(keyed) {
        emitter.key(&key);
        node(emitter, &item, emit::Place::VALUE, depth + 1)?;
    }
    emitter.close();
    Ok(())
}

/// A string after its way through JSON and goyaml's reader: there the next-line character is a line break,
/// which folds, and control characters that JSON leaves as they are cannot be read.
fn read_back(text: &str) -> Result<String, String> {
    if text
        .contains(|c: char| matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'))
    {
        return Err("error converting JSON to YAML: yaml: control characters are not allowed".to_owned());
    }
    if !text.contains('\u{85}') {
        return Ok(text.to_owned());
    }
    let lines: Vec<&str> = text.split('\u{85}').collect();
    let (mut out, mut empty) = (String::new(), 0);
    for (i, line) in lines.iter().enumerate() {
        let mut line = *line;
        if i > 0 {
            line = line.trim_start_matches([' ']);
        }
        if i + 1 < lines.len() {
            line = line.trim_end_matches([' ']);
        }
        if i > 0 && i + 1 < lines.len() && line.is_empty() {
            empty += 1;
            continue;
        }
        if i > 0 {
            out.push_str(&if empty == 0 { " ".to_owned() } else { "\n".repeat(empty) });
            empty = 0;
        }
        out.push_str(line);
    }
    Ok(out)
}

/// A float on its way through JSON: integral ones come back as integers.
fn number(float: f64) -> Result<String, String> {
    let text = float_text(float)?;
    if let Ok(int) = text.parse::<i64>() {
        return Ok(int.to_string());
    }
    if text.parse::<u64>().is_ok() {
        return Ok(text);
    }
    Ok(String::from_utf8_lossy(&orlop_gotemplate::fmt::sprint(&[Value::Float(float)])).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_laid_out_like_goyaml() {
        let list = |items: Vec<Value>| Value::list(items);
        let one = || Value::int(1);
        let table: [(Value, &str); 7] = [
            (Value::map([("a", list(vec![one(), list(vec![one(), one()])]))]), "a:\n- 1\n- - 1\n  - 1\n"),
            (list(vec![Value::map([("x", one()), ("z", list(vec![one()]))])]), "- x: 1\n  z:\n  - 1\n"),
            (Value::map([("a", list(vec![])), ("b", Value::map::<&str>([]))]), "a: []\nb: {}\n"),
            (list(vec![list(vec![]), Value::map::<&str>([])]), "- []\n- {}\n"),
            (Value::map([("a", Value::map([("b", Value::from("x\ny\n"))]))]), "a:\n  b: |\n    x\n    y\n"),
            (Value::from(""), "\"\"\n"),
            (Value::map([("a10", one()), ("a9", one()), ("B", one())]), "B: 1\na9: 1\na10: 1\n"),
        ];
        for (value, expected) in table {
            assert_eq!(String::from_utf8_lossy(&to_yaml(&value).unwrap()), expected);
        }
    }

    #[test]
    fn numbers_go_through_json() {
        for (float, expected) in [
            (1e6, "1000000"),
            (1e20, "1e+20"),
            (0.1, "0.1"),
            (1e-7, "1e-07"),
            (123_456_789.5, "1.234567895e+08"),
            (1.234_567_890_123_456_7e19, "12345678901234567000"),
            (-0.0, "0"),
        ] {
            assert_eq!(number(float).unwrap(), expected);
        }
    }
}
