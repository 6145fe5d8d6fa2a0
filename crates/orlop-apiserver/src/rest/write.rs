//! Writing: create and update, and the steps that every write takes on its way to the store.

use super::Call;
use super::owners::When;
use super::render::Answer;
use crate::admission::Operation;
use crate::object::{self, Stored};
use crate::options::{WriteOptions, WriteVerb};
use crate::services::{Allocation, Claim};
use crate::status::ApiError;
use orlop_kinds::strategy::Context;
use orlop_merge::managed::keep_times;
use orlop_schema::field::{FieldError, Path};
use orlop_store::{Change, Conflict, Expect};
use serde_json::{Value, json};

/// How often a generated name is tried again when it is taken.
const NAME_TRIES: usize = 8;
/// How often an update without a resourceVersion is tried again when another writer was faster.
const UPDATE_TRIES: usize = 5;
/// The longest prefix of a generated name.
const GENERATE_NAME_BYTES_MAX: usize = 58;

/// The next state of an object, and whose write it is.
pub(super) struct Next {
    pub(super) object: Value,
    pub(super) ownership: Ownership,
    /// What admission sees in place of the object.
    pub(super) shown: Option<Value>,
}

/// Whether the managed fields of an object say already whose fields are whose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    /// They follow from the write.
    Due,
    /// They have been computed: apply does it itself.
    Computed,
}

/// What an update does when there is no object yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IfAbsent {
    Refuse,
    Create,
}

impl Call {
    /// POST of an object.
    pub(super) async fn create(&mut self) -> Result<Answer, ApiError> {
        let options = WriteOptions::parse(&self.query, WriteVerb::Create)?;
        let object = self.decode_body(options.field_validation)?;
        let created = self.create_object(object, &options, Ownership::Due).await?;
        Ok(Answer::Value(201, created))
    }

