//! Mutation: an input made from earlier ones, by bytes or by structure. All chance comes from one seeded source.

use orlop_clock::Rng;
use serde_json::{Map, Value, json};

/// How the inputs of a target are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Bytes, with words of the target's dictionary among them.
    Bytes,
    /// A JSON document whose tree is changed; strings in it are changed like bytes.
    Tree,
}

/// Inputs grow no longer than this.
const BYTES_MAX: usize = 16 * 1024;
/// Trees grow no deeper than this by wrapping.
const WRAPS_MAX: u64 = 40;

/// Numbers at which code tends to go wrong.
const NUMBERS: [&str; 19] = [
    "0",
    "-0",
    "1",
    "-1",
    "255",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483649",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e300",
    "-1e-300",
    "1E400",
    "0.5",
];

/// Texts at which code tends to go wrong.
const TEXTS: [&str; 24] = [
    "",
    " ",
    "x",
    "a.b/c",
    "..",
    "/",
    "%00",
    "%",
    "\u{0}",
    "\u{e9}",
    "\u{1f600}",
    "\u{feff}",
    "1Gi",
    "-1m",
    "1e999",
    "50%",
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "10.0.0.1",
    "::ffff:1.2.3.4/129",
    "AA==",
    "(a|b)*[",
    "true",
    "null",
];

/// Makes inputs.
pub(crate) struct Mutator {
    rng: Rng,
    words: Vec<String>,
}

impl Mutator {
    pub(crate) fn new(seed: u64, words: Vec<String>) -> Self {
        Self { rng: Rng::seeded(seed), words }
    }

    /// The next input: one of the pool, changed a few times.
    pub(crate) fn next(&self, form: Form, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.pick(pool).cloned().unwrap_or_default();
        let rounds = 1 + self.below(4);
        match form {
            Form::Bytes => {
                for _ in 0..rounds {
                    self.change_bytes(&mut input, pool);
                }
                input.truncate(BYTES_MAX);
                input
            }
            Form::Tree => {
                let mut tree: Value = serde_json::from_slice(&input).unwrap_or_default();
                for _ in 0..rounds {
                    self.change_tree(&mut tree, pool);
                }
                let text = tree.to_string();
                if text.len() > BYTES_MAX { input } else { text.into_bytes() }
            }
        }
    }

    fn below(&self, bound: usize) -> usize {
        self.rng.below(bound as u64) as usize
    }

    fn one_in(&self, chances: u64) -> bool {
        self.rng.below(chances) == 0
    }

    fn pick<'a, T>(&self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }

    /// A word that means something to the target, or to most.
    fn word(&self) -> String {
        match self.rng.below(4) {
            0 => self.pick(&NUMBERS).map_or_else(String::new, |word| (*word).to_owned()),
            1 => self.pick(&TEXTS).map_or_else(String::new, |word| (*word).to_owned()),
            _ => self.pick(&self.words).cloned().unwrap_or_default(),
        }
    }

    /// A part of an input: where it starts and ends.
    fn range(&self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = if self.one_in(4) { length } else { 8 };
        start..(start + self.below(most + 1)).min(length)
    }

