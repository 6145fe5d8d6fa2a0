//! Watching: what exists, if asked for, then what happens, in order, as long as the client reads.

use super::Call;
use super::list::Selection;
use super::read::parse_version;
use super::render::{self, Answer};
use super::shape::{Subject, Viewer};
use crate::body::{Body, Step};
use crate::negotiate::{Format, Shape};
use crate::object::{self, Header, Stored};
use crate::options::{ListOptions, ListVerb};
use crate::status::ApiError;
use bytes::Bytes;
use orlop_kinds::protobuf;
use orlop_store::{Event, EventKind, Revision, Watch};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often a watcher that wants bookmarks gets one.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// A watch without a timeout of its own ends after one to two times this.
const TIMEOUT_MIN: Duration = Duration::from_mins(30);
/// No watch is kept longer than this, whatever it asks for.
const TIMEOUT_MAX: Duration = Duration::from_hours(24 * 365);
/// Events are sent together up to this size.
const CHUNK_BYTES_MAX: usize = 64 * 1024;

struct State {
    viewer: Viewer,
    selection: Selection,
    /// Whether an object was sent already; a Table says its columns once.
    has_begun: bool,
    watch: Watch<Header>,
    /// What exists already, to be sent first.
    initial: VecDeque<Stored>,
    /// The bookmark that ends the initial events.
    initial_end: Option<Revision>,
    bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
    ended: bool,
}

impl Call {
    /// GET of a collection with `watch`.
    pub(super) async fn watch(&mut self) -> Result<Answer, ApiError> {
        let options = ListOptions::parse(&self.query, ListVerb::Watch)?;
        if !self.kind.allows("watch") {
            let plural = &self.kind.plural;
            let message = format!("watch is not supported on resources of kind \"{plural}\"");
            return Err(ApiError::new(405, "MethodNotAllowed", message).with_details(json!({"kind": plural})));
        }
        let selection = self.selection(&options)?;
        let viewer = self.viewer()?;
        let format = self.accepted.format;
        let store = &self.server.store;
        let asked = options.resource_version.as_str();
        let version =
            if asked.is_empty() { 0 } else { parse_version(asked).map_err(ApiError::internal_plain)? };
        let wants_initial = options.send_initial_events.unwrap_or(version == 0);
        let snapshot = store.snapshot(&self.kind.table);
        if options.send_initial_events == Some(true) && version > snapshot.revision.0 {
            let error = ApiError::too_large_resource_version(version, snapshot.revision.0);
            return Ok(Answer::Stream(Body::whole(error_event(format, &error))));
        }
        let from = if wants_initial || version == 0 { snapshot.revision } else { Revision(version) };
        let initial = if wants_initial {
            let start = orlop_store::Key::from_text(selection.prefix());
            if self.kind.is_converted_by_webhook() {
                // Selectors look at what the client sees.
                let all = snapshot.within(selection.prefix(), &start).cloned().collect();
                let mut all = self.kind.translate(&self.server, all).await?;
                all.retain(|stored| self.selects(&selection, stored));
                all.into()
            } else {
                snapshot
                    .within(selection.prefix(), &start)
                    .filter(|stored| self.selects(&selection, stored))
                    .cloned()
                    .collect()
            }
        } else {
            VecDeque::new()
        };
        let watch = match store.watch(&self.kind.table, from) {
            Ok(watch) => watch,
            Err(compacted) => {
                return Ok(Answer::Stream(Body::whole(too_old(format, from, compacted.oldest))));
            }
        };
        let timeout = options.timeout_seconds.map_or_else(
            || TIMEOUT_MIN + Duration::from_millis(self.server.rng.below(TIMEOUT_MIN.as_millis() as u64)),
            |seconds| Duration::from_secs(seconds).min(TIMEOUT_MAX),
        );
        let now = Instant::now();
        let ends_initial = options.send_initial_events == Some(true) && options.bookmarks;
        let state = State {
            viewer,
            selection,
            has_begun: false,
            watch,
            initial,
            initial_end: ends_initial.then_some(snapshot.revision),
            bookmarks: options.bookmarks,
            next_bookmark: now + BOOKMARK_EVERY,
            deadline: now + timeout,
            ended: false,
        };
        Ok(Answer::Stream(Body::unfold(state, step)))
    }
}

fn step(mut state: State) -> Step<State> {
    Box::pin(async move {
        let chunk = state.next_chunk().await?;
        Some((chunk, state))
    })
}

