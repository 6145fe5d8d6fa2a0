//! Large answers give way to small ones: they are made in slices, and only some at a time.
//!
//! A list of many thousand objects takes longer to make than a thousand small reads. Without turns, a few of them
//! hold all threads of the runtime, and everybody else waits until the last one is done.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Work in bytes after which others come first: well below a millisecond, whatever the form of the answer.
const SLICE: usize = 32 * 1024;

/// How much work is too little to wait for a turn.
const SMALL: usize = 4 * SLICE;

/// How many large answers are made at once. Not as many as the machine has threads: a run must go the same way
/// on every machine.
const AT_ONCE: usize = 2;

/// Who may make a large answer now.
pub(crate) struct Turns(Semaphore);

impl Default for Turns {
    fn default() -> Self {
        Self(Semaphore::new(AT_ONCE))
    }
}

impl Turns {
    /// Waits until work on that many bytes may begin; the turn ends with what is given.
    pub(crate) async fn take(&self, bytes: usize) -> Turn<'_> {
        // The semaphore is never closed; a turn without a permit is still made in slices.
        let permit = if bytes > SMALL { self.0.acquire().await.ok() } else { None };
        Turn { _permit: permit, done: 0 }
    }
}

/// A piece of work in slices.
pub(crate) struct Turn<'a> {
    _permit: Option<SemaphorePermit<'a>>,
    done: usize,
}

impl Turn<'_> {
    /// Notes that work on some bytes is done, and lets others come first from time to time.
    pub(crate) async fn did(&mut self, bytes: usize) {
        self.done += bytes;
        if self.done >= SLICE {
            self.done = 0;
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::task::JoinSet;

    #[tokio::test]
    async fn small_work_comes_between_large_work() {
        let turns = Arc::new(Turns(Semaphore::new(1)));
        let slices = Arc::new(AtomicUsize::new(0));
        let mut large = JoinSet::new();
        for _ in 0..10 {
            let (turns, slices) = (turns.clone(), slices.clone());
            large.spawn(async move {
                let mut turn = turns.take(100 * SLICE).await;
                for _ in 0..100 {
                    slices.fetch_add(1, Ordering::Relaxed);
                    turn.did(SLICE).await;
                }
            });
        }
        tokio::task::yield_now().await;
        let before = slices.load(Ordering::Relaxed);
        turns.take(SMALL).await.did(1).await;
        tokio::task::yield_now().await;
        assert!(
            slices.load(Ordering::Relaxed) - before < 5,
            "small work waits for a slice, not for an answer"
        );
        while large.join_next().await.is_some() {}
        assert_eq!(slices.load(Ordering::Relaxed), 1000);
    }
}
