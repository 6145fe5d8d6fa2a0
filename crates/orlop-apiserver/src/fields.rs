//! Field ownership: what `orlop-merge` needs to know of a kind.

use crate::admission::Gvk;
use crate::crd::Conversions;
use crate::kind::{Kind, Registry, Source};
use crate::object;
use crate::route::api_version;
use crate::server::Inner;
use crate::status::ApiError;
use orlop_kinds::catalog::catalog;
use orlop_kinds::codec;
use orlop_kinds::strategy::reset_fields;
use orlop_merge::managed::{self, ApplyError};
use orlop_merge::{ConvertError, Definitions, Filter, Force, ObjectType, Schema, Versions};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The definitions of built-in kinds, converted one by one when they are needed.
struct BuiltIn;

impl Definitions for BuiltIn {
    fn names(&self) -> Vec<String> {
        catalog().types().map(|(_, ty)| ty.model.to_owned()).filter(|name| !name.is_empty()).collect()
    }

    fn definition(&self, name: &str) -> Option<Value> {
        catalog().definition(name).cloned()
    }
}

/// The merge schema of built-in kinds.
pub(crate) fn schema() -> &'static Arc<Schema> {
    static SCHEMA: OnceLock<Arc<Schema>> = OnceLock::new();
    SCHEMA.get_or_init(|| Schema::new(BuiltIn))
}

/// Merge types of built-in kinds, by group and kind, then by version. What was owned through another group is
/// forgotten, as the real server forgets it.
fn built_in_types(kind: &Kind) -> Option<&'static BTreeMap<String, ObjectType>> {
    static TYPES: OnceLock<BTreeMap<(String, String), BTreeMap<String, ObjectType>>> = OnceLock::new();
    let all = TYPES.get_or_init(|| {
        let mut all: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for kind in Registry::built_in().iter() {
            let name = catalog().definition_name(&kind.group, &kind.version, &kind.kind);
            if let Some(ty) = name.and_then(|name| schema().object_type(name)) {
                let versions = all.entry((kind.group.clone(), kind.kind.clone())).or_default();
                versions.insert(kind.api_version(), ty);
            }
        }
        all
    });
    all.get(&(kind.group.clone(), kind.kind.clone()))
}

/// The merge type in which objects of a resource, or of one of its subresources, are shown. Objects of
/// subresources are described where their resource is, so that none is known in another group or version.
pub(crate) fn merge_type(kind: &Kind, shown: &Gvk) -> Option<ObjectType> {
    let version = api_version(&shown.group, &shown.version);
    if shown.kind == kind.kind {
        return KindVersions::of(kind, None).types.get(&version).cloned();
    }
    if (&shown.group, &shown.version) != (&kind.group, &kind.version) {
        return None;
    }
    schema().object_type(catalog().definition_name(&shown.group, &shown.version, &shown.kind)?)
}

/// A kind in all its versions.
struct KindVersions<'a> {
    kind: &'a Kind,
    types: &'a BTreeMap<String, ObjectType>,
    /// For kinds that a webhook converts.
    conversions: Option<&'a Conversions>,
}

impl<'a> KindVersions<'a> {
    fn of(kind: &'a Kind, conversions: Option<&'a Conversions>) -> Self {
        static NONE: BTreeMap<String, ObjectType> = BTreeMap::new();
        let conversions = conversions.filter(|_| kind.is_converted_by_webhook());
        let types = match &kind.source {
            Source::BuiltIn(_) => built_in_types(kind).unwrap_or(&NONE),
            Source::Custom(custom) => custom.object_types(),
        };
        Self { kind, types, conversions }
    }
}

impl Versions for KindVersions<'_> {
    fn object_type(&self, api_version: &str) -> Option<&ObjectType> {
        self.types.get(api_version)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        if object::text(object, "apiVersion") == api_version {
            return Ok(object.clone());
        }
        if !self.types.contains_key(api_version) {
            return Err(ConvertError::MissingVersion);
        }
        if let Some(conversions) = self.conversions {
            return conversions.get(object, api_version);
        }
        if let Some(field) = self.kind.custom().and_then(|custom| custom.undeclared(object, api_version)) {
            return Err(ConvertError::Failed(format!(".{field}: field not declared in schema")));
        }
        Ok(self.kind.convert(object, api_version))
    }

    fn empty(&self, api_version: &str) -> Value {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        match (&self.kind.source, catalog().type_of(group, version, &self.kind.kind)) {
            (Source::BuiltIn(_), Some(id)) => codec::zero(id).clone(),
            _ => json!({}),
        }
    }
}

