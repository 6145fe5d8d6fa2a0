//! Custom resources: definitions of kinds, and objects of defined kinds.

use super::{Form, Target, field_words, lines, words};
use crate::server::{Ask, Server, populated};
use serde_json::Value;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JSON: &str = "application/json";

/// Definitions, and an object under each that is accepted: `{"definition": …, "object": …}`.
pub(super) struct Definitions(Server);

impl Definitions {
    pub(super) fn new() -> Self {
        Self(Server::new(Vec::new()))
    }
}

impl Target for Definitions {
    fn form(&self) -> Form {
        Form::Tree
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        lines(include_str!("../../seeds/definitions.jsonl"))
    }

    fn words(&self) -> Vec<String> {
        let mut all = words(
            "spec group names plural singular kind listKind shortNames categories scope Namespaced Cluster versions name served storage deprecated deprecationWarning schema openAPIV3Schema subresources status scale specReplicasPath statusReplicasPath labelSelectorPath .spec.replicas .status.replicas additionalPrinterColumns jsonPath priority selectableFields conversion strategy None Webhook preserveUnknownFields type object array string integer number boolean properties items additionalProperties required x-kubernetes-validations rule message self nullable default enum pattern format date-time maxLength minimum maximum multipleOf uniqueItems allOf oneOf anyOf not $ref x-kubernetes-list-type map set atomic granular x-kubernetes-list-map-keys x-kubernetes-map-type x-kubernetes-int-or-string x-kubernetes-preserve-unknown-fields x-kubernetes-embedded-resource",
        );
        all.extend(field_words());
        all
    }

    fn run(&mut self, input: &[u8]) -> Result<String, String> {
        let tree: Value = serde_json::from_slice(input).unwrap_or_default();
        self.0.reset()?;
        let definition = &tree["definition"];
        let reply = self.0.ask(&Ask::new("POST", DEFINITIONS, JSON, definition.to_string()))?;
        if reply.status >= 400 {
            return Ok(reply.class());
        }
        let stored: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let text = |pointer: &str| stored.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let group = text("/spec/group");
        let version = text("/spec/versions/0/name");
        let within = if text("/spec/scope") == "Namespaced" { "namespaces/default/" } else { "" };
        let path = format!("/apis/{group}/{version}/{within}{}", text("/spec/names/plural"));
        let created = self.0.ask(&Ask::new("POST", &path, JSON, tree["object"].to_string()))?;
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let mut list = Ask::new("GET", &path, JSON, "");
        list.headers.push(("accept".to_owned(), table.to_owned()));
        self.0.ask(&list)?;
        self.0.ask(&Ask::new("GET", &format!("/openapi/v3/apis/{group}/{version}"), JSON, ""))?;
        Ok(format!("defined {}", created.class()))
    }
}

/// Objects of a defined kind, created, replaced and applied: `{"object": …, "next": …}`.
pub(super) struct Objects(Server);

impl Objects {
    pub(super) fn new() -> Self {
        Self(Server::new(populated()))
    }
}

impl Target for Objects {
    fn form(&self) -> Form {
        Form::Tree
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        lines(include_str!("../../seeds/objects.jsonl"))
    }

    fn words(&self) -> Vec<String> {
        let mut all = words(
            "size list ports pair when extra anything raw embedded text Thing example.com/v1 example.com/v2 status replicas",
        );
        all.extend(field_words());
        all
    }

    fn run(&mut self, input: &[u8]) -> Result<String, String> {
        const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
        let tree: Value = serde_json::from_slice(input).unwrap_or_default();
        self.0.reset()?;
        let created = self.0.ask(&Ask::new("POST", THINGS, JSON, tree["object"].to_string()))?;
        let next = tree["next"].to_string();
        let place = format!("{THINGS}/thing");
        let put = self.0.ask(&Ask::new("PUT", &place, JSON, next.clone()))?;
        let apply = "application/apply-patch+yaml";
        let path = format!("{place}?fieldManager=m&force=true");
        let applied = self.0.ask(&Ask::new("PATCH", &path, apply, next.clone()))?;
        let path = format!("{place}/status");
        self.0.ask(&Ask::new("PATCH", &path, "application/merge-patch+json", next))?;
        Ok(format!("{} {} {}", created.class(), put.class(), applied.class()))
    }
}
