//! A custom kind: one version of a definition, with its schema ready to be used.

use super::conditions;
use super::conversion::Converter;
use super::metadata::ServerMetadata;
use crate::kind::{Kind, Source, Subresource, table_name};
use crate::object;
use crate::route::api_version;
use crate::selector::fields::Selectable;
use base64::Engine;
use orlop_cel::Budget;
use orlop_cel::rules::{self, Compiled};
use orlop_kinds::json::normalise_numbers;
use orlop_kinds::table::Printer;
use orlop_kinds::validate::{Scope, object_meta_create, object_meta_update};
use orlop_merge::{ObjectType, UnknownFields};
use orlop_schema::field::{Fault, FieldError, Path, go_quote};
use orlop_schema::names::{self, NameRule};
use orlop_schema::structural::embedded::{self, Malformed, Metadata, Place};
use orlop_schema::structural::{Schema, default, lists, prune, validate};
use orlop_store::{Revision, Table};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// What a definition says about one version of its kind.
#[derive(Debug)]
pub(crate) struct CustomKind {
    /// The definition's name.
    pub(crate) definition: String,
    /// The state of the definition that this was made from.
    pub(super) revision: Revision,
    /// Changes whenever the definition's spec does, and is never the same for two definitions.
    state: u64,
    version: Value,
    terminating: bool,
    /// Whether stored objects look the same in this version, but for their `apiVersion`.
    plain: bool,
    schema: Arc<Schema>,
    versions: Arc<Versions>,
    printer: OnceLock<Printer>,
}

/// What all versions of a kind share.
#[derive(Debug)]
struct Versions {
    schemas: BTreeMap<String, Arc<Schema>>,
    /// Rules of versions that have some.
    rules: BTreeMap<String, Compiled>,
    types: BTreeMap<String, ObjectType>,
    /// Who converts objects, if it is not the server.
    converter: Option<Converter>,
    /// All versions in the order of the definition, with their subresources.
    all: Vec<(String, BTreeMap<String, Subresource>)>,
}

impl Versions {
    fn of(spec: &Value) -> Self {
        let group = object::text(spec, "group");
        let unknown = if spec["preserveUnknownFields"] == true {
            UnknownFields::Preserved
        } else {
            UnknownFields::Refused
        };
        let kind = object::text(&spec["names"], "kind");
        let mut all = Self {
            schemas: BTreeMap::new(),
            rules: BTreeMap::new(),
            types: BTreeMap::new(),
            converter: Converter::of(spec),
            all: Vec::new(),
        };
        for version in spec["versions"].as_array().into_iter().flatten() {
            let short = object::text(version, "name");
            all.all.push((short.to_owned(), subresources(version, group, short, kind)));
            let name = api_version(group, short);
            let schema = version["schema"].get("openAPIV3Schema");
            let parsed = Schema::parse(schema.unwrap_or(&Value::Null));
            if let Some(rules) = rules::compile(&parsed) {
                all.rules.insert(name.clone(), rules);
            }
            all.schemas.insert(name.clone(), Arc::new(parsed));
            all.types.insert(name, orlop_merge::Schema::custom_resource(schema, unknown));
        }
        all
    }
}

