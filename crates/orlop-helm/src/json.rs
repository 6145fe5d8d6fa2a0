//! JSON as Go's `encoding/json` writes it.

use orlop_gotemplate::Value;

/// How deep values may nest.
const DEPTH_MAX: usize = 1000;

/// Whether `<`, `>` and `&` are escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Html {
    /// As `json.Marshal` does
    Escaped,
    /// As they are
    Plain,
}

/// `json.Marshal`, or the raw form of it.
pub fn compact(value: &Value, html: Html) -> Result<Vec<u8>, String> {
    let mut writer = Writer { out: Vec::new(), html, indent: None };
    writer.value(value, 0)?;
    Ok(writer.out)
}

/// `json.MarshalIndent` with two spaces.
pub fn pretty(value: &Value) -> Result<Vec<u8>, String> {
    let mut writer = Writer { out: Vec::new(), html: Html::Escaped, indent: Some(2) };
    writer.value(value, 0)?;
    Ok(writer.out)
}

/// Reads JSON: every number is a `float64`.
pub fn parse(text: &[u8]) -> Result<Value, String> {
    let json: serde_json::Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    Ok(from_json(&json))
}

fn from_json(json: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::Nil,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(from_json).collect()),
        Json::Object(entries) => {
            Value::map(entries.iter().map(|(key, item)| (key.as_str(), from_json(item))))
        }
    }
}

/// A float as Go writes it in JSON.
pub(crate) fn float_text(float: f64) -> Result<String, String> {
    if !float.is_finite() {
        let shown = orlop_gotemplate::fmt::sprint(&[Value::Float(float)]);
        return Err(format!("json: unsupported value: {}", String::from_utf8_lossy(&shown)));
    }
    let size = float.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return Ok(format!("{float}"));
    }
    let text = format!("{float:e}");
    // Rust writes no plus sign before an exponent.
    Ok(match text.split_once('e') {
        Some((mantissa, exponent)) if !exponent.starts_with('-') => format!("{mantissa}e+{exponent}"),
        _ => text,
    })
}

struct Writer {
    out: Vec<u8>,
    html: Html,
    indent: Option<usize>,
}

impl Writer {
    fn line(&mut self, depth: usize) {
        if let Some(width) = self.indent {
            self.out.push(b'\n');
            self.out.resize(self.out.len() + width * depth, b' ');
        }
    }

    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err("json: unsupported value: encountered a cycle".to_owned());
        }
        match value {
            Value::Nil | Value::TypedNil(_) => self.text("null"),
            Value::Bool(truth) => self.text(if *truth { "true" } else { "false" }),
            Value::Int(_, int) => self.text(&int.to_string()),
            Value::Uint(_, uint) => self.text(&uint.to_string()),
            Value::Float(float) => {
                let text = float_text(*float)?;
                self.text(&text);
            }
            Value::Str(text) => self.string(text),
            Value::Bytes(bytes) => {
                use base64::Engine as _;
                let text = base64::engine::general_purpose::STANDARD.encode(bytes.as_bytes());
                self.string(text.as_bytes());
            }
            Value::List(list) => self.list(list.items(), depth)?,
            Value::Map(map) => {
                let entries = map.entries();
                self.map(&entries, depth)?;
            }
            Value::Object(object) => match object.underlying() {
                Some(inner) => self.value(&inner, depth)?,
                None => self.map(&object.fields(), depth)?,
            },
            other => return Err(format!("json: unsupported type: {}", other.type_name())),
        }
        Ok(())
    }

    fn list(&mut self, items: &[Value], depth: usize) -> Result<(), String> {
        self.out.push(b'[');
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            self.line(depth + 1);
            self.value(item, depth + 1)?;
        }
        if !items.is_empty() {
            self.line(depth);
        }
        self.out.push(b']');
        Ok(())
    }

    fn map(&mut self, entries: &[(orlop_gotemplate::Str, Value)], depth: usize) -> Result<(), String> {
        self.out.push(b'{');
        for (i, (key, item)) in entries.iter().enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            self.line(depth + 1);
            self.string(key);
            self.text(if self.indent.is_some() { ": " } else { ":" });
            self.value(item, depth + 1)?;
        }
        if !entries.is_empty() {
            self.line(depth);
        }
        self.out.push(b'}');
        Ok(())
    }

    fn string(&mut self, bytes: &[u8]) {
        self.out.push(b'"');
        for chunk in bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                self.character(c);
            }
            for _ in chunk.invalid() {
                self.text("\\ufffd");
            }
        }
        self.out.push(b'"');
    }

    fn character(&mut self, c: char) {
        match c {
            '"' => self.text("\\\""),
            '\\' => self.text("\\\\"),
            '\u{8}' => self.text("\\b"),
            '\u{c}' => self.text("\\f"),
            '\n' => self.text("\\n"),
            '\r' => self.text("\\r"),
            '\t' => self.text("\\t"),
            '<' | '>' | '&' if self.html == Html::Escaped => self.text(&format!("\\u{:04x}", u32::from(c))),
            '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => self.text(&format!("\\u{:04x}", u32::from(c))),
            _ => self.text(c.encode_utf8(&mut [0; 4])),
        }
    }
}
