//! The scale subresource: one shape for everything that has replicas.

use super::Call;
use super::decode::Expected;
use super::patch::Patch;
use super::render::Answer;
use super::write::{IfAbsent, Next, Ownership};
use crate::kind::Source;
use crate::object;
use crate::options::{FieldValidation, WriteOptions, WriteVerb};
use crate::status::ApiError;
use orlop_kinds::validate;
use orlop_merge::managed::{self, Replicas, ScaleFields};
use orlop_merge::{Filter, OneVersion, Path as FieldPath, PathElement, json_merge, json_patch, strategic};
use serde_json::{Value, json};

/// Where a kind keeps its replicas, as dotted paths.
struct Paths {
    spec: String,
    status: String,
    selector: Option<String>,
}

impl Call {
    fn scale_paths(&self) -> Paths {
        match &self.kind.source {
            Source::BuiltIn(_) => Paths {
                spec: "spec.replicas".to_owned(),
                status: "status.replicas".to_owned(),
                selector: Some("spec.selector".to_owned()),
            },
            Source::Custom(custom) => {
                let scale = custom.scale();
                let path = |field: &str| object::text(&scale, field).trim_start_matches('.').to_owned();
                let selector = Some(path("labelSelectorPath")).filter(|path| !path.is_empty());
                Paths { spec: path("specReplicasPath"), status: path("statusReplicasPath"), selector }
            }
        }
    }

