//! Objects as a client wants to see them: whole, their metadata, or rows of a Table.

use super::Call;
use super::list::Chunk;
use super::render::{self, Answer};
use crate::kind::Kind;
use crate::negotiate::{Accepted, Shape};
use crate::object::{self, Stored};
use crate::server::Inner;
use crate::status::ApiError;
use crate::turns::Turn;
use orlop_kinds::protobuf;
use orlop_kinds::table::Printer;
use orlop_schema::field::go_quote;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// What a row of a Table brings of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Include {
    Metadata,
    Object,
    None,
}

/// Shows objects of a kind as one request wants to see them.
pub(super) struct Viewer {
    pub(super) kind: Arc<Kind>,
    pub(super) accepted: Accepted,
    server: Arc<Inner>,
    include: Include,
}

/// An object to be shown.
#[derive(Clone, Copy)]
pub(super) enum Subject<'a> {
    /// As it is stored.
    Stored(&'a Stored),
    /// In the version of the request.
    Value(&'a Value),
}

impl Call {
    /// The viewer of this request; the query may ask for what a Table cannot show.
    pub(super) fn viewer(&self) -> Result<Viewer, ApiError> {
        let include = match self.query.get("includeObject").unwrap_or_default() {
            _ if self.accepted.shape != Shape::Table => Include::Metadata,
            "" | "Metadata" => Include::Metadata,
            "Object" => Include::Object,
            "None" => Include::None,
            other => {
                return Err(ApiError::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', \
                     'Object', 'None', or empty",
                    go_quote(other)
                )));
            }
        };
        Ok(Viewer { kind: self.kind.clone(), accepted: self.accepted, server: self.server.clone(), include })
    }

    /// An answer in the shape that the client asked for. Reports of success or failure have one shape only.
    pub(super) fn shaped(&self, answer: Answer) -> Result<Answer, ApiError> {
        let Answer::Value(status, value) = answer else { return Ok(answer) };
        let is_status = value["kind"] == "Status" && value["apiVersion"] == "v1";
        if is_status || self.accepted.shape == Shape::Whole {
            return Ok(Answer::Value(status, value));
        }
        let viewer = self.viewer()?;
        match self.accepted.shape {
            Shape::Whole => Ok(Answer::Value(status, value)),
            Shape::Metadata => Ok(Answer::Value(status, viewer.partial(&value))),
            Shape::MetadataList => Err(self.not_a_list()),
            Shape::Table => {
                let printer = self.printer(&value);
                let mut out = Vec::new();
                viewer.table_of_one(
                    &mut out,
                    &printer,
                    true,
                    &table_metadata(&value),
                    Subject::Value(&value),
                );
                out.push(b'\n');
                Ok(Answer::Bytes(status, out.into()))
            }
        }
    }

    /// Whether a list can be shown in the shape that the client asked for.
    pub(super) fn check_list_shape(&self) -> Result<(), ApiError> {
        match self.accepted.shape {
            Shape::Metadata => {
                let ty = go_type(&self.kind, "List");
                let why =
                    format!("you requested PartialObjectMetadata, but the requested object is a list ({ty})");
                Err(ApiError::new(406, "NotAcceptable", why))
            }
            _ => Ok(()),
        }
    }

    /// 406 for an object that was asked for as a list.
    pub(super) fn not_a_list(&self) -> ApiError {
        let ty = go_type(&self.kind, "");
        let why =
            format!("you requested PartialObjectMetadataList, but the requested object is not a list ({ty})");
        ApiError::new(406, "NotAcceptable", why)
    }

    /// The printer of an answer: that of the request's kind, or of a subresource with a kind of its own.
    fn printer(&self, value: &Value) -> Cow<'_, Printer> {
        match (object::text(value, "kind"), self.kind.custom()) {
            ("Scale", Some(custom)) if self.route.subresource == "scale" => {
                let scale = custom.scale();
                let has = |path: &str| !object::text(&scale, path).is_empty();
                Cow::Owned(Printer::custom_scale(has("specReplicasPath"), has("statusReplicasPath")))
            }
            (_, Some(custom)) => Cow::Borrowed(custom.printer()),
            (kind, None) => Cow::Borrowed(Printer::built_in(kind)),
        }
    }
}

