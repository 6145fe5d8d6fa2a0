//! The event log of one table: what happened since the last compaction, in order.

use crate::{Entry, Revision};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It came into being.
    Created,
    /// It changed.
    Updated,
    /// It is gone; the entry is its last state, at the revision of the deletion.
    Deleted,
}

/// One committed write.
#[derive(Debug)]
pub struct Event<H> {
    /// What happened.
    pub kind: EventKind,
    /// The object after the write; for a deletion, its last state.
    pub entry: Arc<Entry<H>>,
    /// The object before the write.
    pub previous: Option<Arc<Entry<H>>>,
    frame: OnceLock<Bytes>,
}

impl<H> Event<H> {
    /// A write as it was, or as someone is to see it.
    pub fn new(kind: EventKind, entry: Arc<Entry<H>>, previous: Option<Arc<Entry<H>>>) -> Self {
        Self { kind, entry, previous, frame: OnceLock::new() }
    }

    /// The write's revision.
    pub fn revision(&self) -> Revision {
        self.entry.revision
    }

    /// The event as it goes over the wire, made by the first watcher that asks and shared by all others.
    pub fn frame(&self, make: impl FnOnce(&Self) -> Bytes) -> Bytes {
        self.frame.get_or_init(|| make(self)).clone()
    }
}

/// Events of one table with the millisecond they were committed at.
pub(crate) struct Log<H> {
    events: VecDeque<(i64, Arc<Event<H>>)>,
    /// Everything up to this revision has been forgotten.
    compacted: Revision,
}

impl<H> Log<H> {
    pub(crate) fn starting_after(revision: Revision) -> Self {
        Self { events: VecDeque::new(), compacted: revision }
    }

    pub(crate) fn compacted(&self) -> Revision {
        self.compacted
    }

    pub(crate) fn push(&mut self, now_ms: i64, event: Arc<Event<H>>) {
        self.events.push_back((now_ms, event));
    }

    /// Forgets what is older than `oldest_ms` and what exceeds `events_max`.
    pub(crate) fn compact(&mut self, oldest_ms: i64, events_max: usize) {
        while let Some((at, event)) = self.events.front() {
            if self.events.len() <= events_max && *at >= oldest_ms {
                break;
            }
            self.compacted = event.revision();
            self.events.pop_front();
        }
    }

    /// The first event after `revision`.
    pub(crate) fn after(&self, revision: Revision) -> Option<&Arc<Event<H>>> {
        let at = self.events.partition_point(|(_, event)| event.revision() <= revision);
        self.events.get(at).map(|(_, event)| event)
    }

    /// Events after `revision`, newest first.
    pub(crate) fn back_to(&self, revision: Revision) -> impl Iterator<Item = &Arc<Event<H>>> {
        self.events.iter().rev().map(|(_, event)| event).take_while(move |event| event.revision() > revision)
    }
}
