//! Go's `fmt`: `Sprint`, `Sprintln` and `Sprintf` with every verb and flag.

mod number;
mod verbs;

use std::rc::Rc;

use crate::text::{can_backquote, decode_rune, quote_into, rune_count};
use crate::types::Type;
use crate::value::{Object, Str, Value};

/// How deep containers are followed; below, an ellipsis stands for the rest. Maps can contain themselves.
const DEPTH_MAX: usize = 200;

/// `fmt.Sprint`: a space between operands when neither is a string.
pub fn sprint(args: &[Value]) -> Vec<u8> {
    let mut printer = Printer::default();
    let mut previous_is_string = true;
    for arg in args {
        let is_string = is_string(arg);
        if !is_string && !previous_is_string {
            printer.out.push(b' ');
        }
        printer.arg(arg, 'v');
        previous_is_string = is_string;
    }
    printer.out
}

/// `fmt.Sprintln`: spaces between all operands, and a newline.
pub fn sprintln(args: &[Value]) -> Vec<u8> {
    let mut printer = Printer::default();
    for (i, arg) in args.iter().enumerate() {
        if i > 0 {
            printer.out.push(b' ');
        }
        printer.arg(arg, 'v');
    }
    printer.out.push(b'\n');
    printer.out
}

/// `fmt.Sprintf`.
pub fn sprintf(format: &[u8], args: &[Value]) -> Vec<u8> {
    let mut printer = Printer::default();
    printer.out.reserve(format.len() + 16);
    printer.format(format, args);
    printer.out
}

/// Appends one value as `%v` does.
pub(crate) fn print_into(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Str(text) => out.extend_from_slice(text),
        Value::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        _ => {
            let mut printer = Printer { out: std::mem::take(out), ..Printer::default() };
            printer.arg(value, 'v');
            *out = printer.out;
        }
    }
}

fn is_string(value: &Value) -> bool {
    match value {
        Value::Str(_) => true,
        Value::Object(object) => matches!(object.underlying(), Some(Value::Str(_))),
        _ => false,
    }
}

/// What stands between `%` and the verb.
#[derive(Clone, Copy, Default)]
struct Flags {
    width: Option<usize>,
    precision: Option<usize>,
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    plus_v: bool,
    sharp_v: bool,
}

#[derive(Default)]
struct Printer {
    out: Vec<u8>,
    flags: Flags,
    /// Inside a complaint about a verb, where methods are not asked.
    erroring: bool,
}

impl Printer {
    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn padding(&mut self, count: usize) {
        let byte = if self.flags.zero && !self.flags.minus { b'0' } else { b' ' };
        self.out.resize(self.out.len() + count, byte);
    }

    fn pad(&mut self, text: &[u8]) {
        let missing = self.flags.width.map_or(0, |width| width.saturating_sub(rune_count(text)));
        if self.flags.minus {
            self.out.extend_from_slice(text);
            self.padding(missing);
        } else {
            self.padding(missing);
            self.out.extend_from_slice(text);
        }
    }

    /// Pads with spaces even where zeros were asked for.
    fn pad_spaces(&mut self, text: &[u8]) {
        let zero = std::mem::replace(&mut self.flags.zero, false);
        self.pad(text);
        self.flags.zero = zero;
    }

