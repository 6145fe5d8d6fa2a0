//! The clock: either the system's, or one that a test moves by hand.

use jiff::{SignedDuration, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};

/// Tells the time of day. Cheap to clone; clones tell the same time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Manual(ManualClock),
}

impl Clock {
    /// The clock of this machine.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// What the clock shows.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            #[expect(
                clippy::disallowed_methods,
                reason = "this is the one place that asks the machine for the time"
            )]
            Source::System => Timestamp::now(),
            Source::Manual(clock) => clock.now(),
        }
    }
}

impl From<ManualClock> for Clock {
    fn from(clock: ManualClock) -> Self {
        Self(Source::Manual(clock))
    }
}

/// A clock that stands still until it is moved.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Mutex<Timestamp>>);

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(start)))
    }

    /// What the clock shows.
    pub fn now(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the clock forward; it stops at the end of representable time.
    pub fn advance(&self, by: SignedDuration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.saturating_add(by).unwrap_or(Timestamp::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_by_hand() {
        let manual = ManualClock::new(Timestamp::UNIX_EPOCH);
        let clock = Clock::from(manual.clone());
        assert_eq!(clock.now(), clock.now());
        manual.advance(SignedDuration::from_secs(75));
        assert_eq!(clock.now().as_second(), 75);
    }
}
