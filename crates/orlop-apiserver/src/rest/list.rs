//! Listing: a consistent state, selected, in chunks, copied rather than encoded.

use super::Call;
use super::read::parse_version;
use super::render::{self, Answer};
use super::shape::{Subject, Viewer};
use crate::negotiate::{Format, Shape};
use crate::object::{Header, Stored};
use crate::options::{ListOptions, ListVerb};
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::ApiError;
use crate::turns::Turn;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use orlop_store::{Key, ReadAtError, Revision, Snapshot};
use serde_json::{Value, json};

/// The place where a list goes on.
struct Continue {
    /// The revision of the list; `None` goes on with the newest state.
    revision: Option<Revision>,
    start: Key,
    /// The start as the token says it: without the namespace, which the path says.
    token_start: String,
}

/// Which objects a request is about.
pub(crate) struct Selection {
    prefix: String,
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Selection {
    pub(super) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }
}

impl Call {
    /// Reads the selectors of a list, a watch or a collection's deletion.
    pub(super) fn selection(&self, options: &ListOptions) -> Result<Selection, ApiError> {
        let labels = LabelSelector::parse(&options.label_selector).map_err(ApiError::bad_request)?;
        let mut fields = FieldSelector::parse(&options.field_selector, &self.kind.selectable)
            .map_err(ApiError::bad_request)?;
        if !self.route.name.is_empty() {
            let named = format!("metadata.name={}", self.route.name);
            fields = FieldSelector::parse(&named, &self.kind.selectable).map_err(ApiError::bad_request)?;
        }
        let namespace = self.namespace();
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        Ok(Selection { prefix, labels, fields })
    }

    /// Whether a stored object is selected.
    pub(super) fn selects(&self, selection: &Selection, stored: &Stored) -> bool {
        self.kind.selects(selection, stored)
    }

    /// GET of a collection.
    pub(super) async fn list(&mut self) -> Result<Answer, ApiError> {
        let options = ListOptions::parse(&self.query, ListVerb::List)?;
        let selection = self.selection(&options)?;
        let chunk = self.chunk(&options, &selection).await?;
        self.list_answer(&chunk).await
    }

    /// The objects of one answer.
    pub(super) async fn chunk(
        &self,
        options: &ListOptions,
        selection: &Selection,
    ) -> Result<Chunk, ApiError> {
        let place = parse_continue(&options.continue_token, &selection.prefix)?;
        let (snapshot, limited) = self.snapshot(options, place.as_ref())?;
        let limit = if limited && options.limit > 0 { options.limit } else { usize::MAX };
        let start = place.map_or_else(|| Key::from_text(&selection.prefix), |place| place.start);
        if !self.kind.is_converted_by_webhook() {
            return Ok(self.selected(
                selection,
                snapshot.revision,
                limit,
                snapshot.within(&selection.prefix, &start),
            ));
        }
        let all = || snapshot.within(&selection.prefix, &start);
        let chunk = if selection.is_everything() {
            self.selected(selection, snapshot.revision, limit, all())
        } else {
            // Selectors look at what the client sees.
            let all = self.kind.translate(&self.server, all().cloned().collect()).await?;
            self.selected(selection, snapshot.revision, limit, all.iter())
        };
        Ok(Chunk { items: self.kind.translate(&self.server, chunk.items).await?, ..chunk })
    }

    fn selected<'a>(
        &self,
        selection: &Selection,
        revision: Revision,
        limit: usize,
        mut rest: impl Iterator<Item = &'a Stored>,
    ) -> Chunk {
        let mut items = Vec::new();
        let mut next = None;
        for stored in rest.by_ref() {
            if items.len() == limit {
                next = Some(stored.key.clone());
                break;
            }
            if self.selects(selection, stored) {
                items.push(stored.clone());
            }
        }
        let remaining = (next.is_some() && selection.is_everything()).then(|| rest.count() + 1);
        let token = next.and_then(|_| items.last()).map(|last| {
            let start =
                format!("{}\u{0}", last.key.as_str().strip_prefix(&selection.prefix).unwrap_or_default());
            encode_continue(revision, &start)
        });
        Chunk { items, revision, token, remaining }
    }

    fn snapshot(
        &self,
        options: &ListOptions,
        place: Option<&Continue>,
    ) -> Result<(Snapshot<Header>, bool), ApiError> {
        let store = &self.server.store;
        let asked = options.resource_version.as_str();
        if let Some(place) = place {
            if !matches!(asked, "" | "0") {
                let why = "specifying resource version is not allowed when using continue";
                return Err(ApiError::bad_request(why));
            }
            let Some(revision) = place.revision else {
                return Ok((store.snapshot(&self.kind.table), asked != "0"));
            };
            return match store.snapshot_at(&self.kind.table, revision) {
                Ok(snapshot) => Ok((snapshot, asked != "0")),
                Err(ReadAtError::Future { current }) => {
                    Err(ApiError::too_large_resource_version(revision.0, current.0))
                }
                Err(ReadAtError::Compacted(_)) => {
                    let start = format!("{}\u{0}", place.token_start.trim_end_matches('\u{0}'));
                    Err(ApiError::expired(CONTINUE_EXPIRED).with_continue(encode_token(-1, &start)))
                }
            };
        }
        if asked.is_empty() || asked == "0" {
            return Ok((store.snapshot(&self.kind.table), asked.is_empty()));
        }
        let revision = parse_version(asked)
            .map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?;
        let exact = options.resource_version_match == "Exact"
            || (options.limit > 0 && options.resource_version_match.is_empty());
        let current = store.revision();
        if revision > current.0 {
            return Err(ApiError::too_large_resource_version(revision, current.0));
        }
        if !exact {
            return Ok((store.snapshot(&self.kind.table), true));
        }
        store.snapshot_at(&self.kind.table, Revision(revision)).map(|s| (s, true)).map_err(
            |error| match error {
                ReadAtError::Future { current } => ApiError::too_large_resource_version(revision, current.0),
                ReadAtError::Compacted(_) => {
                    ApiError::expired("The resourceVersion for the provided list is too old.")
                }
            },
        )
    }

    /// A list in the shape and the format that the client asked for.
    pub(super) async fn list_answer(&self, chunk: &Chunk) -> Result<Answer, ApiError> {
        self.check_list_shape()?;
        let viewer = self.viewer()?;
        let mut turn = self.server.turns.take(chunk.bytes()).await;
        let metadata = self.list_metadata(chunk);
        if self.accepted.shape == Shape::Table {
            let mut out = Vec::new();
            viewer.table_of_list(&mut out, &metadata, &chunk.items, &mut turn).await;
            out.push(b'\n');
            return Ok(Answer::Bytes(200, out.into()));
        }
        let (kind, api_version) = if self.accepted.shape == Shape::Whole {
            (self.kind.list_kind.as_str(), self.kind.api_version())
        } else {
            ("PartialObjectMetadataList", self.accepted.meta_version.to_owned())
        };
        if self.accepted.format == Format::Protobuf
            && let Some(list) = viewer.protobuf_list(kind, &api_version, &metadata, chunk, &mut turn).await
        {
            return Ok(Answer::Encoded(render::PROTOBUF, list.into()));
        }
        let list = viewer.json_list(kind, &api_version, &metadata, chunk, &mut turn).await;
        Ok(Answer::Bytes(200, list.into()))
    }

    fn list_metadata(&self, chunk: &Chunk) -> Value {
        let mut metadata = json!({"resourceVersion": chunk.revision.to_string()});
        if let Some(token) = &chunk.token {
            metadata["continue"] = token.as_str().into();
        } else if self.kind.custom().is_some() && self.accepted.shape == Shape::Whole {
            // Lists of custom objects always have the field.
            metadata["continue"] = "".into();
        }
        if let Some(remaining) = chunk.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        metadata
    }
}