    fn truncated<'s>(&self, text: &'s [u8]) -> &'s [u8] {
        let Some(limit) = self.flags.precision else { return text };
        let mut end = 0;
        for _ in 0..limit {
            if end >= text.len() {
                break;
            }
            end += decode_rune(&text[end..]).1;
        }
        &text[..end]
    }

    fn bad_verb(&mut self, verb: char, value: &Value) {
        self.erroring = true;
        self.text("%!");
        self.out.extend_from_slice(verb.encode_utf8(&mut [0; 4]).as_bytes());
        self.out.push(b'(');
        if matches!(value, Value::Nil) {
            self.text("<nil>");
        } else {
            self.text(&value.type_name());
            self.out.push(b'=');
            self.value(value, 'v', 0);
        }
        self.out.push(b')');
        self.erroring = false;
    }

    /// One operand.
    fn arg(&mut self, value: &Value, verb: char) {
        match (value, verb) {
            (Value::Nil, 'T' | 'v') => self.pad(b"<nil>"),
            (Value::Nil, _) => self.bad_verb(verb, value),
            (_, 'T') => {
                let name = value.type_name();
                let name = self.truncated(name.as_bytes()).to_vec();
                self.pad(&name);
            }
            (_, 'p') => self.pointer(value, 'p'),
            _ => {
                // Bytes are taken apart before anything asks for methods.
                if matches!(value, Value::Bytes(_)) || !self.methods(value, verb) {
                    self.value(value, verb, 0);
                }
            }
        }
    }

    /// Lets a value print itself; whether it did.
    fn methods(&mut self, value: &Value, verb: char) -> bool {
        if self.erroring {
            return false;
        }
        let Value::Object(object) = value else {
            if verb == 'w' {
                self.bad_verb(verb, value);
                return true;
            }
            return false;
        };
        if verb == 'w' {
            self.bad_verb(verb, value);
            return true;
        }
        if self.flags.sharp_v || !matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') {
            return false;
        }
        match object.string() {
            Some(text) => {
                self.string(&Value::Str(text.clone()), &text, verb);
                true
            }
            None => false,
        }
    }

    fn value(&mut self, value: &Value, verb: char, depth: usize) {
        if depth > DEPTH_MAX {
            self.text("...");
            return;
        }
        if depth > 0 && self.methods(value, verb) {
            return;
        }
        match value {
            Value::Nil => self.text("<nil>"),
            Value::Bool(truth) => match verb {
                't' | 'v' => self.pad(if *truth { b"true" } else { b"false" }),
                _ => self.bad_verb(verb, value),
            },
            Value::Int(_, int) => self.integer(value, int.unsigned_abs(), *int < 0, true, verb),
            Value::Uint(_, uint) => self.integer(value, *uint, false, false, verb),
            Value::Float(float) => self.float(value, *float, false, verb),
            Value::Float32(float) => self.float(value, f64::from(*float), true, verb),
            Value::Complex(re, im) => self.complex(value, *re, *im, verb),
            Value::Str(text) => self.string(value, text, verb),
            Value::Bytes(bytes) => self.bytes(value, bytes, verb, depth),
            Value::List(list) => self.list(value, list.items(), list.elem(), verb, depth),
            Value::Map(map) => {
                let entries = map.entries();
                self.map(value, &entries, map.elem(), verb, depth);
            }
            Value::Object(object) => self.object(value, object, verb, depth),
            Value::Func(_) => self.pointer(value, verb),
            Value::TypedNil(of) => self.typed_nil(value, of, verb),
        }
    }

    fn typed_nil(&mut self, value: &Value, of: &Type, verb: char) {
        match of {
            Type::List(_) | Type::Map(_) if self.flags.sharp_v => {
                self.text(&of.to_string());
                self.text("(nil)");
            }
            Type::List(_) if matches!(verb, 's' | 'x' | 'X' | 'q') && of.to_string() == "[]uint8" => {
                self.string(value, b"", verb);
            }
            Type::List(_) => self.text("[]"),
            Type::Map(_) => self.text("map[]"),
            _ => self.pointer(value, verb),
        }
    }

    /// An element of a container, whose static type may be an interface.
    fn element(&mut self, value: &Value, elem: &Type, verb: char, depth: usize) {
        if matches!(value, Value::Nil) {
            if self.flags.sharp_v {
                self.text(&elem.to_string());
                self.text("(nil)");
            } else {
                self.text("<nil>");
            }
        } else {
            self.value(value, verb, depth + 1);
        }
    }

    fn list(&mut self, value: &Value, items: &[Value], elem: &Type, verb: char, depth: usize) {
        let (open, separator, close): (_, &str, _) = if self.flags.sharp_v {
            self.text(&value.type_name());
            ('{', ", ", '}')
        } else {
            ('[', " ", ']')
        };
        self.out.push(open as u8);
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.text(separator);
            }
            self.element(item, elem, verb, depth);
        }
        self.out.push(close as u8);
    }

    fn map(&mut self, value: &Value, entries: &[(Str, Value)], elem: &Type, verb: char, depth: usize) {
        if self.flags.sharp_v {
            self.text(&value.type_name());
            self.out.push(b'{');
        } else {
            self.text("map[");
        }
        for (i, (key, item)) in entries.iter().enumerate() {
            if i > 0 {
                self.text(if self.flags.sharp_v { ", " } else { " " });
            }
            self.string(&Value::Str(key.clone()), key, verb);
            self.out.push(b':');
            self.element(item, elem, verb, depth);
        }
        self.out.push(if self.flags.sharp_v { b'}' } else { b']' });
    }

    fn object(&mut self, value: &Value, object: &Rc<dyn Object>, verb: char, depth: usize) {
        if let Some(inner) = object.underlying() {
            return match &inner {
                Value::Map(map) => self.map(value, &map.entries(), map.elem(), verb, depth),
                Value::List(list) => self.list(value, list.items(), list.elem(), verb, depth),
                Value::Int(_, int) => self.integer(value, int.unsigned_abs(), *int < 0, true, verb),
                Value::Uint(_, uint) => self.integer(value, *uint, false, false, verb),
                Value::Float(float) => self.float(value, *float, false, verb),
                Value::Str(text) => self.string(value, text, verb),
                inner => self.value(inner, verb, depth),
            };
        }
        let name = object.type_name();
        if let Some(pointed) = name.strip_prefix('*') {
            // Only a pointer at the top is followed, as loops are possible below.
            if depth > 0 || object.fields().is_empty() {
                return self.pointer(value, verb);
            }
            self.out.push(b'&');
            return self.fields(pointed, object, verb, depth + 1);
        }
        self.fields(&name, object, verb, depth);
    }

    fn fields(&mut self, name: &str, object: &Rc<dyn Object>, verb: char, depth: usize) {
        if self.flags.sharp_v {
            self.text(name);
        }
        self.out.push(b'{');
        for (i, (field, value)) in object.fields().iter().enumerate() {
            if i > 0 {
                self.text(if self.flags.sharp_v { ", " } else { " " });
            }
            if self.flags.plus_v || self.flags.sharp_v {
                self.out.extend_from_slice(field);
                self.out.push(b':');
            }
            self.element(value, &Type::Any, verb, depth);
        }
        self.out.push(b'}');
    }

    fn string(&mut self, value: &Value, text: &[u8], verb: char) {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(text),
            'v' | 's' => {
                let text = self.truncated(text);
                self.pad(text);
            }
            'x' => self.hex(text, b"0123456789abcdefx"),
            'X' => self.hex(text, b"0123456789ABCDEFX"),
            'q' => self.quoted(text),
            _ => self.bad_verb(verb, value),
        }
    }

    fn quoted(&mut self, text: &[u8]) {
        let text = self.truncated(text);
        let mut shown = Vec::with_capacity(text.len() + 2);
        if self.flags.sharp && can_backquote(text) {
            shown.push(b'`');
            shown.extend_from_slice(text);
            shown.push(b'`');
        } else {
            quote_into(&mut shown, text, self.flags.plus);
        }
        self.pad(&shown);
    }

    fn hex(&mut self, text: &[u8], digits: &[u8; 17]) {
        let length = self.flags.precision.map_or(text.len(), |p| p.min(text.len()));
        let mut shown = Vec::with_capacity(length * 2 + 2);
        for (i, byte) in text[..length].iter().enumerate() {
            if self.flags.space && i > 0 {
                shown.push(b' ');
            }
            if self.flags.sharp && (self.flags.space || i == 0) {
                shown.extend_from_slice(&[b'0', digits[16]]);
            }
            shown.extend_from_slice(&[digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]);
        }
        self.pad(&shown);
    }

    fn bytes(&mut self, value: &Value, bytes: &Str, verb: char, depth: usize) {
        match verb {
            's' | 'x' | 'X' | 'q' => self.string(value, bytes, verb),
            'v' | 'd' if self.flags.sharp_v => {
                self.text(if depth == 0 { "[]byte" } else { "[]uint8" });
                self.out.push(b'{');
                for (i, byte) in bytes.iter().enumerate() {
                    if i > 0 {
                        self.text(", ");
                    }
                    self.hex_number(u64::from(*byte));
                }
                self.out.push(b'}');
            }
            _ => {
                self.out.push(b'[');
                for (i, byte) in bytes.iter().enumerate() {
                    if i > 0 {
                        self.out.push(b' ');
                    }
                    let byte = Value::Uint(crate::types::Uint::U8, u64::from(*byte));
                    self.value(&byte, verb, depth + 1);
                }
                self.out.push(b']');
            }
        }
    }

    /// Addresses do not repeat in Go; here they are all zero but for the nil ones.
    fn pointer(&mut self, value: &Value, verb: char) {
        let address = match value {
            Value::Func(_) | Value::Object(_) | Value::List(_) | Value::Map(_) | Value::Bytes(_) => {
                0xc0_0000_0000
            }
            Value::TypedNil(_) => 0,
            _ => return self.bad_verb(verb, value),
        };
        match verb {
            'v' if self.flags.sharp_v => {
                self.out.push(b'(');
                self.text(&value.type_name());
                self.text(")(");
                if address == 0 {
                    self.text("nil");
                } else {
                    self.hex_number(address);
                }
                self.out.push(b')');
            }
            'v' if address == 0 => self.pad(b"<nil>"),
            'v' | 'p' => {
                if std::mem::replace(&mut self.flags.sharp, false) {
                    self.integer_in(address, false, 16, verb, false);
                    self.flags.sharp = true;
                } else {
                    self.hex_number(address);
                }
            }
            'b' | 'o' | 'd' | 'x' | 'X' => self.integer(value, address, false, false, verb),
            _ => self.bad_verb(verb, value),
        }
    }
}
