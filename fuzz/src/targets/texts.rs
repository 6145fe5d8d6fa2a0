//! What bodies are written in: JSON, YAML and protobuf.

use super::{Form, Target, field_words, lines, objects, words};
use crate::server::{Ask, Server, populated};
use orlop_kinds::catalog::{TypeId, catalog};
use orlop_kinds::{codec, json, protobuf};
use serde_json::Value;

/// The JSON reader, and the reader of typed objects behind it.
pub(super) struct Json;

impl Target for Json {
    fn form(&self) -> Form {
        Form::Bytes
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let objects = objects().into_iter().map(|(_, object)| object.to_string().into_bytes());
        lines(include_str!("../../seeds/json.txt")).into_iter().chain(objects).collect()
    }

    fn words(&self) -> Vec<String> {
        let mut all =
            words(r#"{ } [ ] : , "a": "a" [[ ]] {"a": \ud800 \udc00 \u0000 \n " true false null 1e 0x"#);
        all.extend(field_words());
        all
    }

    fn run(&mut self, input: &[u8]) -> Result<String, String> {
        let parsed = match json::parse(input) {
            Ok(parsed) => parsed,
            Err(error) => return Ok(error.to_string()),
        };
        // What was read is written and read again as the same.
        let again = json::parse(parsed.value.to_string().as_bytes());
        if again.as_ref().is_ok_and(|again| again.value != parsed.value) {
            return Err(format!("reads differently the second time: {}", parsed.value));
        }
        let text = |name: &str| parsed.value.get(name).and_then(Value::as_str).unwrap_or_default();
        let ty = type_of(text("apiVersion"), text("kind")).unwrap_or_else(pod);
        Ok(match codec::decode_json(ty, input) {
            Ok(decoded) => format!("ok {}", decoded.strict.first().map_or("", String::as_str)),
            Err(error) => error.to_string(),
        })
    }
}

/// The YAML reader, as bodies reach it.
pub(super) struct Yaml(Server);

impl Yaml {
    pub(super) fn new() -> Self {
        Self(Server::new(populated()))
    }
}

impl Target for Yaml {
    fn form(&self) -> Form {
        Form::Bytes
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let seeds = include_str!("../../seeds/yaml.txt").split("%%\n");
        seeds.map(|seed| seed.as_bytes().to_vec()).collect()
    }

    fn words(&self) -> Vec<String> {
        let mut all = words(
            "- : --- ... &a *a <<: ! !!str !!binary !!map | > |- >+ ? [ ] { } , # % ' \" ~ yes 0o7 0x1 .inf .nan",
        );
        all.extend([" ", "  ", "\n", "\n  ", "\t", "\r\n", "a: ", "\n- "].map(str::to_owned));
        all.extend(field_words());
        all
    }

    fn run(&mut self, input: &[u8]) -> Result<String, String> {
        self.0.reset()?;
        let ask = Ask::new("POST", "/api/v1/namespaces/default/configmaps", "application/yaml", input);
        Ok(self.0.ask(&ask)?.class())
    }
}

/// The protobuf reader.
pub(super) struct Protobuf;

impl Target for Protobuf {
    fn form(&self) -> Form {
        Form::Bytes
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let encoded = |(_, object): (String, Value)| {
            let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
            let ty = type_of(text("apiVersion"), text("kind"))?;
            Some(protobuf::encode(ty, &object))
        };
        objects().into_iter().filter_map(encoded).collect()
    }

    fn words(&self) -> Vec<String> {
        // Tags, lengths and long integers; the text form is what they are as UTF-8.
        let mut all: Vec<String> = (0..0x40_u8).map(|byte| char::from(byte).to_string()).collect();
        all.extend(
            ["k8s\0", "v1", "Pod", "apps/v1", "Deployment", "\u{7f}\u{7f}\u{7f}\u{7f}"].map(str::to_owned),
        );
        all
    }

    fn run(&mut self, input: &[u8]) -> Result<String, String> {
        let envelope = match protobuf::open(input) {
            Ok(envelope) => envelope,
            Err(error) => return Ok(error.to_string()),
        };
        let ty = type_of(&envelope.api_version, &envelope.kind).unwrap_or_else(pod);
        let value = match protobuf::decode(ty, &envelope) {
            Ok(value) => value,
            Err(error) => return Ok(error.to_string()),
        };
        // What was read can be written, and is then read as the same.
        let encoded = protobuf::encode(ty, &value);
        let again = protobuf::open(&encoded).and_then(|envelope| protobuf::decode(ty, &envelope));
        match again {
            Ok(again) if again == value => Ok("ok".to_owned()),
            Ok(again) => Err(format!("reads differently the second time: {value} and {again}")),
            Err(error) => Err(format!("cannot be read again: {error}")),
        }
    }
}

fn type_of(api_version: &str, kind: &str) -> Option<TypeId> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    catalog().type_of(group, version, kind)
}

fn pod() -> TypeId {
    catalog().type_of("", "v1", "Pod").expect("there are Pods")
}