impl CustomKind {
    /// All served versions of an established definition, as kinds; `known` is any of its kinds made before.
    pub(crate) fn load(definition: &Value, revision: Revision, known: Option<&Self>) -> Vec<Kind> {
        let spec = &definition["spec"];
        let group = object::text(spec, "group");
        let names = &definition["status"]["acceptedNames"];
        let state = state_of(spec);
        let versions = known
            .filter(|known| known.state == state)
            .map_or_else(|| Arc::new(Versions::of(spec)), |known| known.versions.clone());
        let all: Vec<&Value> = spec["versions"].as_array().into_iter().flatten().collect();
        let stored = all.iter().find(|version| version["storage"] == true).copied().unwrap_or(&Value::Null);
        let storage = api_version(group, object::text(stored, "name"));
        let list = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(|v| Some(v.as_str()?.to_owned())).collect()
        };
        let text = |field: &str| object::text(names, field).to_owned();
        let served = all.iter().filter(|version| version["served"] == true);
        served
            .map(|version| {
                let name = object::text(version, "name");
                let custom = Self {
                    definition: object::meta_str(definition, "name").to_owned(),
                    revision,
                    state,
                    version: (*version).clone(),
                    terminating: conditions::is_true(definition, "Terminating"),
                    plain: version["schema"] == stored["schema"]
                        && (versions.converter.is_none() || version["name"] == stored["name"]),
                    schema: versions.schemas.get(&api_version(group, name)).cloned().unwrap_or_default(),
                    versions: versions.clone(),
                    printer: OnceLock::new(),
                };
                let selectable = version["selectableFields"].as_array().into_iter().flatten();
                let selectable =
                    selectable.map(|f| object::text(f, "jsonPath").trim_start_matches('.').to_owned());
                Kind {
                    group: group.to_owned(),
                    version: name.to_owned(),
                    kind: text("kind"),
                    list_kind: text("listKind"),
                    plural: text("plural"),
                    singular: text("singular"),
                    short_names: list(&names["shortNames"]),
                    categories: list(&names["categories"]),
                    namespaced: spec["scope"] == "Namespaced",
                    verbs: VERBS.map(str::to_owned).to_vec(),
                    storage_version_hash: storage_hash(group, object::text(stored, "name"), &text("kind")),
                    table: Table::new(&table_name(group, &text("plural"))),
                    storage: storage.clone(),
                    subresources: subresources(version, group, name, &text("kind")),
                    selectable: Selectable::custom(selectable),
                    source: Source::Custom(Arc::new(custom)),
                }
            })
            .collect()
    }

    /// How objects become rows of a Table.
    pub(crate) fn printer(&self) -> &Printer {
        self.printer.get_or_init(|| Printer::custom(self.version.get("additionalPrinterColumns")))
    }

    /// A number that changes with the schema.
    pub(crate) fn state(&self) -> u64 {
        self.state
    }

    /// Whether an object written under this state needs nothing done when it is read.
    pub(crate) fn is_current(&self, state: u64) -> bool {
        self.plain && self.state == state
    }

    /// Whether the definition is being deleted, so that nothing new may be created.
    pub(crate) fn is_terminating(&self) -> bool {
        self.terminating
    }

    /// The scale subresource of this version.
    pub(crate) fn scale(&self) -> Value {
        self.version["subresources"]["scale"].clone()
    }

    /// The schema of this version as it was written.
    pub(super) fn open_api_schema(&self) -> &Value {
        &self.version["schema"]["openAPIV3Schema"]
    }

    /// All versions of the definition, served or not, with their subresources.
    pub(crate) fn all_versions(&self) -> &[(String, BTreeMap<String, Subresource>)] {
        &self.versions.all
    }

    /// Merge types of all versions.
    pub(crate) fn object_types(&self) -> &BTreeMap<String, ObjectType> {
        &self.versions.types
    }

    /// A stored object in a version: as the schemas of today would have it.
    pub(crate) fn read(&self, object: Value, api_version: &str, state: u64) -> Value {
        self.convert(self.refreshed(object, state), api_version)
    }

    /// A stored object as the schema of its version would have it today.
    pub(super) fn refreshed(&self, mut object: Value, state: u64) -> Value {
        if self.state != state
            && let Some(schema) = self.versions.schemas.get(object::text(&object, "apiVersion"))
        {
            conform(&mut object, schema);
            default::default(&mut object, schema);
            if object::meta_i64(&object, "generation").unwrap_or(0) == 0 {
                object::set_meta(&mut object, "generation", 1);
            }
        }
        object
    }

    /// The webhook that converts objects, if the definition names one.
    pub(super) fn converter(&self) -> Option<&Converter> {
        self.versions.converter.as_ref()
    }

    /// An object whose metadata someone else changed, without what is not metadata.
    pub(crate) fn with_good_metadata(&self, mut object: Value) -> Value {
        if let Some(Ok((metadata, _))) =
            object.get("metadata").map(|metadata| ServerMetadata.decode(metadata))
        {
            object["metadata"] = metadata;
            return object;
        }
        let fields = object::meta_mut(&mut object);
        fields.retain(|name, value| {
            let alone = Value::Object([(name.clone(), value.clone())].into_iter().collect());
            ServerMetadata.decode(&alone).is_ok()
        });
        object
    }

    /// An object that someone else converted, with nothing that the version does not declare.
    pub(crate) fn conformed(&self, mut object: Value, api_version: &str) -> Value {
        if let Some(schema) = self.versions.schemas.get(api_version) {
            conform(&mut object, schema);
        }
        object
    }

    /// An object as it is stored, in the storage version.
    pub(crate) fn to_storage(&self, object: Value, storage: &str) -> Value {
        let mut stored = self.convert(object, storage);
        if let Some(schema) = self.versions.schemas.get(storage).filter(|_| !self.plain) {
            default::default(&mut stored, schema);
        }
        stored
    }

    /// An object of this version after it has been stored: what the storage version cannot hold is gone.
    pub(crate) fn after_storage(&self, object: Value, storage: &str) -> Value {
        if self.plain {
            return object;
        }
        let version = object::text(&object, "apiVersion").to_owned();
        self.convert(self.to_storage(object, storage), &version)
    }

    /// A field of an object that another version does not have.
    pub(crate) fn undeclared(&self, object: &Value, api_version: &str) -> Option<String> {
        let schema = self.versions.schemas.get(api_version)?;
        prune::prune(&mut object.clone(), schema).into_iter().next()
    }

    /// An object in another version, as the server itself converts: what is not declared there goes.
    pub(super) fn convert(&self, mut object: Value, to: &str) -> Value {
        if object::text(&object, "apiVersion") == to {
            return object;
        }
        object["apiVersion"] = to.into();
        if let Some(schema) = self.versions.schemas.get(to) {
            conform(&mut object, schema);
        }
        object
    }

    /// Gives an object that a client sent its form: metadata as such, nothing undeclared, no empty nulls.
    pub(crate) fn decode(&self, mut value: Value) -> Result<(Value, Vec<String>), String> {
        normalise_numbers(&mut value);
        let mut unknown = Vec::new();
        let metadata = match value.get("metadata") {
            None => None,
            Some(metadata) => {
                let (decoded, fields) = ServerMetadata.decode(metadata)?;
                unknown.extend(fields.iter().map(|field| format!("metadata.{field}")));
                Some(decoded)
            }
        };
        unknown.extend(prune::prune(&mut value, &self.schema));
        default::prune_nulls(&mut value, &self.schema);
        let coerced = embedded::coerce(
            &mut value,
            &self.schema,
            &Path::root(),
            Place::Part,
            &ServerMetadata,
            Malformed::Refused,
        );
        unknown.extend(coerced.map_err(|error| error.to_string())?);
        if let Some(metadata) = metadata {
            value["metadata"] = metadata;
        }
        let unknown = unknown.iter().map(|field| format!("unknown field \"{field}\"")).collect();
        Ok((value, unknown))
    }

    /// Sets defaults.
    pub(crate) fn default(&self, object: &mut Value) {
        default::default(object, &self.schema);
    }

    /// Sets the defaults of another version.
    pub(crate) fn default_in(&self, object: &mut Value, api_version: &str) {
        if let Some(schema) = self.versions.schemas.get(api_version) {
            default::default(object, schema);
        }
    }

    fn has_status(&self) -> bool {
        self.version["subresources"].get("status").is_some()
    }

    /// What becomes of a new object.
    pub(crate) fn prepare_create(&self, object: &mut Value) {
        if self.has_status()
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        object::set_meta(object, "generation", 1);
    }

    /// What becomes of a changed object.
    pub(crate) fn prepare_update(&self, subresource: &str, object: &mut Value, old: &Value) {
        if subresource == "status" {
            let mut next = old.clone();
            object::copy_field(&mut next, object, "status");
            object::copy_meta(&mut next, object, "managedFields");
            object::copy_meta(&mut next, object, "resourceVersion");
            *object = next;
            return;
        }
        if self.has_status() {
            object::copy_field(object, old, "status");
        }
        let fields = |value: &Value| -> BTreeMap<String, Value> {
            let all = value.as_object().into_iter().flatten();
            all.filter(|(name, _)| *name != "metadata").map(|(n, v)| (n.clone(), v.clone())).collect()
        };
        if fields(object) != fields(old) {
            let generation = object::meta_i64(old, "generation").unwrap_or(0);
            object::set_meta(object, "generation", generation + 1);
        }
    }

    /// What is wrong with a new object.
    pub(crate) fn validate_create(&self, kind: &Kind, object: &Value) -> Vec<FieldError> {
        let mut errors = type_errors(kind, object);
        if !errors.is_empty() {
            return errors;
        }
        let scope = if kind.namespaced { Scope::Namespaced } else { Scope::Cluster };
        let metadata = Path::new("metadata");
        errors.extend(object_meta_create(meta(object), scope, NameRule::Subdomain, &metadata));
        errors.extend(validate::validate(object, &self.schema, None));
        errors.extend(self.scale_errors(object, ScalePart::All));
        errors.extend(self.embedded_errors(object));
        errors.extend(lists::validate(object, &self.schema));
        self.check_rules(kind, object, None, &mut errors);
        errors
    }

    /// What is wrong with a changed object; what was wrong before and has not changed may stay.
    pub(crate) fn validate_update(
        &self,
        kind: &Kind,
        subresource: &str,
        object: &Value,
        old: &Value,
    ) -> Vec<FieldError> {
        let mut errors = type_errors(kind, object);
        if !errors.is_empty() {
            return errors;
        }
        errors.extend(object_meta_update(meta(object), meta(old), &Path::new("metadata")));
        if subresource == "status" {
            errors.extend(self.status_errors(object, old));
            errors.extend(self.scale_errors(object, ScalePart::Status));
        } else {
            errors.extend(validate::validate_update(object, &self.schema, old, None));
            errors.extend(self.scale_errors(object, ScalePart::All));
            errors.extend(self.embedded_errors(object));
        }
        if lists::validate(old, &self.schema).is_empty() {
            errors.extend(lists::validate(object, &self.schema));
        }
        self.check_rules(kind, object, Some(old), &mut errors);
        errors
    }

    /// Adds what the rules of the schema refuse; an object of the wrong shape is not shown to them.
    fn check_rules(&self, kind: &Kind, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
        let Some(compiled) = self.versions.rules.get(&kind.api_version()) else { return };
        let blocks = |error: &FieldError| {
            matches!(
                error.fault,
                Fault::NotSupported | Fault::Required | Fault::TooLong | Fault::TooMany | Fault::TypeInvalid
            )
        };
        if errors.iter().any(blocks) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing \
                       errors to complete validation";
            errors.push(FieldError::invalid(&Path::new("<nil>"), &Value::Null, why));
            return;
        }
        errors.extend(rules::validate(compiled, &self.schema, object, old, &mut Budget::object()).errors);
    }

    fn status_errors(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let (Some(status), Some(schema)) = (object.get("status"), self.schema.properties.get("status"))
        else {
            return Vec::new();
        };
        let path = Path::new("status");
        match old.get("status") {
            Some(old) => validate::validate_update(status, schema, old, Some(&path)),
            None => validate::validate(status, schema, Some(&path)),
        }
    }

    fn embedded_errors(&self, object: &Value) -> Vec<FieldError> {
        embedded::validate(object, &self.schema, &Path::root(), Place::Part, &ServerMetadata)
    }

    fn scale_errors(&self, object: &Value, part: ScalePart) -> Vec<FieldError> {
        let scale = &self.version["subresources"]["scale"];
        let Some(scale) = Some(scale).filter(|scale| scale.is_object()) else { return Vec::new() };
        let mut errors = Vec::new();
        if part == ScalePart::All {
            errors.extend(replicas_error(object, object::text(scale, "specReplicasPath")));
        }
        errors.extend(replicas_error(object, object::text(scale, "statusReplicasPath")));
        let selector = object::text(scale, "labelSelectorPath");
        if !selector.is_empty()
            && let Err(why) = nested(object, selector, "string", Value::is_string)
        {
            errors.push(FieldError::invalid(&Path::new(selector), &Value::from(""), why));
        }
        errors
    }

    /// What the writer should know: finalizers without a domain clash easily.
    pub(crate) fn warnings(&self, kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<String> {
        let rules = self.versions.rules.get(&kind.api_version()).filter(|_| old.is_some());
        let tolerated = rules.map(|compiled| {
            rules::validate(compiled, &self.schema, object, old, &mut Budget::object()).warnings
        });
        let known = old.map(object::finalizers).unwrap_or_default();
        let added: BTreeSet<&str> =
            object::finalizers(object).into_iter().filter(|name| !known.contains(name)).collect();
        added.into_iter().flat_map(finalizer_warnings).chain(tolerated.into_iter().flatten()).collect()
    }

    /// The warning that every use of a deprecated version gets.
    pub(crate) fn deprecation(&self, kind: &Kind) -> Option<String> {
        if self.version["deprecated"] != true {
            return None;
        }
        let own = object::text(&self.version, "deprecationWarning");
        Some(if own.is_empty() {
            format!("{} {} is deprecated", kind.api_version(), kind.kind)
        } else {
            own.to_owned()
        })
    }
}

