//! A watch: a place in a table's log. It pulls, so a slow watcher costs writers nothing and is cut off when
//! the log has forgotten what it would have to see next.

use crate::{Compacted, Event, Revision, Store, Table};
use std::sync::Arc;
use tokio::sync::watch;

/// Events of one table in the order of their revisions, each exactly once, none missing.
pub struct Watch<H> {
    store: Arc<Store<H>>,
    table: Table,
    seen: Revision,
    newest: watch::Receiver<Revision>,
}

impl<H> Watch<H> {
    pub(crate) fn new(
        store: Arc<Store<H>>,
        table: Table,
        seen: Revision,
        newest: watch::Receiver<Revision>,
    ) -> Self {
        Self { store, table, seen, newest }
    }

    /// The revision up to which everything has been seen.
    pub fn seen(&self) -> Revision {
        self.seen
    }

    /// The next event that has already happened.
    pub fn try_next(&mut self) -> Result<Option<Arc<Event<H>>>, Compacted> {
        let event = self.store.event_after(&self.table, self.seen)?;
        if let Some(event) = &event {
            self.seen = event.revision();
        }
        Ok(event)
    }

    /// The next event, as soon as it happens. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Arc<Event<H>>, Compacted> {
        loop {
            self.newest.borrow_and_update();
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            // The sender lives in the store, which this watch keeps alive.
            if self.newest.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Everything up to this revision has been seen: all events so far, and no event of this table lies between.
    pub fn bookmark(&self) -> Result<Option<Revision>, Compacted> {
        let now = self.store.revision();
        let none_missed = self.store.event_after(&self.table, self.seen)?.is_none();
        Ok((none_missed && now >= self.seen).then_some(now))
    }
}
