//! The store: tables, one revision, commits that are synchronous and all or nothing.

use crate::log::Log;
use crate::{Entry, Event, EventKind, Key, Revision, Table, Watch};
use bytes::Bytes;
use imbl::OrdMap;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;

/// How much history is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Events older than this are forgotten at the next write to their table, or after a few writes to others.
    pub history_ms: i64,
    /// At most this many events are kept per table.
    pub events_max: usize,
}

impl Default for Limits {
    /// 75 seconds, as the watch cache of kube-apiserver, and 10,000 events a table.
    fn default() -> Self {
        Self { history_ms: 75_000, events_max: 10_000 }
    }
}

/// What a writer expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No object with this key.
    Absent,
    /// The object as of this revision.
    At(Revision),
}

/// What a writer wants.
#[derive(Debug)]
pub enum Change<H> {
    /// The object shall be this.
    Put {
        /// The serialised object.
        body: Bytes,
        /// What must be known of it without parsing.
        header: H,
    },
    /// The object shall be gone; this is its last state, for the watchers.
    Delete {
        /// The serialised object.
        body: Bytes,
        /// What must be known of it without parsing.
        header: H,
    },
}

/// The object was not what the writer expected, or the journal refused; nothing was written.
#[derive(Debug, thiserror::Error)]
#[error("the object is not as expected")]
pub struct Conflict<H> {
    /// What is there instead.
    pub current: Option<Arc<Entry<H>>>,
}

/// The revision asked for has been forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revisions up to {oldest} have been compacted")]
pub struct Compacted {
    /// The newest revision that is forgotten.
    pub oldest: Revision,
}

/// A read at a revision that cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadAtError {
    /// It has been forgotten.
    #[error(transparent)]
    Compacted(#[from] Compacted),
    /// It has not happened yet.
    #[error("the store is at revision {current}")]
    Future {
        /// Where the store is.
        current: Revision,
    },
}

/// A table as it was at one revision. Costs nothing to take and to hold.
#[derive(Debug)]
pub struct Snapshot<H> {
    /// The store's revision at that moment.
    pub revision: Revision,
    entries: OrdMap<Key, Arc<Entry<H>>>,
}

impl<H> Snapshot<H> {
    /// The object at `key`.
    pub fn get(&self, key: &Key) -> Option<&Arc<Entry<H>>> {
        self.entries.get(key)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All objects, in key order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry<H>>> {
        self.entries.values()
    }

    /// Objects whose key begins with `prefix`, from `start` on, in key order.
    pub fn within<'a>(&'a self, prefix: &'a str, start: &Key) -> impl Iterator<Item = &'a Arc<Entry<H>>> {
        let from = if start.as_str() < prefix { Key::from_text(prefix) } else { start.clone() };
        self.entries
            .range(from..)
            .map(|(_, entry)| entry)
            .take_while(move |entry| entry.key.as_str().starts_with(prefix))
    }
}

/// The whole store at one moment; taking and restoring it copies no object.
#[derive(Debug)]
pub struct Backup<H> {
    /// The store's revision at that moment.
    pub revision: Revision,
    tables: BTreeMap<Table, OrdMap<Key, Arc<Entry<H>>>>,
}

impl<H> Clone for Backup<H> {
    fn clone(&self) -> Self {
        Self { revision: self.revision, tables: self.tables.clone() }
    }
}

impl<H> Backup<H> {
    /// An empty store at `revision`, to be filled.
    pub fn empty(revision: Revision) -> Self {
        Self { revision, tables: BTreeMap::new() }
    }

    /// Adds an object; the revision of the whole is never older than that of a part.
    pub fn insert(&mut self, table: &Table, entry: Entry<H>) {
        self.revision = self.revision.max(entry.revision);
        self.tables.entry(table.clone()).or_default().insert(entry.key.clone(), Arc::new(entry));
    }

    /// All objects with their tables, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Table, &Arc<Entry<H>>)> {
        self.tables.iter().flat_map(|(table, entries)| entries.values().map(move |entry| (table, entry)))
    }

    /// One table as it was.
    pub fn table(&self, table: &Table) -> Snapshot<H> {
        let entries = self.tables.get(table).cloned().unwrap_or_default();
        Snapshot { revision: self.revision, entries }
    }
}

/// Makes changes last. It is told of each under the store's lock, in the order of revisions, before anybody can see
/// it; what it refuses does not happen.
pub trait Journal<H>: Send + Sync {
    /// One object is about to be written or removed.
    fn record(&self, table: &Table, kind: EventKind, entry: &Entry<H>) -> Result<(), Refused>;

    /// All is about to be replaced.
    fn replace(&self, with: &Backup<H>) -> Result<(), Refused>;

    /// Whether it has grown so long that a fresh start from the whole state would be shorter.
    fn is_long(&self) -> bool;

