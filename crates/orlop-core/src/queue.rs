//! The work queue as a state machine.
//!
//! A key is in at most one place: ready, waiting for its time, or being worked on. Adding a key that is ready or
//! waiting changes where it stands, never how often it is there; adding one that is being worked on has it ready
//! again when that is done. So no event is lost and no key has two workers, whatever the order of calls.
//!
//! Ready keys go by priority, and by order of arrival within one. Time is the time since some beginning that the
//! caller chooses; calls must not go back in it.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// How urgent a key is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Nothing is known to have changed: the first list, a resync.
    Low,
    /// Something happened.
    #[default]
    Normal,
    /// There is visibly something to do: a generation nobody has observed, a child that is missing.
    High,
}

/// How keys that fail are tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    /// After many.
    pub longest: Duration,
}

impl Default for Backoff {
    /// 5 ms, doubling up to 1000 s.
    fn default() -> Self {
        Self { first: Duration::from_millis(5), longest: Duration::from_secs(1000) }
    }
}

impl Backoff {
    /// How long to wait after so many failures in a row. `chance`, from 0 to 1, shortens it by up to a tenth, so that
    /// what failed together is not tried again together.
    pub fn delay(&self, failures: u32, chance: f64) -> Duration {
        let doubled = 2_u32.checked_pow(failures.saturating_sub(1)).and_then(|n| self.first.checked_mul(n));
        let delay = doubled.map_or(self.longest, |delay| delay.min(self.longest));
        delay.mul_f64(1.0 - chance.clamp(0.0, 1.0) / 10.0)
    }
}

/// How work on a key ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// Well; there is nothing more to do until something happens.
    Done,
    /// Well, and it shall be looked at again after this time.
    Again(Duration),
    /// Badly; it is tried again after a delay that grows.
    Failed {
        /// From 0 to 1; see [`Backoff::delay`].
        chance: f64,
    },
    /// Badly, and it shall be tried again after this time; counts as a failure.
    FailedFor(Duration),
    /// Badly, and trying again is of no use until something happens.
    GivenUp,
}

/// Where a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Ready {
        number: u64,
    },
    Waiting {
        until: Duration,
        number: u64,
    },
    /// Being worked on; `again` and `later` if it was added meanwhile.
    Taken {
        again: Option<Priority>,
        later: Option<(Duration, Priority)>,
    },
}

#[derive(Clone, Debug)]
struct Entry {
    place: Place,
    priority: Priority,
    failures: u32,
    /// When the next try after a failure is due.
    retry: Option<Duration>,
}

/// Keys to be worked on.
#[derive(Clone, Debug)]
pub struct Queue<K> {
    backoff: Backoff,
    entries: BTreeMap<K, Entry>,
    /// By priority, the highest first, then by number.
    ready: BTreeSet<(core::cmp::Reverse<Priority>, u64, K)>,
    waiting: BTreeSet<(Duration, u64, K)>,
    numbers: u64,
}

impl<K: Ord + Clone> Default for Queue<K> {
    fn default() -> Self {
        Self::new(Backoff::default())
    }
}