impl Viewer {
    /// Writes a list as JSON, copying what is stored.
    async fn json_list(
        &self,
        kind: &str,
        api_version: &str,
        metadata: &Value,
        chunk: &Chunk,
        turn: &mut Turn<'_>,
    ) -> Vec<u8> {
        let metadata_only = self.accepted.shape != Shape::Whole;
        let mut out = Vec::with_capacity(chunk.bytes() + 256);
        out.extend_from_slice(crate::object::head(kind, api_version).as_bytes());
        out.extend_from_slice(format!("\"metadata\":{metadata},\"items\":[").as_bytes());
        if metadata_only && chunk.items.is_empty() {
            // The real server has no list here, rather than an empty one.
            out.truncate(out.len() - 1);
            out.extend_from_slice(b"null}\n");
            return out;
        }
        for (n, stored) in chunk.items.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            if metadata_only {
                self.partial_bytes(&mut out, Subject::Stored(stored));
            } else {
                render::item_bytes(&mut out, &self.kind, stored);
            }
            turn.did(stored.body.len()).await;
        }
        out.extend_from_slice(b"]}\n");
        out
    }
}

impl Chunk {
    /// How much is stored of what is listed, with a byte between two objects.
    fn bytes(&self) -> usize {
        self.items.iter().map(|stored| stored.body.len() + 1).sum()
    }
}

/// One answer's worth of a list.
pub(super) struct Chunk {
    pub(super) items: Vec<Stored>,
    pub(super) revision: Revision,
    pub(super) token: Option<String>,
    pub(super) remaining: Option<usize>,
}

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. \
You can start a new list without the continue parameter, or use the continue token in this response to retrieve \
the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that \
were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

fn encode_continue(revision: Revision, start: &str) -> String {
    encode_token(revision.0 as i64, start)
}

fn encode_token(revision: i64, start: &str) -> String {
    let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start});
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn parse_continue(token: &str, prefix: &str) -> Result<Option<Continue>, ApiError> {
    if token.is_empty() {
        return Ok(None);
    }
    let invalid = |why: &str| ApiError::bad_request(format!("continue key is not valid: {why}"));
    let bytes = URL_SAFE_NO_PAD
        .decode(token.trim_end_matches('='))
        .map_err(|error| invalid(&base64_complaint(token, &error)))?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| invalid("invalid character in token"))?;
    if value["v"] != "meta.k8s.io/v1" {
        return Err(invalid(&format!("server does not recognize this encoded version {}", value["v"])));
    }
    let revision = value["rv"].as_i64().unwrap_or(0);
    if revision == 0 {
        return Err(invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
    }
    let start = value["start"].as_str().unwrap_or_default();
    if start.is_empty() {
        return Err(invalid("encoded start key empty (version meta.k8s.io/v1)"));
    }
    if start.split('/').any(|part| matches!(part.trim_end_matches('\u{0}'), "." | "..")) {
        return Err(invalid(&format!("invalid start key: {start}")));
    }
    let revision = u64::try_from(revision).ok().map(Revision);
    let place = Key::from_text(&format!("{prefix}{start}"));
    Ok(Some(Continue { revision, start: place, token_start: start.to_owned() }))
}

/// Go's words for base64 that is none.
fn base64_complaint(token: &str, _error: &base64::DecodeError) -> String {
    let at = token
        .bytes()
        .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')))
        .unwrap_or(token.len() / 4 * 4);
    format!("illegal base64 data at input byte {at}")
}