    /// The scale of an object.
    pub(super) fn scale_of(&self, object: &Value) -> Result<Value, ApiError> {
        let paths = self.scale_paths();
        let replicas = object::at(object, &paths.spec);
        if self.kind.custom().is_some() && replicas.is_none() {
            let why = format!("the spec replicas field \".{}\" does not exist", paths.spec);
            return Err(ApiError::internal_plain(why));
        }
        let mut metadata = json!({});
        for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = object["metadata"].get(field) {
                metadata[field] = value.clone();
            }
        }
        let mut spec = json!({});
        if let Some(replicas) = replicas.and_then(Value::as_i64).filter(|n| *n != 0) {
            spec["replicas"] = replicas.into();
        }
        let seen = object::at(object, &paths.status).and_then(Value::as_i64).unwrap_or(0);
        let mut status = json!({"replicas": seen});
        if let Some(selector) = paths.selector.and_then(|path| object::at(object, &path).map(selector_text))
            && !selector.is_empty()
        {
            status["selector"] = selector.into();
        }
        Ok(
            json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}),
        )
    }

    /// The scale of an object with the managed fields that concern it.
    pub(super) fn scale_with_owners(&self, object: &Value) -> Result<Value, ApiError> {
        let mut scale = self.scale_of(object)?;
        let paths = self.scale_paths();
        let version = self.kind.api_version();
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let path = FieldPath(paths.spec.split('.').map(PathElement::field).collect());
        let replicas = [(version.as_str(), Replicas::At(path))];
        let fields = ScaleFields { parent: &entries, api_version: &version, replicas: &replicas };
        let owners = fields.to_scale().unwrap_or_default();
        object::set_meta(
            &mut scale,
            "managedFields",
            if owners.is_empty() { Value::Null } else { json!(owners) },
        );
        Ok(scale)
    }

    /// Gives an object the replicas of a scale, if that makes sense.
    pub(super) fn set_replicas(&self, object: &mut Value, scale: &Value) -> Result<(), ApiError> {
        let kind = validate::Kind { group: "autoscaling", version: "v1", kind: "Scale" };
        let errors = validate::create(&kind, scale);
        if !errors.is_empty() {
            return Err(ApiError::invalid("autoscaling", "Scale", &self.route.name, &errors));
        }
        let wanted = object::at(scale, "spec.replicas").and_then(Value::as_i64).unwrap_or(0);
        object::set_at(object, &self.scale_paths().spec, wanted.into());
        Ok(())
    }

    /// GET of a scale.
    pub(super) async fn get_scale(&mut self) -> Result<Answer, ApiError> {
        let object = self.object(&self.route.name).await?;
        Ok(Answer::Value(200, self.scale_of(&object)?))
    }

    /// PUT of a scale.
    pub(super) async fn update_scale(&mut self) -> Result<Answer, ApiError> {
        let options = WriteOptions::parse(&self.query, WriteVerb::Update)?;
        let expected = Expected::built_in("autoscaling", "v1", "Scale")?;
        let mut scale = self.decode_as(expected, options.field_validation)?;
        self.check_name(&scale)?;
        self.check_namespace(&mut scale)?;
        self.write_scale(&options, move |_, _| Ok(Scaled { scale: scale.clone(), owned: None })).await
    }

    /// PATCH of a scale.
    pub(super) async fn patch_scale(&mut self) -> Result<Answer, ApiError> {
        let (patch, options) = self.read_patch()?;
        let force = options.force;
        let manager = options.field_manager.clone();
        self.write_scale(&options, move |call, live| {
            let patched = match &patch {
                Patch::Apply(patch) => {
                    let now = call.server.now();
                    let request = managed::Request {
                        manager: &manager,
                        subresource: "scale",
                        api_version: "autoscaling/v1",
                        kind: "Scale",
                        now: &now,
                        reset: &Filter::exclude(&[]),
                    };
                    let applied = managed::apply(&scale_versions()?, Some(live), patch, force, &request);
                    let mut scale = applied.map_err(crate::fields::apply_error)?;
                    let owned = scale["metadata"]["managedFields"].take();
                    return Ok(Scaled { scale, owned: owned.as_array().cloned() });
                }
                Patch::Json(patch) => {
                    json_patch::apply(live.clone(), patch).map_err(super::patch::json_patch_error)?
                }
                Patch::Merge(patch) => json_merge::apply(live.clone(), patch)
                    .map_err(|why| ApiError::bad_request(why.to_string()))?,
                Patch::Strategic(patch) => {
                    let name = "io.k8s.api.autoscaling.v1.Scale";
                    let ty = crate::fields::schema().object_type(name);
                    let ty = ty.ok_or_else(|| ApiError::internal("no schema for Scale"))?;
                    strategic::apply(&ty, live.clone(), patch.clone())
                        .map_err(super::patch::strategic_error)?
                }
            };
            let expected = Expected::built_in("autoscaling", "v1", "Scale")?;
            let (scale, unknown) = Self::decode_value(patched, expected)?;
            call.report_strict(unknown, FieldValidation::Warn, &expected)?;
            Ok(Scaled { scale, owned: None })
        })
        .await
    }

    /// Writes replicas through a scale.
    async fn write_scale(
        &mut self,
        options: &WriteOptions,
        mut next: impl FnMut(&mut Self, &Value) -> Result<Scaled, ApiError> + Send,
    ) -> Result<Answer, ApiError> {
        let paths = self.scale_paths();
        let manager = self.manager(options);
        let (object, _) = self
            .update_object("scale", options, IfAbsent::Refuse, |call, live| {
                let Some(live) = live else { return Err(call.not_found(&call.route.name)) };
                let mut live_scale = call.scale_of(live)?;
                let replicas_path: FieldPath =
                    FieldPath(paths.spec.split('.').map(PathElement::field).collect());
                let version = call.kind.api_version();
                let entries = live["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
                let replicas = [(version.as_str(), Replicas::At(replicas_path))];
                let fields = ScaleFields { parent: &entries, api_version: &version, replicas: &replicas };
                let scale_entries = fields.to_scale().unwrap_or_default();
                live_scale["metadata"]["managedFields"] = json!(scale_entries);
                let made = next(call, &live_scale)?;
                let mut scale = made.scale;
                call.check_name(&scale)?;
                let owned = if let Some(owned) = made.owned {
                    owned
                } else {
                    let now = call.server.now();
                    let request = managed::Request {
                        manager: &manager,
                        subresource: "scale",
                        api_version: "autoscaling/v1",
                        kind: "Scale",
                        now: &now,
                        reset: &Filter::exclude(&[]),
                    };
                    object::set_meta(&mut scale, "managedFields", Value::Null);
                    let written =
                        managed::update(&scale_versions()?, Some(&live_scale), scale.clone(), &request);
                    written["metadata"]["managedFields"].as_array().cloned().unwrap_or_default()
                };
                let mut object = live.clone();
                let wanted = object::at(&scale, "spec.replicas").and_then(Value::as_i64).unwrap_or(0);
                object::set_at(&mut object, &paths.spec, wanted.into());
                let given = object::meta_str(&scale, "resourceVersion").to_owned();
                if !given.is_empty() {
                    object::set_meta(&mut object, "resourceVersion", given);
                }
                if let Ok(entries) = fields.to_parent(&owned) {
                    object::set_meta(&mut object, "managedFields", json!(entries));
                }
                object::set_meta(&mut scale, "managedFields", json!(owned));
                Ok(Next { object, ownership: Ownership::Computed, shown: Some(scale) })
            })
            .await?;
        Ok(Answer::Value(200, self.scale_of(&object)?))
    }
}

/// A scale as someone wants it.
struct Scaled {
    scale: Value,
    /// Managed fields, where the write computed them itself.
    owned: Option<Vec<Value>>,
}

fn scale_versions() -> Result<OneVersion, ApiError> {
    let ty = crate::fields::schema().object_type("io.k8s.api.autoscaling.v1.Scale");
    let ty = ty.ok_or_else(|| ApiError::internal("no schema for Scale"))?;
    Ok(OneVersion::built_in("autoscaling/v1", ty))
}

/// A selector in the text form that scale shows.
fn selector_text(selector: &Value) -> String {
    let Some(map) = selector.as_object() else { return selector.as_str().unwrap_or_default().to_owned() };
    let labels = map.get("matchLabels").and_then(Value::as_object);
    let is_label_selector = map.contains_key("matchLabels") || map.contains_key("matchExpressions");
    let pairs = if is_label_selector { labels } else { Some(map) };
    let mut terms: Vec<(String, String)> = pairs
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    for rule in map.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = object::text(rule, "key");
        let mut values: Vec<&str> =
            rule["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let text = match object::text(rule, "operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        terms.push((key.to_owned(), text));
    }
    terms.sort();
    terms.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}