impl Viewer {
    /// The server whose objects are shown.
    pub(super) fn server(&self) -> &Inner {
        &self.server
    }

    /// The printer of the kind.
    pub(super) fn printer(&self) -> &Printer {
        self.kind.custom().map_or_else(|| Printer::built_in(&self.kind.kind), |custom| custom.printer())
    }

    /// The object in the version of the request.
    pub(super) fn whole<'a>(&self, subject: Subject<'a>) -> Cow<'a, Value> {
        match subject {
            Subject::Stored(stored) => Cow::Owned(self.kind.read(stored)),
            Subject::Value(value) => Cow::Borrowed(value),
        }
    }

    /// `PartialObjectMetadata` of an object.
    pub(super) fn partial(&self, object: &Value) -> Value {
        json!({"kind": "PartialObjectMetadata", "apiVersion": self.accepted.meta_version,
            "metadata": object["metadata"]})
    }

    /// Writes `PartialObjectMetadata` of an object.
    pub(super) fn partial_bytes(&self, out: &mut Vec<u8>, subject: Subject<'_>) {
        match subject {
            Subject::Stored(stored) => render::partial_bytes(out, self.accepted.meta_version, stored),
            Subject::Value(value) => object::write_json(out, &self.partial(value)),
        }
    }

    /// Writes an object as JSON in the shape that the client asked for; only the first of a stream says which
    /// columns there are.
    pub(super) fn json(&self, out: &mut Vec<u8>, subject: Subject<'_>, is_first: bool) {
        match (self.accepted.shape, subject) {
            (Shape::Whole, Subject::Stored(stored)) => render::object_bytes(out, &self.kind, stored),
            (Shape::Whole, Subject::Value(value)) => object::write_json(out, value),
            (Shape::Metadata | Shape::MetadataList, subject) => self.partial_bytes(out, subject),
            (Shape::Table, subject) => {
                let printer = self.printer();
                let metadata = match subject {
                    Subject::Stored(stored) => json!({"resourceVersion": stored.revision.to_string()}),
                    Subject::Value(value) => table_metadata(value),
                };
                let with_columns = is_first || printer.repeats_columns();
                self.table_of_one(out, printer, with_columns, &metadata, subject);
            }
        }
    }

    /// An object as protobuf in the shape that the client asked for.
    pub(super) fn protobuf(&self, subject: Subject<'_>) -> Vec<u8> {
        let whole = self.whole(subject);
        match self.accepted.shape {
            Shape::Whole => render::protobuf(&whole),
            _ => render::protobuf(&self.partial(&whole)),
        }
        .unwrap_or_default()
    }

    /// Writes a list as protobuf, item by item.
    pub(super) async fn protobuf_list(
        &self,
        kind: &str,
        api_version: &str,
        metadata: &Value,
        chunk: &Chunk,
        turn: &mut Turn<'_>,
    ) -> Option<Vec<u8>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let metadata_only = self.accepted.shape != Shape::Whole;
        let version = if metadata_only { "v1" } else { version };
        let item = kind.strip_suffix("List")?;
        let mut list = protobuf::ListWriter::new(render::type_of(group, version, item)?, metadata);
        for stored in &chunk.items {
            let whole = self.kind.read(stored);
            if metadata_only {
                list.push(&self.partial(&whole))
            } else {
                list.push(&whole)
            }
            turn.did(stored.body.len()).await;
        }
        Some(list.finish(api_version, kind))
    }

    /// Writes a Table of a list.
    pub(super) async fn table_of_list(
        &self,
        out: &mut Vec<u8>,
        metadata: &Value,
        items: &[Stored],
        turn: &mut Turn<'_>,
    ) {
        let printer = self.printer();
        let mut subjects: Vec<Subject<'_>> = items.iter().map(Subject::Stored).collect();
        if printer.place(&Value::Null).is_some() {
            subjects.sort_by_cached_key(|subject| printer.place(&self.whole(*subject)));
        }
        if !self.table_head(out, printer, true, metadata, subjects.is_empty()) {
            return;
        }
        for (n, subject) in subjects.iter().enumerate() {
            out.push(if n == 0 { b'[' } else { b',' });
            self.row(out, printer, *subject);
            if let Subject::Stored(stored) = subject {
                turn.did(stored.body.len()).await;
            }
        }
        out.extend_from_slice(if subjects.is_empty() { b"[]}" } else { b"]}" });
    }

    fn table_of_one(
        &self,
        out: &mut Vec<u8>,
        printer: &Printer,
        with_columns: bool,
        metadata: &Value,
        subject: Subject<'_>,
    ) {
        self.table_head(out, printer, with_columns, metadata, false);
        out.push(b'[');
        self.row(out, printer, subject);
        out.extend_from_slice(b"]}");
    }

    /// Writes a Table up to its rows, and whether there are rows to write.
    fn table_head(
        &self,
        out: &mut Vec<u8>,
        printer: &Printer,
        with_columns: bool,
        metadata: &Value,
        is_empty: bool,
    ) -> bool {
        out.extend_from_slice(object::head("Table", self.accepted.meta_version).as_bytes());
        out.extend_from_slice(format!("\"metadata\":{metadata},\"columnDefinitions\":").as_bytes());
        object::write_json(out, if with_columns { printer.columns() } else { &Value::Null });
        out.extend_from_slice(b",\"rows\":");
        let is_null = is_empty && printer.has_null_rows();
        if is_null {
            out.extend_from_slice(b"null}");
        }
        !is_null
    }

    fn row(&self, out: &mut Vec<u8>, printer: &Printer, subject: Subject<'_>) {
        let whole = self.whole(subject);
        // Built-in objects are printed in one version, whatever was asked for.
        let is_own = object::text(&whole, "kind") == self.kind.kind;
        let printed =
            if is_own && self.kind.custom().is_none() && self.kind.storage != self.kind.api_version() {
                Cow::Owned(self.kind.convert(&whole, &self.kind.storage))
            } else {
                Cow::Borrowed(&*whole)
            };
        let row = printer.row(&printed, self.server.clock.now().as_nanosecond());
        out.extend_from_slice(b"{\"cells\":");
        object::write_json(out, &Value::Array(row.cells));
        if let Some(conditions) = &row.conditions {
            out.extend_from_slice(b",\"conditions\":");
            object::write_json(out, conditions);
        }
        out.extend_from_slice(b",\"object\":");
        let ends_initial = whole["metadata"]["annotations"].get("k8s.io/initial-events-end").is_some();
        match self.include {
            Include::Object => object::write_json(out, &whole),
            Include::None if !ends_initial => out.extend_from_slice(b"null"),
            Include::Metadata | Include::None => object::write_json(out, &self.partial(&whole)),
        }
        out.push(b'}');
    }
}

/// The metadata of a Table of one object.
fn table_metadata(object: &Value) -> Value {
    match object::meta_str(object, "resourceVersion") {
        "" => json!({}),
        version => json!({"resourceVersion": version}),
    }
}

/// The name of a kind's Go type in the original.
fn go_type(kind: &Kind, suffix: &str) -> String {
    let package = match kind.group.as_str() {
        _ if kind.custom().is_some() => return format!("*unstructured.Unstructured{suffix}"),
        "" | "events.k8s.io" => "core",
        group => group.split('.').next().unwrap_or(group),
    };
    format!("*{package}.{}{suffix}", kind.kind)
}