/// Drops from an object what a schema does not have.
fn conform(object: &mut Value, schema: &Schema) {
    prune::prune(object, schema);
    default::prune_nulls(object, schema);
    // What is malformed is dropped, so there is nothing to report.
    let _ = embedded::coerce(object, schema, &Path::root(), Place::Part, &ServerMetadata, Malformed::Dropped);
}

/// FNV-1a over what decides the stored shape of objects: definitions with the same schemas share it, others do
/// not, wherever they come from.
fn state_of(spec: &Value) -> u64 {
    struct Fnv(u64);
    impl std::io::Write for Fnv {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            self.0 = bytes.iter().fold(self.0, step);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    let shape = (&spec["versions"], &spec["preserveUnknownFields"]);
    serde_json::to_writer(&mut hash, &shape).expect("a hash takes every byte");
    hash.0
}

/// The hash by which discovery tells storage versions apart.
fn storage_hash(group: &str, version: &str, kind: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("{group}/{version}/{kind}").as_bytes());
    base64::engine::general_purpose::STANDARD.encode(&digest.as_ref()[..8])
}

fn subresources(version: &Value, group: &str, name: &str, kind: &str) -> BTreeMap<String, Subresource> {
    let verbs = || ["get", "patch", "update"].map(str::to_owned).to_vec();
    let make = |group: &str, version: &str, kind: &str| Subresource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        verbs: verbs(),
    };
    let declared = &version["subresources"];
    let mut all = BTreeMap::new();
    if declared.get("status").is_some() {
        all.insert("status".to_owned(), make(group, name, kind));
    }
    if declared.get("scale").is_some_and(Value::is_object) {
        all.insert("scale".to_owned(), make("autoscaling", "v1", "Scale"));
    }
    all
}

