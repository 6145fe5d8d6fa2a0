//! What is fuzzed: each target reads one kind of input, and says what became of it.

mod cel;
mod custom;
mod journal;
mod patches;
mod requests;
mod texts;

pub use crate::mutate::Form;

/// Something that reads what strangers send.
pub trait Target {
    /// How inputs are made.
    fn form(&self) -> Form;

    /// Inputs to start from.
    fn seeds(&self) -> Vec<Vec<u8>>;

    /// Words that mean something in these inputs.
    fn words(&self) -> Vec<String>;

    /// Runs one input: what it was answered, or what it did that no input may do.
    fn run(&mut self, input: &[u8]) -> Result<String, String>;
}

/// Makes a target.
type Make = fn() -> Box<dyn Target>;

/// All targets by name.
pub const TARGETS: [(&str, Make); 15] = [
    ("json", || Box::new(texts::Json)),
    ("yaml", || Box::new(texts::Yaml::new())),
    ("protobuf", || Box::new(texts::Protobuf)),
    ("paths", || Box::new(requests::Paths::new())),
    ("selectors", || Box::new(requests::Selectors::new())),
    ("json-patch", || Box::new(patches::Direct::JsonPatch)),
    ("merge-patch", || Box::new(patches::Direct::MergePatch)),
    ("strategic-patch", || Box::new(patches::Sent::new("application/strategic-merge-patch+json"))),
    ("apply", || Box::new(patches::Sent::new("application/apply-patch+yaml"))),
    ("cel", || Box::new(cel::Expressions::new())),
    ("rules", || Box::new(cel::Rules)),
    ("definitions", || Box::new(custom::Definitions::new())),
    ("objects", || Box::new(custom::Objects::new())),
    ("journal", || Box::new(journal::Journal::new())),
    ("requests", || Box::new(requests::Requests::new())),
];

/// The target of this name.
pub fn target(name: &str) -> Option<Box<dyn Target>> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, make)| make())
}

/// Seeds that stand one on a line.
fn lines(text: &str) -> Vec<Vec<u8>> {
    text.lines().filter(|line| !line.is_empty()).map(|line| line.as_bytes().to_vec()).collect()
}

/// Words that stand between spaces.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The objects that most targets begin with, and the collections they belong to.
fn objects() -> Vec<(String, serde_json::Value)> {
    let seeds = include_str!("../../seeds/setup.jsonl").lines();
    let read = |line| serde_json::from_str::<serde_json::Value>(line).ok();
    let pair = |mut seed: serde_json::Value| Some((seed["path"].as_str()?.to_owned(), seed["body"].take()));
    seeds.filter_map(read).filter_map(pair).collect()
}

/// Names and values of fields that mean something to the server.
fn field_words() -> Vec<String> {
    words(include_str!("../../seeds/fields.txt"))
}