    /// Creates a decoded object.
    pub(super) async fn create_object(
        &mut self,
        mut object: Value,
        options: &WriteOptions,
        ownership: Ownership,
    ) -> Result<Value, ApiError> {
        if self.kind.custom().is_some_and(crate::crd::CustomKind::is_terminating) {
            let name = object::meta_str(&object, "name");
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(&self.kind.group, &self.kind.plural, name, why));
        }
        self.check_namespace(&mut object)?;
        for field in
            ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
        {
            object::set_meta(&mut object, field, Value::Null);
        }
        let kind = self.kind.clone();
        let submitted = (kind.plural == "jobs").then(|| object.clone());
        kind.default(&mut object);
        if self.route.verb != "patch" {
            self.dedup_owners(&mut object, When::Requested);
        }
        if ownership == Ownership::Due {
            object = kind.own_converted(&self.server, None, object, &self.manager(options), "").await;
        }
        let shown = options.reviewed("CreateOptions");
        let mut attributes = self.attributes(Operation::Create, shown, options.dry_run);
        if attributes.name.is_empty() {
            object::meta_str(&object, "name").clone_into(&mut attributes.name);
            if super::is_namespaces(&kind) {
                attributes.namespace.clone_from(&attributes.name);
            }
        }
        attributes.object = object;
        self.admit(&kind, &mut attributes).await?;
        let mut object = attributes.object.take();
        self.dedup_owners(&mut object, When::Admitted);
        self.check_namespace(&mut object)?;
        let mut tries = 0;
        loop {
            let mut candidate = object.clone();
            let generated = self.name_object(&mut candidate);
            let claim;
            (candidate, claim) = self.prepare_create(candidate, submitted.as_ref(), options.dry_run)?;
            let name = object::meta_str(&candidate, "name").to_owned();
            if generated {
                attributes.name.clone_from(&name);
            }
            attributes.object = candidate;
            self.check_admitted(&kind, &mut attributes).await?;
            let mut candidate = attributes.object.take();
            if !matches!(object::meta_str(&candidate, "resourceVersion"), "" | "0") {
                let why = "resourceVersion should not be set on objects to be created";
                return Err(ApiError::internal_plain(why));
            }
            object::set_meta(&mut candidate, "resourceVersion", Value::Null);
            if attributes.rounds.patched {
                candidate = kind.tidied(candidate);
            }
            kind.settle(&mut candidate);
            if options.dry_run {
                if self.stored(&name).is_ok() {
                    return Err(ApiError::already_exists(&kind.group, &kind.plural, &name));
                }
                return self.as_stored(candidate).await;
            }
            match self.commit(Expect::Absent, candidate).await? {
                Ok(created) => {
                    if let Some(claim) = claim {
                        claim.keep();
                    }
                    self.server.committed(&kind, None, Some(&created));
                    return Ok(created);
                }
                Err(_) if generated && tries < NAME_TRIES => tries += 1,
                Err(_) if generated => {
                    let what = crate::status::qualified(&kind.plural, &kind.group);
                    let message = format!(
                        "{what} \"{name}\" already exists, the server was not able to generate a unique name for the object"
                    );
                    return Err(ApiError::new(409, "AlreadyExists", message)
                        .with_details(json!({"group": kind.group, "kind": kind.plural, "name": name})));
                }
                Err(_) => return Err(ApiError::already_exists(&kind.group, &kind.plural, &name)),
            }
        }
    }

    /// What every new object goes through before it is validated, and validation itself.
    fn prepare_create(
        &mut self,
        mut object: Value,
        submitted: Option<&Value>,
        dry_run: bool,
    ) -> Result<(Value, Option<Claim>), ApiError> {
        let kind = self.kind.clone();
        object::set_meta(&mut object, "creationTimestamp", self.server.now());
        object::set_meta(&mut object, "uid", self.server.rng.uuid());
        let user = self.user.info();
        let now = self.server.now();
        let allocation = Allocation { live: None, dry_run };
        let claim = self.server.allocate(&kind, &mut object, allocation)?;
        kind.prepare_create(&mut object, &Context { now: &now, user: Some(&user), submitted });
        let errors = kind.validate_create(&object);
        if !errors.is_empty() {
            return Err(kind.refuse(&object, &errors));
        }
        for warning in kind.warnings(&object, None) {
            self.warn(warning);
        }
        Ok((object, claim))
    }

    /// Generates a name if one is asked for.
    fn name_object(&self, object: &mut Value) -> bool {
        let prefix = object::meta_str(object, "generateName").to_owned();
        if prefix.is_empty() || !object::meta_str(object, "name").is_empty() {
            return false;
        }
        let mut end = prefix.len().min(GENERATE_NAME_BYTES_MAX);
        while !prefix.is_char_boundary(end) {
            end -= 1;
        }
        let name = format!("{}{}", &prefix[..end], self.server.rng.name_suffix(5));
        object::set_meta(object, "name", name);
        true
    }

    /// PUT of an object or of a subresource that is written as a whole object.
    pub(super) async fn update(&mut self, subresource: &str) -> Result<Answer, ApiError> {
        let options = WriteOptions::parse(&self.query, WriteVerb::Update)?;
        let mut object = self.decode_body(options.field_validation)?;
        self.check_name(&object)?;
        self.check_namespace(&mut object)?;
        let if_absent = if subresource.is_empty() && self.kind.creates_on_update() {
            IfAbsent::Create
        } else {
            IfAbsent::Refuse
        };
        self.kind.default(&mut object);
        let (object, created) = self
            .update_object(subresource, &options, if_absent, |_, _| {
                Ok(Next { object: object.clone(), ownership: Ownership::Due, shown: None })
            })
            .await?;
        Ok(Answer::Value(if created { 201 } else { 200 }, object))
    }

    /// Writes what `next` makes of the current state. `next` may be called again if another writer was faster.
    pub(super) async fn update_object(
        &mut self,
        subresource: &str,
        options: &WriteOptions,
        if_absent: IfAbsent,
        mut next: impl FnMut(&mut Self, Option<&Value>) -> Result<Next, ApiError> + Send,
    ) -> Result<(Value, bool), ApiError> {
        let name = self.route.name.clone();
        let mut tries = 0;
        loop {
            let Ok(stored) = self.stored(&name) else {
                if if_absent == IfAbsent::Refuse {
                    return Err(self.not_found(&name));
                }
                self.authorize_create(&name)?;
                let made = next(self, None)?;
                match self.create_object(made.object, options, made.ownership).await {
                    // Another writer created it first: what is there is changed instead.
                    Err(error) if error.reason() == "AlreadyExists" && tries < UPDATE_TRIES => {
                        tries += 1;
                        continue;
                    }
                    created => return Ok((created?, true)),
                }
            };
            let stored = self.kind.translate_one(&self.server, stored).await?;
            let live = self.kind.read(&stored);
            let made = loop {
                let made = next(self, Some(&live));
                let kind = self.kind.clone();
                if !self.conversions.complete(&self.server, &kind).await {
                    break made?;
                }
            };
            let unconditional = matches!(object::meta_str(&made.object, "resourceVersion"), "" | "0")
                || object::meta_str(&made.object, "resourceVersion")
                    == object::meta_str(&live, "resourceVersion")
                    && self.route.verb == "patch";
            let result = self.update_once(subresource, options, &stored, live, made).await?;
            match result {
                Some(object) => return Ok((object, false)),
                None if unconditional && tries < UPDATE_TRIES => tries += 1,
                None => return Err(ApiError::modified(&self.kind.group, &self.kind.plural, &name)),
            }
        }
    }

    /// One attempt; `None` means that the stored object changed meanwhile.
    async fn update_once(
        &mut self,
        subresource: &str,
        options: &WriteOptions,
        stored: &Stored,
        live: Value,
        made: Next,
    ) -> Result<Option<Value>, ApiError> {
        let kind = self.kind.clone();
        let mut object = made.object;
        self.check_uid(&object, &live)?;
        if self.route.verb == "update" && subresource != "scale" {
            self.dedup_owners(&mut object, When::Requested);
        }
        if made.ownership == Ownership::Due {
            let manager = self.manager(options);
            object = kind.own_converted(&self.server, Some(&live), object, &manager, subresource).await;
        }
        let shown = options.reviewed("UpdateOptions");
        let claim;
        let mut attributes = self.attributes(Operation::Update, shown, options.dry_run);
        if subresource == "scale" {
            // Admission sees scales, not what is scaled.
            attributes.object = made.shown.unwrap_or_default();
            attributes.old = self.scale_with_owners(&live)?;
            self.admit(&kind, &mut attributes).await?;
            self.set_replicas(&mut object, &attributes.object)?;
            self.check_version(&mut object, &live)?;
            (object, claim) = self.prepare_update(subresource, object, &live, options.dry_run)?;
            attributes.object = self.scale_of(&object)?;
            attributes.old = self.scale_of(&live)?;
            self.check_admitted(&kind, &mut attributes).await?;
            attributes.object = object;
            attributes.old = live;
        } else {
            attributes.object = object;
            attributes.old = live;
            self.admit(&kind, &mut attributes).await?;
            self.dedup_owners(&mut attributes.object, When::Admitted);
            self.check_version(&mut attributes.object, &attributes.old)?;
            self.check_namespace(&mut attributes.object)?;
            let admitted = attributes.object.take();
            (attributes.object, claim) =
                self.prepare_update(subresource, admitted, &attributes.old, options.dry_run)?;
            self.check_admitted(&kind, &mut attributes).await?;
        }
        let (mut object, live) = (attributes.object.take(), attributes.old.take());
        if attributes.rounds.patched {
            object = kind.tidied(object);
        }
        kind.settle(&mut object);
        object::copy_meta(&mut object, &live, "resourceVersion");
        keep_times(&live, &mut object);
        if options.dry_run {
            return Ok(Some(self.as_stored(object).await?));
        }
        if object == live {
            return Ok(Some(live));
        }
        if object::is_deleting(&live)
            && object::finalizers(&object).is_empty()
            && object::meta_i64(&live, "deletionGracePeriodSeconds").unwrap_or(0) == 0
            && !kind.keeps_finalizing(&object)
        {
            // Watchers see the state that was stored; the writer sees what it wrote.
            return Ok(self.remove(stored, live).ok().map(|_| object));
        }
        match self.commit(Expect::At(stored.revision), object).await? {
            Ok(updated) => {
                if let Some(claim) = claim {
                    claim.keep();
                }
                self.server.committed(&kind, Some(&live), Some(&updated));
                Ok(Some(updated))
            }
            Err(_) => Ok(None),
        }
    }

    /// What every changed object goes through before it is validated, and validation itself.
    fn prepare_update(
        &mut self,
        subresource: &str,
        mut object: Value,
        live: &Value,
        dry_run: bool,
    ) -> Result<(Value, Option<Claim>), ApiError> {
        let kind = self.kind.clone();
        object::copy_meta(&mut object, live, "generation");
        object::set_meta(&mut object, "selfLink", Value::Null);
        let user = self.user.info();
        let now = self.server.now();
        let context = Context { now: &now, user: Some(&user), submitted: None };
        let claim = if subresource.is_empty() {
            self.server.allocate(&kind, &mut object, Allocation { live: Some(live), dry_run })?
        } else {
            None
        };
        kind.prepare_update(subresource, &mut object, live, &context);
        if object::meta_str(&object, "uid").is_empty() {
            object::copy_meta(&mut object, live, "uid");
        }
        object::copy_meta(&mut object, live, "creationTimestamp");
        if object::is_deleting(live) {
            object::copy_meta(&mut object, live, "deletionTimestamp");
        }
        if object::meta_i64(&object, "deletionGracePeriodSeconds").is_none() {
            object::copy_meta(&mut object, live, "deletionGracePeriodSeconds");
        }
        let errors = kind.validate_update(subresource, &object, live);
        if !errors.is_empty() {
            return Err(kind.refuse(&object, &errors));
        }
        for warning in kind.warnings(&object, Some(live)) {
            self.warn(warning);
        }
        Ok((object, claim))
    }

    /// Optimistic locking: the object must name the version it changes, or be of a kind that needs not.
    fn check_version(&self, object: &mut Value, live: &Value) -> Result<(), ApiError> {
        let kind = &self.kind;
        let name = &self.route.name;
        let (given, current) =
            (object::meta_str(object, "resourceVersion"), object::meta_str(live, "resourceVersion"));
        if matches!(given, "" | "0") {
            if !kind.updates_unconditionally() {
                let path = Path::new("metadata").child("resourceVersion");
                let value = if given.is_empty() { json!(0) } else { json!(given) };
                let error = FieldError::invalid(&path, &value, "must be specified for an update");
                return Err(ApiError::invalid(&kind.group, &kind.plural, name, &[error]));
            }
            object::copy_meta(object, live, "resourceVersion");
        } else if given != current {
            super::read::parse_version(given).map_err(ApiError::internal_plain)?;
            return Err(ApiError::modified(&kind.group, &kind.plural, name));
        }
        Ok(())
    }

    /// An object that names its uid means that one and no later one of the same name.
    fn check_uid(&self, object: &Value, live: &Value) -> Result<(), ApiError> {
        let (kind, name) = (&self.kind, &self.route.name);
        let (given, current) = (object::meta_str(object, "uid"), object::meta_str(live, "uid"));
        if self.route.verb == "update" && !given.is_empty() && given != current {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
                 failed: UID in precondition: {given}, UID in object meta: {current}",
                kind.storage_path(self.namespace(), name)
            );
            return Err(ApiError::conflict(&kind.group, &kind.plural, name, &why));
        }
        Ok(())
    }

    /// The name in the body must be the name in the path.
    pub(super) fn check_name(&self, object: &Value) -> Result<(), ApiError> {
        let (given, wanted) = (object::meta_str(object, "name"), self.route.name.as_str());
        if given.is_empty() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
            )));
        }
        if given != wanted {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({wanted})"
            )));
        }
        Ok(())
    }

    /// The namespace in the body must be the namespace in the path, or absent.
    pub(super) fn check_namespace(&self, object: &mut Value) -> Result<(), ApiError> {
        let (given, wanted) = (object::meta_str(object, "namespace"), self.namespace());
        if given == wanted {
            return Ok(());
        }
        if given.is_empty() || wanted.is_empty() {
            // Objects outside namespaces lose theirs, others get that of the request.
            object::set_meta(
                object,
                "namespace",
                if wanted.is_empty() { Value::Null } else { wanted.into() },
            );
            return Ok(());
        }
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        Err(ApiError::bad_request(why))
    }

    /// Whose fields a write sets: the field manager, or the user agent up to its slash.
    pub(super) fn manager(&self, options: &WriteOptions) -> String {
        if !options.field_manager.is_empty() {
            return options.field_manager.clone();
        }
        let agent = self.user_agent.split('/').next().unwrap_or_default();
        let printable: String = agent.chars().filter(|c| !c.is_control()).collect();
        let mut end = printable.len().min(128);
        while !printable.is_char_boundary(end) {
            end -= 1;
        }
        printable[..end].to_owned()
    }

    /// An update that creates needs the right to create too.
    fn authorize_create(&self, name: &str) -> Result<(), ApiError> {
        let mut route = self.route.clone();
        route.verb = "create";
        name.clone_into(&mut route.name);
        self.server.authorize(&self.user, &route)
    }

    /// Stores an object; it comes back with its revision. The inner error says that the object is not what was expected.
    pub(super) async fn commit(
        &self,
        expect: Expect,
        object: Value,
    ) -> Result<Result<Value, Conflict<crate::object::Header>>, ApiError> {
        let (server, kind) = (&self.server, &self.kind);
        if !kind.is_stored_by_webhook() {
            return Ok(server.commit(kind, expect, object));
        }
        let mut stored = kind.storage_form(server, object).await?;
        let key = kind.key(object::meta_str(&stored, "namespace"), object::meta_str(&stored, "name"));
        let committed = server.store.commit(&kind.table, &key, expect, server.now_ms(), |revision| {
            object::set_revision(&mut stored, revision);
            let (body, header) = object::encode(&stored, kind.schema_state());
            Change::Put { body, header }
        });
        match committed {
            Ok(entry) => {
                // Whatever becomes of the answer: it is stored now.
                server.committed(kind, None, Some(&stored));
                Ok(Ok(kind.read(&kind.translate_one(server, entry).await?)))
            }
            Err(conflict) => Ok(Err(conflict)),
        }
    }

    /// An object that is not stored, as it would come back if it were.
    async fn as_stored(&self, object: Value) -> Result<Value, ApiError> {
        if !self.kind.is_stored_by_webhook() {
            return Ok(object);
        }
        let version = object::meta_str(&object, "resourceVersion").to_owned();
        let stored = self.kind.storage_form(&self.server, object).await?;
        let mut object = self.kind.convert_for(&self.server, stored, &self.kind.api_version()).await?;
        object::set_meta(&mut object, "resourceVersion", Some(version).filter(|text| !text.is_empty()));
        Ok(object)
    }

    /// Removes an object; the last state goes to the watchers.
    pub(super) fn remove(
        &self,
        stored: &Stored,
        last: Value,
    ) -> Result<Stored, Conflict<crate::object::Header>> {
        self.server.remove(&self.kind, stored, last)
    }
}

