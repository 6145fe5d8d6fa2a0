//! The loop: make an input, run it, keep it if it went a new way, stop at the first finding.

use crate::mutate::Mutator;
use crate::shape::shape;
use crate::targets::Target;
use orlop_clock::{Clock, SignedDuration};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Inputs that went a new way are kept to make others of, up to this many.
const POOL_MAX: usize = 4096;
/// How many inputs are run between two looks at the clock.
const CLOCK_EVERY: u64 = 64;

/// How long a run goes on, and what it starts from.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Decides every input.
    pub seed: u64,
    /// When it ends.
    pub until: Until,
}

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this many inputs.
    Inputs(u64),
    /// After this long.
    Seconds(u64),
}

/// What a run without findings did.
#[derive(Clone, Debug)]
pub struct Report {
    /// Inputs that were run.
    pub inputs: u64,
    /// Ways they went, told apart by the shape of what they were answered.
    pub classes: usize,
    /// How long it took.
    pub elapsed: SignedDuration,
}

/// An input that did what none may.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The input.
    pub input: Vec<u8>,
    /// What it did.
    pub what: String,
}

/// Runs a target; `before` sees each input before it is run.
pub fn run(
    target: &mut dyn Target,
    plan: Plan,
    clock: &Clock,
    mut before: impl FnMut(u64, &[u8]),
) -> Result<Report, Finding> {
    let mutator = Mutator::new(plan.seed, target.words());
    let mut pool = target.seeds();
    let mut classes = BTreeSet::new();
    let start = clock.now();
    let elapsed = || clock.now().duration_since(start);
    let seeds = pool.clone();
    let mut fresh = seeds.into_iter();
    let mut inputs = 0;
    loop {
        let done = match plan.until {
            Until::Inputs(most) => inputs >= most,
            Until::Seconds(most) => inputs % CLOCK_EVERY == 0 && elapsed().as_secs() >= most as i64,
        };
        if done {
            return Ok(Report { inputs, classes: classes.len(), elapsed: elapsed() });
        }
        // The seeds themselves come first: what they are answered is known ground.
        let input = fresh.next().unwrap_or_else(|| mutator.next(target.form(), &pool));
        before(inputs, &input);
        inputs += 1;
        match one(target, &input) {
            Ok(answer) => {
                if classes.insert(shape(&answer)) && pool.len() < POOL_MAX {
                    pool.push(input);
                }
            }
            Err(what) => return Err(Finding { input, what }),
        }
    }
}

/// Runs one input; a panic is a finding like others.
pub fn one(target: &mut dyn Target, input: &[u8]) -> Result<String, String> {
    catch_unwind(AssertUnwindSafe(|| target.run(input))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("without a text")))
    })
}