impl<K: Ord + Clone> Queue<K> {
    /// An empty queue.
    pub fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            entries: BTreeMap::new(),
            ready: BTreeSet::new(),
            waiting: BTreeSet::new(),
            numbers: 0,
        }
    }

    /// Has a key worked on as soon as possible. Of two priorities the higher counts. A key that waits after a failure
    /// is ready at once, and its failures stay as they are.
    pub fn add(&mut self, key: K, priority: Priority) {
        match self.entries.get_mut(&key) {
            Some(Entry { place: Place::Taken { again, .. }, .. }) => {
                *again = Some(again.map_or(priority, |known| known.max(priority)));
            }
            Some(Entry { place: Place::Ready { number }, priority: known, .. }) => {
                if priority > *known {
                    let number = *number;
                    self.ready.remove(&(core::cmp::Reverse(*known), number, key.clone()));
                    *known = priority;
                    self.ready.insert((core::cmp::Reverse(priority), number, key));
                }
            }
            Some(Entry { place: Place::Waiting { until, number }, priority: known, .. }) => {
                let (waiting, priority) = ((*until, *number, key.clone()), priority.max(*known));
                self.waiting.remove(&waiting);
                self.make_ready(key, priority);
            }
            None => self.make_ready(key, priority),
        }
    }

    /// Has a key worked on at a time. Of two times the earlier counts, of two priorities the higher. A key that is ready
    /// will have been worked on by then; one that is being worked on waits for its time when that is done.
    pub fn add_at(&mut self, key: K, priority: Priority, at: Duration) {
        match self.entries.get_mut(&key) {
            Some(Entry { place: Place::Ready { .. }, .. }) => {}
            Some(Entry { place: Place::Taken { later, .. }, .. }) => {
                *later = Some(later.map_or((at, priority), |(known, of)| (known.min(at), of.max(priority))));
            }
            Some(Entry { place: Place::Waiting { until, number }, priority: known, .. }) => {
                let (waiting, priority) = ((*until, *number, key.clone()), priority.max(*known));
                self.waiting.remove(&waiting);
                self.make_waiting(key, priority, at.min(waiting.0));
            }
            None => self.make_waiting(key, priority, at),
        }
    }

    /// The next key to work on, if one is ready. It must be given back by [`Queue::finish`].
    pub fn take(&mut self, now: Duration) -> Option<K> {
        self.wake(now);
        let (_, _, key) = self.ready.pop_first()?;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.place = Place::Taken { again: None, later: None };
        }
        Some(key)
    }

    /// Ends the work on a key that was taken.
    pub fn finish(&mut self, key: &K, outcome: Outcome, now: Duration) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Place::Taken { again, later } = entry.place else { return };
        let priority = entry.priority;
        let next = match outcome {
            Outcome::Done | Outcome::GivenUp => {
                entry.failures = 0;
                entry.retry = None;
                None
            }
            Outcome::Again(after) => {
                entry.failures = 0;
                entry.retry = None;
                Some(now.saturating_add(after))
            }
            Outcome::Failed { chance } => {
                // A try that came early, because something happened, does not count: the one that was due stays due.
                let due = entry.retry.filter(|due| *due > now);
                let at = due.unwrap_or_else(|| {
                    entry.failures = entry.failures.saturating_add(1);
                    now.saturating_add(self.backoff.delay(entry.failures, chance))
                });
                entry.retry = Some(at);
                Some(at)
            }
            Outcome::FailedFor(after) => {
                entry.failures = entry.failures.saturating_add(1);
                entry.retry = Some(now.saturating_add(after));
                entry.retry
            }
        };
        let next = match (next, later) {
            (Some(at), Some((later, of))) => Some((at.min(later), priority.max(of))),
            (next, later) => next.map(|at| (at, priority)).or(later),
        };
        match (again, next) {
            (Some(again), _) => self.make_ready(key.clone(), again),
            (None, Some((at, priority))) => self.make_waiting(key.clone(), priority, at),
            (None, None) => {
                self.entries.remove(key);
            }
        }
    }

    /// When the next waiting key will be ready.
    pub fn next_time(&self) -> Option<Duration> {
        self.waiting.first().map(|(until, _, _)| *until)
    }

    /// How often work on a key has failed in a row.
    pub fn failures(&self, key: &K) -> u32 {
        self.entries.get(key).map_or(0, |entry| entry.failures)
    }

    /// How many keys are ready, waiting, and being worked on.
    pub fn lengths(&self) -> Lengths {
        let known = self.ready.len() + self.waiting.len();
        let taken = self.entries.len().saturating_sub(known);
        Lengths { ready: self.ready.len(), waiting: self.waiting.len(), taken }
    }

    /// Whether there is nothing to do, now or later.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn wake(&mut self, now: Duration) {
        while let Some((until, _, _)) = self.waiting.first()
            && *until <= now
        {
            let Some((_, _, key)) = self.waiting.pop_first() else { return };
            let priority = self.entries.get(&key).map(|entry| entry.priority).unwrap_or_default();
            self.make_ready(key, priority);
        }
    }

    fn make_ready(&mut self, key: K, priority: Priority) {
        self.numbers += 1;
        let number = self.numbers;
        self.ready.insert((core::cmp::Reverse(priority), number, key.clone()));
        self.put(key, Place::Ready { number }, priority);
    }

    fn make_waiting(&mut self, key: K, priority: Priority, until: Duration) {
        self.numbers += 1;
        let number = self.numbers;
        self.waiting.insert((until, number, key.clone()));
        self.put(key, Place::Waiting { until, number }, priority);
    }

    fn put(&mut self, key: K, place: Place, priority: Priority) {
        let entry = self.entries.entry(key).or_insert(Entry { place, priority, failures: 0, retry: None });
        entry.place = place;
        entry.priority = priority;
    }
}

/// How many keys a queue has, by where they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    /// Ready.
    pub ready: usize,
    /// Waiting for their time.
    pub waiting: usize,
    /// Being worked on.
    pub taken: usize,
}