    /// Starts afresh: from now on this state and what is recorded after it is all there is to keep.
    fn shorten(&self, state: Backup<H>);
}

/// The journal could not keep a change, so it was not made. The journal knows why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the change could not be recorded")]
pub struct Refused;

/// The store. Writers never wait for watchers; readers hold no lock while they read.
pub struct Store<H> {
    inner: RwLock<Inner<H>>,
    limits: Limits,
    journal: Option<Arc<dyn Journal<H>>>,
}

struct Inner<H> {
    revision: Revision,
    tables: BTreeMap<Table, Rows<H>>,
    /// A table that was never written has forgotten nothing since this revision.
    base: Revision,
    /// The table whose history was looked through last.
    swept: Option<Table>,
}

impl<H> Inner<H> {
    fn backup(&self) -> Backup<H> {
        let tables = self.tables.iter().map(|(table, rows)| (table.clone(), rows.entries.clone()));
        Backup { revision: self.revision, tables: tables.collect() }
    }

    /// Puts `tables` in place of all that is here; `revision` is newer than all in them.
    fn replace(&mut self, mut tables: BTreeMap<Table, OrdMap<Key, Arc<Entry<H>>>>, revision: Revision) {
        self.revision = revision;
        self.base = revision;
        for table in tables.keys() {
            self.tables.entry(table.clone()).or_insert_with(|| Rows::empty_since(revision));
        }
        for (table, rows) in &mut self.tables {
            rows.entries = tables.remove(table).unwrap_or_default();
            rows.log = Log::starting_after(revision);
            rows.newest.send_replace(revision);
        }
    }

    /// Forgets old events of one table more, so that tables nobody writes to are looked through too.
    fn sweep(&mut self, oldest_ms: i64, events_max: usize) {
        let after = self.swept.take().map_or(Bound::Unbounded, Bound::Excluded);
        if let Some((table, rows)) = self.tables.range_mut((after, Bound::Unbounded)).next() {
            rows.log.compact(oldest_ms, events_max);
            self.swept = Some(table.clone());
        }
    }
}

struct Rows<H> {
    entries: OrdMap<Key, Arc<Entry<H>>>,
    log: Log<H>,
    newest: watch::Sender<Revision>,
}

impl<H> Rows<H> {
    fn empty_since(base: Revision) -> Self {
        Self { entries: OrdMap::new(), log: Log::starting_after(base), newest: watch::Sender::new(base) }
    }
}

impl<H> Store<H> {
    /// An empty store at revision 1.
    pub fn new(limits: Limits) -> Self {
        let inner = Inner { revision: Revision(1), tables: BTreeMap::new(), base: Revision(0), swept: None };
        Self { inner: RwLock::new(inner), limits, journal: None }
    }

    /// A store that goes on from a state, and tells a journal of every change.
    pub fn with_journal(limits: Limits, state: &Backup<H>, journal: Arc<dyn Journal<H>>) -> Self {
        let mut store = Self::new(limits);
        let revision = Revision(state.revision.0 + 1);
        let inner = store.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        inner.replace(state.tables.clone(), revision);
        store.journal = Some(journal);
        store
    }

    /// The revision of the newest write.
    pub fn revision(&self) -> Revision {
        self.read(|inner| inner.revision)
    }

    /// The revision of the newest write to a table.
    pub fn table_revision(&self, table: &Table) -> Revision {
        self.read(|inner| inner.tables.get(table).map_or(inner.base, |rows| *rows.newest.borrow()))
    }

    /// The object at `key` now.
    pub fn get(&self, table: &Table, key: &Key) -> Option<Arc<Entry<H>>> {
        self.read(|inner| inner.tables.get(table)?.entries.get(key).cloned())
    }

    /// The table now.
    pub fn snapshot(&self, table: &Table) -> Snapshot<H> {
        self.read(|inner| Snapshot {
            revision: inner.revision,
            entries: inner.tables.get(table).map(|rows| rows.entries.clone()).unwrap_or_default(),
        })
    }

    /// The table as it was at `revision`: what happened since is undone on a copy.
    pub fn snapshot_at(&self, table: &Table, revision: Revision) -> Result<Snapshot<H>, ReadAtError> {
        let (mut entries, since) = self.read(|inner| {
            if revision > inner.revision {
                return Err(ReadAtError::Future { current: inner.revision });
            }
            let Some(rows) = inner.tables.get(table) else {
                // Nothing was ever written to it; what was there before the last restore is forgotten.
                if revision < inner.base {
                    return Err(Compacted { oldest: inner.base }.into());
                }
                return Ok((OrdMap::new(), Vec::new()));
            };
            if revision < rows.log.compacted() {
                return Err(Compacted { oldest: rows.log.compacted() }.into());
            }
            Ok((rows.entries.clone(), rows.log.back_to(revision).cloned().collect()))
        })?;
        for event in since {
            match &event.previous {
                Some(previous) => entries.insert(previous.key.clone(), previous.clone()),
                None => entries.remove(&event.entry.key),
            };
        }
        Ok(Snapshot { revision, entries })
    }

