//! Conversion by webhook: objects of one version become objects of another elsewhere.
//!
//! Reading and writing are synchronous from the store's point of view. So an object is *translated* before it is
//! looked at: a stored object in another version becomes one in the version of the request, and from there on
//! everything goes as for kinds that the server converts itself ([`Kind::translate`]). What is written is converted
//! before it is committed ([`Kind::convert_for`]). Kinds without a webhook pay one look at a field.

use super::kind::CustomKind;
use crate::kind::Kind;
use crate::object::{self, Stored};
use crate::outbound::{Endpoint, Expected};
use crate::server::Inner;
use crate::status::ApiError;
use orlop_merge::ConvertError;
use orlop_schema::field::{Path, aggregate};
use orlop_schema::labels;
use orlop_store::Entry;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a webhook may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How many objects one review brings.
const BATCH_MAX: usize = 500;
/// How often a computation may ask for further conversions.
const ROUNDS_MAX: usize = 16;

/// The versions of reviews that the server speaks.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The webhook that converts the objects of a definition.
#[derive(Debug)]
pub(crate) struct Converter {
    endpoint: Result<Endpoint, String>,
    review_version: Option<&'static str>,
}

impl Converter {
    /// The converter that a definition's spec names, if it names one.
    pub(super) fn of(spec: &Value) -> Option<Self> {
        let conversion = &spec["conversion"];
        if conversion["strategy"] != "Webhook" {
            return None;
        }
        let webhook = &conversion["webhook"];
        let mut spoken = webhook["conversionReviewVersions"].as_array().into_iter().flatten();
        Some(Self {
            endpoint: Endpoint::parse(&webhook["clientConfig"]),
            review_version: spoken
                .find_map(|version| REVIEW_VERSIONS.into_iter().find(|known| *version == **known)),
        })
    }

    /// Objects in another version; the error is what the real server says.
    async fn convert(&self, server: &Inner, objects: Vec<Value>, to: &str) -> Result<Vec<Value>, String> {
        let Some(first) = objects.first() else { return Ok(objects) };
        let what = {
            let version = object::text(first, "apiVersion");
            let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
            format!("conversion webhook for {group}/{version}, Kind={}", object::text(first, "kind"))
        };
        let converted =
            self.call(server, &objects, to).await.map_err(|why| format!("{what} failed: {why}"))?;
        if converted.len() != objects.len() {
            return Err(format!("{what} returned {} objects, expected {}", converted.len(), objects.len()));
        }
        objects
            .iter()
            .zip(converted)
            .map(|(original, converted)| {
                accept(original, converted, to).map_err(|why| format!("{what} returned {why}"))
            })
            .collect()
    }

    async fn call(&self, server: &Inner, objects: &[Value], to: &str) -> Result<Vec<Value>, String> {
        let version = self.review_version.ok_or("no supported conversion review versions")?;
        let endpoint = self.endpoint.as_ref().map_err(Clone::clone)?;
        let uid = server.rng.uuid();
        let review = json!({
            "kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{version}"),
            "request": {"uid": uid, "desiredAPIVersion": to, "objects": objects},
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
        });
        let mut body = Vec::with_capacity(1024);
        object::write_json(&mut body, &review);
        let expected = Expected {
            group: "apiextensions.k8s.io",
            version,
            kind: "ConversionReview",
            others: &REVIEW_VERSIONS,
        };
        let reply = server.outbound.post(server, endpoint, body, TIMEOUT).await?;
        let mut answer = reply.review(&expected)?;
        if version == "v1" {
            let (version, kind) = (object::text(&answer, "apiVersion"), object::text(&answer, "kind"));
            if (version, kind) != ("apiextensions.k8s.io/v1", "ConversionReview") {
                let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
                return Err(format!(
                    "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got {group}/{version}, \
                     Kind={kind}"
                ));
            }
        }
        let response = answer.get_mut("response").filter(|response| response.is_object());
        let response = response.ok_or("no response provided")?;
        let given = object::text(response, "uid");
        if version == "v1" && given != uid {
            return Err(format!(
                "expected response.uid=\"{uid}\", got {}",
                orlop_schema::field::go_quote(given)
            ));
        }
        let result = &response["result"];
        let (status, message) = (object::text(result, "status"), object::text(result, "message"));
        if status != "Success" {
            return Err(if message.is_empty() {
                format!("response.result.status was '{status}', not 'Success'")
            } else {
                message.to_owned()
            });
        }
        match response["convertedObjects"].take() {
            Value::Array(objects) => Ok(objects),
            _ => Ok(Vec::new()),
        }
    }
}

