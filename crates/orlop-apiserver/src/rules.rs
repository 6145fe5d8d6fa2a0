//! The rules of a kind, wherever they come from.

use crate::kind::{Kind, Source};
use crate::object::{self, Stored};
use crate::rest::Selection;
use orlop_kinds::catalog::catalog;
use orlop_kinds::strategy::{self, Deletion, Strategy};
use orlop_kinds::{codec, conversion, defaults, validate};
use orlop_schema::field::FieldError;
use serde_json::{Value, json};

impl Kind {
    /// A stored object in this kind's version.
    pub(crate) fn read(&self, stored: &Stored) -> Value {
        let object = object::decode(&stored.body);
        match &self.source {
            Source::BuiltIn(_) if object::text(&object, "apiVersion") == self.api_version() => object,
            Source::BuiltIn(_) => self.convert(&object, &self.api_version()),
            Source::Custom(custom) => custom.read(object, &self.api_version(), stored.header.schema),
        }
    }

    /// An object in another version of the same kind.
    pub(crate) fn convert(&self, object: &Value, to: &str) -> Value {
        if object::text(object, "apiVersion") == to {
            return object.clone();
        }
        let mut converted = object.clone();
        if matches!(self.source, Source::BuiltIn(_)) {
            let from = object::text(object, "apiVersion");
            let pair = |text: &'_ str| {
                text.rsplit_once('/')
                    .map_or((String::new(), text.to_owned()), |(g, v)| (g.to_owned(), v.to_owned()))
            };
            let (from, target) = (pair(from), pair(to));
            conversion::to_version(&self.kind, (&from.0, &from.1), (&target.0, &target.1), &mut converted);
        }
        converted["apiVersion"] = to.into();
        converted
    }

    /// An object as it is stored.
    pub(crate) fn to_storage(&self, object: &Value) -> Value {
        match &self.source {
            Source::BuiltIn(_) => self.convert(object, &self.storage),
            Source::Custom(custom) => custom.to_storage(object.clone(), &self.storage),
        }
    }

    /// An object after it has been stored, in the version in which it was written.
    pub(crate) fn after_storage(&self, object: Value) -> Value {
        match &self.source {
            Source::BuiltIn(_) => object,
            Source::Custom(custom) => custom.after_storage(object, &self.storage),
        }
    }

    /// The state of the schema that objects are written under now.
    pub(crate) fn schema_state(&self) -> u64 {
        self.custom().map_or(0, |custom| custom.state())
    }

    /// An object of this kind with nothing in it.
    pub(crate) fn empty(&self) -> Value {
        let bare = json!({"kind": self.kind, "apiVersion": self.api_version(), "metadata": {}});
        match &self.source {
            Source::BuiltIn(id) => codec::decode(*id, bare.clone()).map_or(bare, |decoded| decoded.value),
            Source::Custom(_) => bare,
        }
    }

    /// A custom object, checked for structure: unknown fields are dropped and named.
    pub(crate) fn decode_custom(&self, value: Value) -> Result<(Value, Vec<String>), String> {
        match &self.source {
            Source::Custom(custom) => custom.decode(value),
            Source::BuiltIn(_) => Ok((value, Vec::new())),
        }
    }

    /// A custom object without what its kind does not declare.
    pub(crate) fn tidied(&self, object: Value) -> Value {
        match &self.source {
            Source::Custom(custom) => custom.conformed(object, &self.api_version()),
            Source::BuiltIn(_) => object,
        }
    }

    /// Sets what the writer left out.
    pub(crate) fn default(&self, object: &mut Value) {
        match &self.source {
            Source::BuiltIn(id) => {
                defaults::default_object(*id, object);
                conversion::convert(*id, object);
            }
            Source::Custom(custom) => custom.default(object),
        }
    }

    /// What becomes of a new object before it is validated.
    pub(crate) fn prepare_create(&self, object: &mut Value, context: &strategy::Context<'_>) {
        match &self.source {
            Source::BuiltIn(_) => {
                strategy::prepare_create(&self.group, &self.version, &self.kind, object, context);
            }
            Source::Custom(custom) => custom.prepare_create(object),
        }
    }

    /// What becomes of a changed object before it is validated.
    pub(crate) fn prepare_update(
        &self,
        subresource: &str,
        object: &mut Value,
        old: &Value,
        context: &strategy::Context<'_>,
    ) {
        match &self.source {
            Source::BuiltIn(_) => {
                let part = (!subresource.is_empty()).then_some(subresource);
                strategy::prepare_update(&self.group, &self.kind, part, object, old, context);
            }
            Source::Custom(custom) => custom.prepare_update(subresource, object, old),
        }
    }

    /// What is wrong with a new object.
    pub(crate) fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        match &self.source {
            Source::BuiltIn(_) if crate::crd::is_definition(self) => crate::crd::validate(object, None),
            Source::BuiltIn(_) => validate::create(&self.id(), object),
            Source::Custom(custom) => custom.validate_create(self, object),
        }
    }

    /// What is wrong with a changed object.
    pub(crate) fn validate_update(&self, subresource: &str, object: &Value, old: &Value) -> Vec<FieldError> {
        match &self.source {
            Source::BuiltIn(_) if crate::crd::is_definition(self) => {
                if subresource.is_empty() {
                    crate::crd::validate(object, Some(old))
                } else {
                    crate::crd::validate_status(object, old)
                }
            }
            Source::BuiltIn(_) => validate::update(&self.id(), subresource, object, old),
            Source::Custom(custom) => custom.validate_update(self, subresource, object, old),
        }
    }

    /// What the writer should know.
    pub(crate) fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        match &self.source {
            Source::BuiltIn(_) if crate::crd::is_definition(self) => crate::crd::warnings(object, old),
            Source::BuiltIn(_) => validate::warnings(&self.id(), object, old),
            Source::Custom(custom) => custom.warnings(self, object, old),
        }
    }

    /// The warning that every use of a deprecated kind gets.
    pub(crate) fn deprecation(&self) -> Option<String> {
        match (&self.source, self.group.as_str(), self.plural.as_str()) {
            (Source::Custom(custom), ..) => custom.deprecation(self),
            (_, "", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+".to_owned()),
            (_, "", "endpoints") => {
                Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned())
            }
            _ => None,
        }
    }

    /// Whether a stored object is in a selection.
    pub(crate) fn selects(&self, selection: &Selection, stored: &Stored) -> bool {
        if !stored.key.as_str().starts_with(selection.prefix())
            || !selection.labels.matches(&stored.header.labels)
        {
            return false;
        }
        if selection.fields.is_empty() {
            return true;
        }
        let (namespace, name) = stored.key.as_str().rsplit_once('/').unwrap_or(("", stored.key.as_str()));
        selection.fields.matches_name(namespace, name)
            && (!selection.fields.needs_object()
                || selection.fields.matches(&self.read(stored), &self.selectable))
    }

    /// The type that strategic merge patches look their keys up in.
    pub(crate) fn strategic_type(&self) -> Option<orlop_merge::ObjectType> {
        let name = catalog().definition_name(&self.group, &self.version, &self.kind)?;
        crate::fields::schema().object_type(name)
    }

    /// The group that error messages name: events are those of the core group, whichever way they come.
    pub(crate) fn error_group(&self) -> &str {
        if self.kind == "Event" && self.custom().is_none() { "" } else { &self.group }
    }

    /// What reading an object back would do to it: defaults are applied again to what preparation changed.
    pub(crate) fn settle(&self, object: &mut Value) {
        if let Source::BuiltIn(id) = &self.source {
            defaults::default_object(*id, object);
            codec::through_storage(*id, object);
            let is_external = object::at(object, "spec.type").is_some_and(|ty| ty == "ExternalName");
            if is_external && self.plural == "services" && self.group.is_empty() {
                object["spec"].as_object_mut().map(|spec| spec.remove("internalTrafficPolicy"));
            }
        }
    }

    /// How objects of a built-in kind are written.
    pub(crate) fn strategy(&self) -> Option<&'static Strategy> {
        match &self.source {
            Source::BuiltIn(_) => strategy::strategy(&self.group, &self.kind),
            Source::Custom(_) => None,
        }
    }

    /// Whether PUT of a missing object creates it.
    pub(crate) fn creates_on_update(&self) -> bool {
        self.strategy().is_some_and(|strategy| strategy.create_on_update)
    }

    /// Whether PUT may leave the resourceVersion out.
    pub(crate) fn updates_unconditionally(&self) -> bool {
        self.strategy().is_some_and(|strategy| strategy.unconditional_update)
    }

    /// Whether dependents are garbage-collected.
    pub(crate) fn is_collected(&self) -> bool {
        self.strategy().is_none_or(|strategy| strategy.default_deletion != Deletion::Unsupported)
    }

    /// Whether dependents are left alone unless asked otherwise.
    pub(crate) fn orphans_by_default(&self) -> bool {
        self.strategy().is_some_and(|strategy| strategy.default_deletion == Deletion::Orphan)
    }

    /// How long an object may take to end, if it ends gracefully.
    pub(crate) fn grace_seconds(&self, object: &Value, requested: Option<i64>) -> Option<i64> {
        self.strategy().and_then(|_| strategy::grace_period(&self.group, &self.kind, object, requested))
    }

    /// For namespaces: whether content finalizers hold the object.
    pub(crate) fn namespace_deletion(&self, object: &Value) -> Option<bool> {
        (self.group.is_empty() && self.plural == "namespaces")
            .then(|| self.keeps_finalizing(object) || !object::finalizers(object).is_empty())
    }

    /// Whether finalizers outside the metadata hold an object.
    pub(crate) fn keeps_finalizing(&self, object: &Value) -> bool {
        self.group.is_empty()
            && self.plural == "namespaces"
            && object::at(object, "spec.finalizers")
                .and_then(Value::as_array)
                .is_some_and(|list| !list.is_empty())
    }

    /// Whether DELETE answers with the object rather than with a status.
    pub(crate) fn returns_deleted(&self) -> bool {
        self.strategy().is_some_and(|strategy| strategy.returns_deleted)
    }

    /// The path of an object in etcd, which shows in a few messages.
    pub(crate) fn storage_path(&self, namespace: &str, name: &str) -> String {
        let prefix = match (&self.source, self.group.as_str(), self.plural.as_str()) {
            (Source::Custom(_), group, plural) => format!("{group}/{plural}"),
            (_, "", "nodes") => "minions".to_owned(),
            (_, "", "services") => "services/specs".to_owned(),
            (_, "", "endpoints") => "services/endpoints".to_owned(),
            (_, "networking.k8s.io", "ingresses") => "ingress".to_owned(),
            (_, "apiextensions.k8s.io", plural) => format!("apiextensions.k8s.io/{plural}"),
            (_, _, plural) => plural.to_owned(),
        };
        let key = self.key(namespace, name);
        format!("/registry/{prefix}/{}", key.as_str())
    }
}