impl State {
    /// The next bytes to send, as soon as there are any; nothing when the watch is over.
    async fn next_chunk(&mut self) -> Option<Bytes> {
        if self.ended || Instant::now() >= self.deadline {
            return None;
        }
        let mut out = Vec::new();
        while let Some(stored) = self.initial.pop_front() {
            self.write_event(&mut out, "ADDED", Subject::Stored(&stored));
            if out.len() >= CHUNK_BYTES_MAX {
                return Some(out.into());
            }
        }
        if let Some(revision) = self.initial_end.take() {
            let annotations = json!({"k8s.io/initial-events-end": "true"});
            self.write_bookmark(&mut out, revision, Some(annotations));
        }
        loop {
            let mut single = None;
            while out.len() < CHUNK_BYTES_MAX && !self.ended {
                match self.watch.try_next() {
                    Ok(Some(event)) => {
                        if let Some(frame) = self.translated_frame(&event).await {
                            if out.is_empty() && single.is_none() {
                                single = Some(frame);
                            } else {
                                out.extend(single.take().unwrap_or_default());
                                out.extend_from_slice(&frame);
                            }
                        }
                    }
                    Ok(None) => break,
                    Err(compacted) => {
                        // Too slow for the log: the client is told and starts again.
                        self.ended = true;
                        out.extend(single.take().unwrap_or_default());
                        out.extend(too_old(self.format(), self.watch.seen(), compacted.oldest));
                        break;
                    }
                }
            }
            let sends = !self.ended && (single.is_some() || !out.is_empty());
            if sends && self.bookmarks && Instant::now() >= self.next_bookmark {
                // A watch that is never idle gets its bookmarks too.
                out.extend(single.take().unwrap_or_default());
                self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
                self.write_bookmark(&mut out, self.watch.seen(), None);
            }
            if let Some(frame) = single {
                return Some(frame);
            }
            if !out.is_empty() {
                return Some(out.into());
            }
            let wake = if self.bookmarks { self.next_bookmark.min(self.deadline) } else { self.deadline };
            tokio::select! {
                biased;
                event = self.watch.next() => match event {
                    Ok(event) => {
                        if let Some(frame) = self.translated_frame(&event).await {
                            out.extend_from_slice(&frame);
                        }
                    }
                    Err(compacted) => {
                        self.ended = true;
                        return Some(too_old(self.format(), self.watch.seen(), compacted.oldest));
                    }
                },
                () = tokio::time::sleep_until(wake) => {
                    let over = Instant::now() >= self.deadline;
                    self.ended = over;
                    self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
                    if self.bookmarks && let Ok(Some(revision)) = self.watch.bookmark() {
                        self.write_bookmark(&mut out, revision, None);
                        return Some(out.into());
                    }
                    if over {
                        return None;
                    }
                }
            }
        }
    }

    /// An event as this watcher sees it, after a webhook has converted what it must; one that cannot be converted ends
    /// the watch.
    async fn translated_frame(&mut self, event: &Arc<Event<Header>>) -> Option<Bytes> {
        let kind = self.viewer.kind.clone();
        if !kind.is_converted_by_webhook() {
            return self.frame(event);
        }
        if !event.entry.key.as_str().starts_with(self.selection.prefix()) {
            return None;
        }
        let states = std::iter::once(event.entry.clone()).chain(event.previous.clone()).collect();
        match kind.translate(self.viewer.server(), states).await {
            Ok(states) => {
                let mut states = states.into_iter();
                let seen = Event::new(event.kind, states.next()?, states.next());
                self.frame(&Arc::new(seen))
            }
            Err(error) => {
                self.ended = true;
                Some(error_event(self.format(), &error))
            }
        }
    }

    /// An event as this watcher sees it: selectors turn changes into arrivals and departures.
    fn frame(&mut self, event: &Arc<Event<Header>>) -> Option<Bytes> {
        let kind = self.viewer.kind.clone();
        let selected = |stored: &Stored| kind.selects(&self.selection, stored);
        let was = event.previous.as_ref().is_some_and(selected);
        let is = event.kind != EventKind::Deleted && selected(&event.entry);
        let as_json = self.viewer.accepted.shape == Shape::Whole && self.format() == Format::Json;
        let plain = as_json && render::is_plain(&kind, &event.entry);
        match (was, is) {
            (false, false) => None,
            (true, false) if event.kind != EventKind::Deleted => {
                // It left the selection: the last state that was in it, at the revision of the change.
                let mut last = kind.read(event.previous.as_ref()?);
                object::set_revision(&mut last, event.revision());
                let mut out = Vec::new();
                self.write_event(&mut out, "DELETED", Subject::Value(&last));
                Some(out.into())
            }
            (was, is) => {
                let name = match (was, is) {
                    (true, true) => "MODIFIED",
                    (false, _) => "ADDED",
                    (true, false) => "DELETED",
                };
                let natural = matches!(
                    (event.kind, name),
                    (EventKind::Created, "ADDED")
                        | (EventKind::Updated, "MODIFIED")
                        | (EventKind::Deleted, "DELETED")
                );
                let mut write = || {
                    let mut out = Vec::with_capacity(event.entry.body.len() + 64);
                    self.write_event(&mut out, name, Subject::Stored(&event.entry));
                    Bytes::from(out)
                };
                let is_stored_version = kind.storage == kind.api_version();
                Some(if plain && natural && is_stored_version { event.frame(|_| write()) } else { write() })
            }
        }
    }

    fn format(&self) -> Format {
        self.viewer.accepted.format
    }

    fn write_event(&mut self, out: &mut Vec<u8>, name: &str, subject: Subject<'_>) {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if self.format() == Format::Protobuf {
            out.extend(protobuf::encode_event(name, &self.viewer.protobuf(subject)));
            return;
        }
        out.extend_from_slice(format!("{{\"type\":\"{name}\",\"object\":").as_bytes());
        self.viewer.json(out, subject, is_first);
        out.extend_from_slice(b"}\n");
    }

    fn write_bookmark(&mut self, out: &mut Vec<u8>, revision: Revision, annotations: Option<Value>) {
        let mut bookmark = self.viewer.kind.empty();
        object::set_revision(&mut bookmark, revision);
        if let Some(annotations) = annotations {
            object::set_meta(&mut bookmark, "annotations", annotations);
        }
        self.write_event(out, "BOOKMARK", Subject::Value(&bookmark));
    }
}

fn too_old(format: Format, asked: Revision, oldest: Revision) -> Bytes {
    error_event(format, &ApiError::expired(format!("too old resource version: {asked} ({oldest})")))
}

fn error_event(format: Format, error: &ApiError) -> Bytes {
    let status = error.to_status();
    match (format, render::protobuf(&status)) {
        (Format::Protobuf, Some(status)) => protobuf::encode_event("ERROR", &status).into(),
        _ => format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n").into(),
    }
}