/// What a webhook made of an object, if it kept to the rules: only labels and annotations of the metadata may change.
fn accept(original: &Value, mut converted: Value, to: &str) -> Result<Value, String> {
    let text = |value: &Value, field: &str| object::text(value, field).to_owned();
    let received = text(&converted, "apiVersion");
    if received != to {
        return Err(format!(
            "invalid object at index 0: invalid groupVersion (expected {to}, received {received})"
        ));
    }
    let (expected, received) = (text(original, "kind"), text(&converted, "kind"));
    if expected != received {
        return Err(format!(
            "invalid object at index 0: invalid kind (expected {expected}, received {received})"
        ));
    }
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (before, after) = (object::meta_str(original, field), object::meta_str(&converted, field));
        if before != after {
            return Err(format!("invalid object: must have the same {name}: {before} != {after}"));
        }
    }
    let metadata = restored(original, &converted).map_err(|why| format!("invalid metadata: {why}"))?;
    converted["metadata"] = metadata;
    Ok(converted)
}

/// The metadata of the original with the labels and annotations of the converted object.
fn restored(original: &Value, converted: &Value) -> Result<Value, String> {
    let given = converted.get("metadata").ok_or("missing metadata in converted object")?;
    if !given.is_object() {
        return Err(format!("invalid metadata of type {} in converted object", go_type(given)));
    }
    let mut metadata = original.get("metadata").cloned().unwrap_or_else(|| json!({}));
    for field in ["labels", "annotations"] {
        let fields = metadata.as_object_mut().ok_or("invalid metadata in input object")?;
        let Some(value) = given.get(field).filter(|value| !value.is_null()) else {
            fields.remove(field);
            continue;
        };
        let Some(pairs) = value.as_object() else {
            return Err(format!("invalid metadata.{field} of type {} in converted object", go_type(value)));
        };
        if let Some((key, value)) = pairs.iter().find(|(_, value)| !value.is_string()) {
            let ty = go_type(value);
            return Err(format!("metadata.{field}[{key}] must be a string, but is {ty} in converted object"));
        }
        if fields.get(field) != Some(value) {
            let path = Path::new("metadata");
            let errors = if field == "labels" {
                labels::labels(&path.child("labels"), value)
            } else {
                labels::annotations(&path.child("annotation"), value)
            };
            if !errors.is_empty() {
                return Err(aggregate(errors.iter().map(ToString::to_string)));
            }
        }
        fields.insert(field.to_owned(), value.clone());
    }
    Ok(metadata)
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

impl Kind {
    /// The custom part and the webhook, if a webhook converts objects of this kind.
    fn converter(&self) -> Option<(&CustomKind, &Converter)> {
        let custom = self.custom()?;
        Some((custom, custom.converter()?))
    }

    /// Whether a webhook converts objects of this kind.
    pub(crate) fn is_converted_by_webhook(&self) -> bool {
        self.converter().is_some()
    }

    /// Whether what is written in this version is stored in another one that only a webhook can make.
    pub(crate) fn is_stored_by_webhook(&self) -> bool {
        self.is_converted_by_webhook() && self.storage != self.api_version()
    }

    /// An object in another version of the same kind.
    pub(crate) async fn convert_for(
        &self,
        server: &Inner,
        object: Value,
        to: &str,
    ) -> Result<Value, ApiError> {
        if object::text(&object, "apiVersion") == to {
            return Ok(object);
        }
        let Some((custom, converter)) = self.converter() else {
            return Ok(match self.custom() {
                Some(custom) => custom.convert(object, to),
                None => self.convert(&object, to),
            });
        };
        let converted = converter.convert(server, vec![object], to).await;
        let converted = converted.map_err(ApiError::internal_plain)?.pop();
        Ok(custom.conformed(converted.unwrap_or_default(), to))
    }

    /// An object in another version of the same kind, as admission is shown it: with all that it has.
    pub(crate) async fn convert_shown(
        &self,
        server: &Inner,
        mut object: Value,
        to: &str,
    ) -> Result<Value, ApiError> {
        match self.converter() {
            Some((_, converter)) if object::text(&object, "apiVersion") != to => {
                let converted = converter.convert(server, vec![object], to).await;
                Ok(converted.map_err(ApiError::internal_plain)?.pop().unwrap_or_default())
            }
            _ if self.custom().is_some() => {
                object["apiVersion"] = to.into();
                Ok(object)
            }
            _ => Ok(self.convert(&object, to)),
        }
    }

    /// What is to be stored of an object, in the version that is stored; the revision is still to come.
    pub(crate) async fn storage_form(&self, server: &Inner, mut object: Value) -> Result<Value, ApiError> {
        object::set_meta(&mut object, "resourceVersion", Value::Null);
        let stored = self.convert_for(server, object, &self.storage).await?;
        Ok(self.to_storage(&stored))
    }

    /// Stored objects in the version of this kind; those that need no webhook come back as they are.
    pub(crate) async fn translate(
        &self,
        server: &Inner,
        mut entries: Vec<Stored>,
    ) -> Result<Vec<Stored>, ApiError> {
        let Some((custom, converter)) = self.converter() else { return Ok(entries) };
        let to = self.api_version();
        let head = object::head(&self.kind, &to);
        let foreign: Vec<usize> =
            (0..entries.len()).filter(|at| !entries[*at].body.starts_with(head.as_bytes())).collect();
        for batch in foreign.chunks(BATCH_MAX) {
            let objects = batch.iter().map(|at| {
                let entry = &entries[*at];
                let mut object = custom.refreshed(object::decode(&entry.body), entry.header.schema);
                // What is stored has no revision, as far as others see.
                object::set_meta(&mut object, "resourceVersion", Value::Null);
                object
            });
            let converted = converter.convert(server, objects.collect(), &to).await;
            for (at, mut object) in batch.iter().zip(converted.map_err(ApiError::internal_plain)?) {
                object::set_revision(&mut object, entries[*at].revision);
                let (body, header) = object::encode(&custom.conformed(object, &to), custom.state());
                let (key, revision) = (entries[*at].key.clone(), entries[*at].revision);
                entries[*at] = Arc::new(Entry { key, revision, body, header });
            }
        }
        Ok(entries)
    }

    /// One stored object in the version of this kind.
    pub(crate) async fn translate_one(&self, server: &Inner, entry: Stored) -> Result<Stored, ApiError> {
        if !self.is_converted_by_webhook() {
            return Ok(entry);
        }
        let mut translated = self.translate(server, vec![entry.clone()]).await?;
        Ok(translated.pop().unwrap_or(entry))
    }
}

/// Conversions that a computation needs and cannot wait for. It asks, goes on without, and is done again with the
/// answers until it asks for nothing more.
#[derive(Default)]
pub(crate) struct Conversions {
    known: Vec<(Value, String, Result<Value, String>)>,
    missing: Mutex<Vec<(Value, String)>>,
    rounds: usize,
}

impl Conversions {
    /// An object in another version, if that is known by now.
    pub(crate) fn get(&self, object: &Value, to: &str) -> Result<Value, ConvertError> {
        let found = self.known.iter().find(|(from, version, _)| version == to && from == object);
        if let Some((_, _, result)) = found {
            return result.clone().map_err(ConvertError::Failed);
        }
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.push((object.clone(), to.to_owned()));
        Err(ConvertError::Failed("not converted yet".to_owned()))
    }

    /// Whether something was asked for that is not known yet.
    pub(crate) fn is_incomplete(&self) -> bool {
        !self.missing.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Makes known what was asked for; says whether it is worth computing again.
    pub(crate) async fn complete(&mut self, server: &Inner, kind: &Kind) -> bool {
        let missing = std::mem::take(&mut *self.missing.lock().unwrap_or_else(PoisonError::into_inner));
        if missing.is_empty() || self.rounds == ROUNDS_MAX {
            return false;
        }
        self.rounds += 1;
        for (object, to) in missing {
            let result = kind.convert_for(server, object.clone(), &to).await;
            self.known.push((object, to, result.map_err(|error| error.message().to_owned())));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widget(metadata: Value) -> Value {
        json!({"apiVersion": "g/v2", "kind": "Widget", "metadata": metadata})
    }

    #[test]
    fn a_webhook_may_change_labels_and_annotations_only() {
        let original = json!({"apiVersion": "g/v1", "kind": "Widget",
            "metadata": {"name": "a", "uid": "u", "generation": 3, "labels": {"x": "1"}}});
        let kept = accept(&original, widget(json!({"name": "a", "uid": "u", "labels": {"y": "2"}})), "g/v2");
        let metadata = json!({"name": "a", "uid": "u", "generation": 3, "labels": {"y": "2"}});
        assert_eq!(kept, Ok(widget(metadata)));
        for (metadata, why) in [
            (json!({"name": "b", "uid": "u"}), "invalid object: must have the same name: a != b"),
            (json!({"name": "a", "uid": "v"}), "invalid object: must have the same UID: u != v"),
            (
                json!({"name": "a", "uid": "u", "labels": {"y": 2}}),
                "invalid metadata: metadata.labels[y] must be a string, but is int64 in converted object",
            ),
            (
                json!({"name": "a", "uid": "u", "annotations": []}),
                "invalid metadata: invalid metadata.annotations of type []interface {} in converted object",
            ),
        ] {
            assert_eq!(accept(&original, widget(metadata), "g/v2"), Err(why.to_owned()));
        }
        let wrong = json!({"apiVersion": "g/v9", "kind": "Widget", "metadata": {"name": "a", "uid": "u"}});
        let why = "invalid object at index 0: invalid groupVersion (expected g/v2, received g/v9)";
        assert_eq!(accept(&original, wrong, "g/v2"), Err(why.to_owned()));
    }
}