    fn change_bytes(&self, input: &mut Vec<u8>, pool: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        match self.rng.below(10) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.rng.below(8);
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = self.rng.below(256) as u8;
                }
            }
            2 => input.insert(at, self.rng.below(256) as u8),
            3 => drop(input.drain(self.range(input.len()))),
            4 => input.truncate(at),
            5 => {
                let part = input[self.range(input.len())].to_vec();
                // Depth is what recursion fears.
                let times = if self.one_in(12) { 1 + self.below(2000) } else { 1 + self.below(3) };
                let times = times.min(BYTES_MAX / part.len().max(1));
                input.splice(at..at, part.repeat(times));
            }
            6 => {
                if let Some(other) = self.pick(pool) {
                    input.splice(self.range(input.len()), other[self.range(other.len())].to_vec());
                }
            }
            7 => drop(input.splice(self.range(input.len()), self.word().into_bytes())),
            _ => drop(input.splice(at..at, self.word().into_bytes())),
        }
    }

    fn change_text(&self, text: &str, pool: &[Vec<u8>]) -> String {
        let mut bytes = text.as_bytes().to_vec();
        self.change_bytes(&mut bytes, pool);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn change_tree(&self, tree: &mut Value, pool: &[Vec<u8>]) {
        let target = self.below(count(tree));
        let Some(node) = nth(tree, &mut target.clone()) else { return };
        match self.rng.below(12) {
            0 => *node = self.leaf(),
            1 => *node = self.borrowed(pool),
            2 => *node = Value::String(self.word()),
            3 => {
                let inner = node.take();
                *node = self.wrapped(inner);
            }
            4 | 5 => match node {
                Value::Object(fields) => {
                    if let Some(name) = self.pick(&fields.keys().cloned().collect::<Vec<_>>()) {
                        fields.remove(name);
                    }
                }
                Value::Array(items) if !items.is_empty() => drop(items.remove(self.below(items.len()))),
                other => *other = Value::Null,
            },
            6 => match node {
                Value::Object(fields) => {
                    let names: Vec<String> = fields.keys().cloned().collect();
                    if let Some(name) = self.pick(&names) {
                        let value = fields.remove(name).unwrap_or_default();
                        let name = if self.one_in(2) { self.word() } else { self.change_text(name, pool) };
                        fields.insert(name, value);
                    }
                }
                Value::Array(items) if !items.is_empty() => {
                    let at = self.below(items.len());
                    let item = items[at].clone();
                    let times = if self.one_in(20) { 1 + self.below(60) } else { 1 };
                    items.splice(at..at, std::iter::repeat_n(item, times));
                }
                other => *other = self.leaf(),
            },
            7 | 8 => match node {
                Value::Object(fields) => drop(fields.insert(self.word(), self.borrowed(pool))),
                Value::Array(items) => items.push(self.borrowed(pool)),
                other => *other = self.leaf(),
            },
            _ => match node {
                Value::String(text) => *text = self.change_text(text, pool),
                Value::Number(_) | Value::Bool(_) | Value::Null => *node = self.leaf(),
                _ => *node = self.borrowed(pool),
            },
        }
    }

    fn wrapped(&self, inner: Value) -> Value {
        let times = if self.one_in(8) { 1 + self.rng.below(WRAPS_MAX) } else { 1 };
        let name = self.word();
        (0..times).fold(inner, |inner, _| {
            if name.is_empty() {
                json!([inner])
            } else {
                Value::Object(Map::from_iter([(name.clone(), inner)]))
            }
        })
    }

    fn leaf(&self) -> Value {
        match self.rng.below(8) {
            0 => Value::Null,
            1 => Value::Bool(self.one_in(2)),
            2 => json!([]),
            3 => json!({}),
            4 => Value::String(self.word()),
            _ => {
                let number = self.pick(&NUMBERS).copied().unwrap_or_default();
                serde_json::from_str(number).unwrap_or_default()
            }
        }
    }

    /// A part of some tree of the pool.
    fn borrowed(&self, pool: &[Vec<u8>]) -> Value {
        let tree = self.pick(pool).and_then(|other| serde_json::from_slice::<Value>(other).ok());
        let Some(mut tree) = tree else { return self.leaf() };
        let mut target = self.below(count(&tree));
        nth(&mut tree, &mut target).map_or(Value::Null, |node| node.take())
    }
}

/// How many nodes a tree has.
fn count(tree: &Value) -> usize {
    1 + match tree {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// The node that comes after `left` others.
fn nth<'a>(tree: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(tree);
    }
    *left -= 1;
    match tree {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, left)),
        Value::Object(fields) => fields.values_mut().find_map(|field| nth(field, left)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence_of_inputs() {
        let pool = [br#"{"a": [1, "two", {"b": null}]}"#.to_vec(), b"[true]".to_vec()];
        for form in [Form::Bytes, Form::Tree] {
            let inputs = |seed| {
                let mutator = Mutator::new(seed, vec!["word".to_owned()]);
                (0..200).map(|_| mutator.next(form, &pool)).collect::<Vec<_>>()
            };
            assert_eq!(inputs(1), inputs(1));
            assert_ne!(inputs(1), inputs(2));
        }
    }

    #[test]
    fn every_node_can_be_reached() {
        let mut tree = json!({"a": [1, {"b": 2}], "c": 3});
        assert_eq!(count(&tree), 6);
        for n in 0..6 {
            assert!(nth(&mut tree, &mut n.clone()).is_some());
        }
        assert!(nth(&mut tree, &mut 6).is_none());
    }
}