    /// Writes one object, or nothing: `make` is called with the write's revision only if the expectation holds.
    pub fn commit(
        &self,
        table: &Table,
        key: &Key,
        expect: Expect,
        now_ms: i64,
        make: impl FnOnce(Revision) -> Change<H>,
    ) -> Result<Arc<Entry<H>>, Conflict<H>> {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *inner;
        let current = inner.tables.get(table).and_then(|rows| rows.entries.get(key)).cloned();
        let holds = match (expect, &current) {
            (Expect::Absent, None) => true,
            (Expect::At(revision), Some(entry)) => entry.revision == revision,
            _ => false,
        };
        if !holds {
            return Err(Conflict { current });
        }
        let revision = Revision(inner.revision.0 + 1);
        let (kind, body, header) = match make(revision) {
            Change::Put { body, header } if current.is_some() => (EventKind::Updated, body, header),
            Change::Put { body, header } => (EventKind::Created, body, header),
            Change::Delete { body, header } => (EventKind::Deleted, body, header),
        };
        let entry = Arc::new(Entry { key: key.clone(), revision, body, header });
        if let Some(journal) = &self.journal
            && journal.record(table, kind, &entry).is_err()
        {
            return Err(Conflict { current });
        }
        inner.revision = revision;
        let base = inner.base;
        let rows = inner.tables.entry(table.clone()).or_insert_with(|| Rows::empty_since(base));
        if kind == EventKind::Deleted {
            rows.entries.remove(key);
        } else {
            rows.entries.insert(key.clone(), entry.clone());
        }
        rows.log.push(now_ms, Arc::new(Event::new(kind, entry.clone(), current)));
        let oldest_ms = now_ms.saturating_sub(self.limits.history_ms);
        rows.log.compact(oldest_ms, self.limits.events_max);
        rows.newest.send_replace(revision);
        inner.sweep(oldest_ms, self.limits.events_max);
        if let Some(journal) = self.journal.as_ref().filter(|journal| journal.is_long()) {
            journal.shorten(inner.backup());
        }
        Ok(entry)
    }

    /// Everything that happens in a table after `revision`, which may lie in the future.
    pub fn watch(self: &Arc<Self>, table: &Table, revision: Revision) -> Result<Watch<H>, Compacted> {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let base = inner.base;
        let rows = inner.tables.entry(table.clone()).or_insert_with(|| Rows::empty_since(base));
        if revision < rows.log.compacted() {
            return Err(Compacted { oldest: rows.log.compacted() });
        }
        Ok(Watch::new(self.clone(), table.clone(), revision, rows.newest.subscribe()))
    }

    /// The whole store now.
    pub fn backup(&self) -> Backup<H> {
        self.read(Inner::backup)
    }

    /// Puts a backup, of this store or another, in place of all that is here. The revision goes on growing;
    /// watches end as if compacted.
    pub fn restore(&self, backup: &Backup<H>) -> Result<(), Refused> {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let revision = Revision(inner.revision.max(backup.revision).0 + 1);
        self.swap(&mut inner, Backup { revision, tables: backup.tables.clone() })
    }

    /// Puts these objects in place of all that is here, in one step; each gets a revision of its own. Of two with
    /// the same key the last stays.
    pub fn refill<F>(&self, objects: impl IntoIterator<Item = (Table, Key, F)>) -> Result<(), Refused>
    where
        F: FnOnce(Revision) -> (Bytes, H),
    {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let mut state = Backup::empty(inner.revision);
        let mut revision = inner.revision;
        for (table, key, make) in objects {
            revision.0 += 1;
            let (body, header) = make(revision);
            state.insert(&table, Entry { key, revision, body, header });
        }
        state.revision.0 += 1;
        self.swap(&mut inner, state)
    }

    fn swap(&self, inner: &mut Inner<H>, state: Backup<H>) -> Result<(), Refused> {
        if let Some(journal) = &self.journal {
            journal.replace(&state)?;
        }
        inner.replace(state.tables, state.revision);
        Ok(())
    }

    /// The first event of `table` after `revision`, if there is one yet.
    pub(crate) fn event_after(
        &self,
        table: &Table,
        revision: Revision,
    ) -> Result<Option<Arc<Event<H>>>, Compacted> {
        self.read(|inner| {
            let Some(rows) = inner.tables.get(table) else { return Ok(None) };
            if revision < rows.log.compacted() {
                return Err(Compacted { oldest: rows.log.compacted() });
            }
            Ok(rows.log.after(revision).cloned())
        })
    }

    fn read<T>(&self, with: impl FnOnce(&Inner<H>) -> T) -> T {
        with(&self.inner.read().unwrap_or_else(PoisonError::into_inner))
    }
}