impl Kind {
    /// A written object with the managed fields that follow from the write.
    pub(crate) fn own(
        &self,
        live: Option<&Value>,
        new: Value,
        manager: &str,
        subresource: &str,
        now: &str,
    ) -> Value {
        self.own_with(None, live, new, manager, subresource, now)
    }

    /// The same for a write whose conversions take time: if some are missing, the result does not count.
    fn own_with(
        &self,
        conversions: Option<&Conversions>,
        live: Option<&Value>,
        new: Value,
        manager: &str,
        subresource: &str,
        now: &str,
    ) -> Value {
        let version = self.api_version();
        let request = managed::Request {
            manager,
            subresource,
            api_version: &version,
            kind: &self.kind,
            now,
            reset: &self.reset_fields(subresource),
        };
        managed::update(&KindVersions::of(self, conversions), live, new, &request)
    }

    /// The same, waiting for conversions.
    pub(crate) async fn own_converted(
        &self,
        server: &Inner,
        live: Option<&Value>,
        new: Value,
        manager: &str,
        subresource: &str,
    ) -> Value {
        let now = server.now();
        if !self.is_converted_by_webhook() {
            return self.own(live, new, manager, subresource, &now);
        }
        let mut conversions = Conversions::default();
        loop {
            let owned = self.own_with(Some(&conversions), live, new.clone(), manager, subresource, &now);
            if !conversions.complete(server, self).await {
                return owned;
            }
        }
    }

    /// Server-side apply. If conversions are missing afterwards, the result does not count.
    #[expect(clippy::too_many_arguments, reason = "a write is all of these")]
    pub(crate) fn apply(
        &self,
        conversions: &Conversions,
        live: Option<&Value>,
        patch: &Value,
        force: Force,
        manager: &str,
        subresource: &str,
        now: &str,
    ) -> Result<Value, ApiError> {
        let version = self.api_version();
        let request = managed::Request {
            manager,
            subresource,
            api_version: &version,
            kind: &self.kind,
            now,
            reset: &self.reset_fields(subresource),
        };
        managed::apply(&KindVersions::of(self, Some(conversions)), live, patch, force, &request)
            .map_err(apply_error)
    }

    /// Fields that a request to this endpoint cannot own, because it cannot set them.
    fn reset_fields(&self, subresource: &str) -> Filter {
        let has_status = self.subresources.contains_key("status");
        match (&self.source, subresource) {
            (Source::Custom(_), "status") => Filter::include(&[&["status"]]),
            (Source::Custom(_), "") if has_status => Filter::exclude(&[&["status"]]),
            (Source::Custom(_), _) => Filter::exclude(&[]),
            (Source::BuiltIn(_), subresource) => self.built_in_reset_fields(subresource),
        }
    }
}

impl Kind {
    fn built_in_reset_fields(&self, subresource: &str) -> Filter {
        let part = (!subresource.is_empty()).then_some(subresource);
        let paths = reset_fields(&self.group, &self.kind, part);
        let paths: Vec<Vec<&str>> = paths.iter().map(|path| path.split('.').collect()).collect();
        Filter::exclude(&paths.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }
}

/// An apply that failed, as the client sees it.
pub(crate) fn apply_error(error: ApplyError) -> ApiError {
    match error {
        ApplyError::Conflict(conflicts) => {
            let causes: Vec<Value> = conflicts
                .causes
                .iter()
                .map(|cause| json!({"reason": "FieldManagerConflict", "message": cause.message, "field": cause.field}))
                .collect();
            ApiError::new(409, "Conflict", conflicts.message).with_details(json!({"causes": causes}))
        }
        ApplyError::BadRequest(why) => ApiError::bad_request(why),
        other => ApiError::internal_plain(other.to_string()),
    }
}