fn meta(object: &Value) -> &Value {
    object.get("metadata").unwrap_or(&Value::Null)
}

fn type_errors(kind: &Kind, object: &Value) -> Vec<FieldError> {
    [("kind", kind.kind.clone()), ("apiVersion", kind.api_version())]
        .into_iter()
        .filter(|(field, wanted)| object::text(object, field) != wanted)
        .map(|(field, wanted)| {
            let value = json!(object::text(object, field));
            FieldError::invalid(&Path::new(field), &value, format!("must be {wanted}"))
        })
        .collect()
}

/// Which part of a scale a write can change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScalePart {
    All,
    Status,
}

fn replicas_error(object: &Value, field: &str) -> Option<FieldError> {
    let path = Path::new(field);
    match nested(object, field, "int64", |value| value.as_i64().is_some()) {
        Err(why) => Some(FieldError::invalid(&path, &json!(0), why)),
        Ok(value) => {
            let replicas = value.and_then(Value::as_i64).unwrap_or(0);
            let why = if replicas < 0 {
                "should be a non-negative integer".to_owned()
            } else if replicas > i64::from(i32::MAX) {
                format!("should be less than or equal to {}", i32::MAX)
            } else {
                return None;
            };
            Some(FieldError::invalid(&path, &json!(replicas), why))
        }
    }
}

