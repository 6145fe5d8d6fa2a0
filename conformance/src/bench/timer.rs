//! Stopwatches and what to make of many readings.

use std::time::{Duration, Instant};

/// A stopwatch that runs since it was made.
#[derive(Clone, Copy)]
pub(crate) struct Timer(Instant);

impl Timer {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures the machine's own time")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Milliseconds since the start.
    pub(crate) fn ms(self) -> f64 {
        self.elapsed().as_secs_f64() * 1e3
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// The reading below which a share of all readings lies.
pub(crate) fn percentile(readings: &mut [f64], share: f64) -> f64 {
    readings.sort_by(f64::total_cmp);
    let last = readings.len().saturating_sub(1);
    readings.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

pub(crate) fn median(readings: &mut [f64]) -> f64 {
    percentile(readings, 0.5)
}