impl crate::kind::Kind {
    /// 422 for an object; the kind is the one that the object gives itself.
    pub(crate) fn refuse(&self, object: &Value, errors: &[FieldError]) -> ApiError {
        ApiError::invalid(
            self.error_group(),
            object::text(object, "kind"),
            object::meta_str(object, "name"),
            errors,
        )
    }
}

impl crate::server::Inner {
    /// Stores an object in its storage version; it comes back in the request's version with its revision.
    pub(crate) fn commit(
        &self,
        kind: &crate::kind::Kind,
        expect: Expect,
        mut object: Value,
    ) -> Result<Value, Conflict<crate::object::Header>> {
        let key = kind.key(object::meta_str(&object, "namespace"), object::meta_str(&object, "name"));
        self.store.commit(&kind.table, &key, expect, self.now_ms(), |revision| {
            object::set_revision(&mut object, revision);
            let (body, header) = object::encode(&kind.to_storage(&object), kind.schema_state());
            Change::Put { body, header }
        })?;
        Ok(kind.after_storage(object))
    }

    /// Removes an object whose last state is `last`, with all that follows from it.
    pub(crate) fn remove(
        &self,
        kind: &crate::kind::Kind,
        stored: &Stored,
        last: Value,
    ) -> Result<Stored, Conflict<crate::object::Header>> {
        let entry = self.erase(kind, stored, last.clone())?;
        self.committed(kind, Some(&last), None);
        Ok(entry)
    }

    /// Removes an object and nothing else.
    pub(crate) fn erase(
        &self,
        kind: &crate::kind::Kind,
        stored: &Stored,
        mut last: Value,
    ) -> Result<Stored, Conflict<crate::object::Header>> {
        // What a webhook would have to make is there already.
        let as_it_was =
            kind.is_stored_by_webhook().then(|| self.store.get(&kind.table, &stored.key)).flatten();
        let expect = Expect::At(stored.revision);
        self.store.commit(&kind.table, &stored.key, expect, self.now_ms(), |revision| {
            let (body, header) = match &as_it_was {
                Some(entry) => {
                    let mut object = object::decode(&entry.body);
                    object::set_revision(&mut object, revision);
                    object::encode(&object, entry.header.schema)
                }
                None => {
                    object::set_revision(&mut last, revision);
                    object::encode(&kind.to_storage(&last), kind.schema_state())
                }
            };
            Change::Delete { body, header }
        })
    }
}