/// The value at a path, which must be of a type if it is there; Go's words if it is not.
fn nested<'a>(
    object: &'a Value,
    path: &str,
    wanted: &str,
    is_wanted: impl Fn(&Value) -> bool,
) -> Result<Option<&'a Value>, String> {
    let fields: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let complain = |depth: usize, value: &Value, wanted: &str| {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let path = fields[..depth].join(".");
        Err(format!(".{path} accessor error: {shown} is of the type {}, expected {wanted}", go_type(value)))
    };
    let mut here = object;
    for (depth, field) in fields.iter().enumerate() {
        let Some(map) = here.as_object() else {
            return if here.is_null() {
                Ok(None)
            } else {
                complain(depth + 1, here, "map[string]interface{}")
            };
        };
        match map.get(*field) {
            Some(value) => here = value,
            None => return Ok(None),
        }
    }
    if is_wanted(here) { Ok(Some(here)) } else { complain(fields.len(), here, wanted) }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::String(_) => "string",
        Value::Number(number) if number.as_i64().is_some() => "int64",
        Value::Number(_) => "float64",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn finalizer_warnings(name: &str) -> Vec<String> {
    const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
    let lead = format!("metadata.finalizers: {}", go_quote(name));
    let mut warnings: Vec<String> =
        names::qualified_name(name).into_iter().map(|why| format!("{lead}: {why}")).collect();
    if !name.contains('/') && !STANDARD.contains(&name) {
        let how = if name.contains('.') {
            "prefer a domain-qualified finalizer name including a path (/)"
        } else {
            "prefer a domain-qualified finalizer name"
        };
        warnings.push(format!("{lead}: {how} to avoid accidental conflicts with other finalizer writers"));
    }
    warnings
}
