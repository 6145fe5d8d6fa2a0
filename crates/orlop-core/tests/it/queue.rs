//! The queue against a model that is too simple to be wrong: a list of what every key is owed.

use core::time::Duration;
use orlop_core::queue::{Backoff, Outcome, Priority, Queue};
use proptest::prelude::*;
use std::collections::BTreeMap;

const BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), longest: Duration::from_millis(320) };

#[derive(Clone, Debug)]
enum Step {
    Add(u8, Priority),
    AddAt(u8, Priority, u64),
    Take,
    Finish(usize, Outcome),
    Wait(u64),
}

fn priority() -> impl Strategy<Value = Priority> {
    prop_oneof![Just(Priority::Low), Just(Priority::Normal), Just(Priority::High)]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        3 => Just(Outcome::Done),
        1 => (0..50_u64).prop_map(|ms| Outcome::Again(Duration::from_millis(ms))),
        3 => (0.0..1.0).prop_map(|chance| Outcome::Failed { chance }),
        1 => (0..50_u64).prop_map(|ms| Outcome::FailedFor(Duration::from_millis(ms))),
        1 => Just(Outcome::GivenUp),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..5_u8, priority()).prop_map(|(key, priority)| Step::Add(key, priority)),
        1 => (0..5_u8, priority(), 0..50_u64).prop_map(|(key, priority, ms)| Step::AddAt(key, priority, ms)),
        4 => Just(Step::Take),
        4 => (0..4_usize, outcome()).prop_map(|(worker, outcome)| Step::Finish(worker, outcome)),
        2 => (0..30_u64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 0..120)
}

/// What a key is owed.
#[derive(Clone, Copy, Debug, Default)]
struct Owed {
    /// When it became due, with its priority and its place among those that are due.
    due: Option<(Duration, Priority, u64)>,
    /// When it will be due.
    later: Option<(Duration, Priority, u64)>,
    taken: bool,
    /// Added while it was taken.
    again: Option<Priority>,
    failures: u32,
    retry: Option<Duration>,
}

#[derive(Default)]
struct Model {
    keys: BTreeMap<u8, Owed>,
    numbers: u64,
}

impl Model {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn add(&mut self, key: u8, priority: Priority, now: Duration) {
        let number = self.number();
        let owed = self.keys.entry(key).or_default();
        if owed.taken {
            owed.again = Some(owed.again.map_or(priority, |known| known.max(priority)));
        } else if let Some((_, known, _)) = &mut owed.due {
            *known = (*known).max(priority);
        } else {
            let known = owed.later.take().map_or(priority, |(_, known, _)| known.max(priority));
            owed.due = Some((now, known, number));
        }
    }

    fn add_at(&mut self, key: u8, priority: Priority, at: Duration) {
        let number = self.number();
        let owed = self.keys.entry(key).or_default();
        if owed.due.is_none() {
            let known = owed.later.map_or((at, priority), |(known, of, _)| (known.min(at), of.max(priority)));
            owed.later = Some((known.0, known.1, number));
        }
    }

    /// Those whose time has come are due in the order of their times.
    fn wake(&mut self, now: Duration) {
        let mut woken: Vec<(Duration, u64, u8)> = self
            .keys
            .iter()
            .filter(|(_, owed)| !owed.taken)
            .filter_map(|(key, owed)| owed.later.map(|(at, _, number)| (at, number, *key)))
            .filter(|(at, _, _)| *at <= now)
            .collect();
        woken.sort_unstable();
        for (_, _, key) in woken {
            let number = self.number();
            let owed = self.keys.entry(key).or_default();
            owed.due = owed.later.take().map(|(_, priority, _)| (now, priority, number));
        }
    }

    fn take(&mut self, now: Duration) -> Option<u8> {
        self.wake(now);
        let due = self.keys.iter().filter_map(|(key, owed)| {
            owed.due.map(|(_, priority, number)| (core::cmp::Reverse(priority), number, *key))
        });
        let (_, _, key) = due.min()?;
        let owed = self.keys.entry(key).or_default();
        owed.due = None;
        owed.taken = true;
        Some(key)
    }
}

fn check(steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut queue, mut model) = (Queue::new(BACKOFF), Model::default());
    let mut workers: Vec<(u8, Priority)> = Vec::new();
    let mut now = Duration::ZERO;
    for step in steps {
        match step {
            Step::Add(key, priority) => {
                queue.add(*key, *priority);
                model.add(*key, *priority, now);
            }
            Step::AddAt(key, priority, ms) => {
                let at = now + Duration::from_millis(*ms);
                queue.add_at(*key, *priority, at);
                model.add_at(*key, *priority, at);
            }
            Step::Take => {
                model.wake(now);
                let priorities: BTreeMap<u8, Priority> =
                    model.keys.iter().filter_map(|(key, owed)| Some((*key, owed.due?.1))).collect();
                let taken = queue.take(now);
                prop_assert_eq!(taken, model.take(now));
                if let Some(key) = taken {
                    prop_assert!(!workers.iter().any(|(other, _)| *other == key), "two workers on one key");
                    workers.push((key, priorities[&key]));
                }
            }
            Step::Finish(worker, outcome) if !workers.is_empty() => {
                let (key, priority) = workers.remove(worker % workers.len());
                queue.finish(&key, *outcome, now);
                finish(&mut model, key, priority, *outcome, now, &queue)?;
            }
            Step::Finish(..) => {}
            Step::Wait(ms) => now += Duration::from_millis(*ms),
        }
        for (key, owed) in &model.keys {
            prop_assert_eq!(queue.failures(key), owed.failures, "failures of {}", key);
        }
    }
    // Nothing is lost: everything that is owed comes, sooner or later.
    for (key, _) in workers.drain(..) {
        queue.finish(&key, Outcome::Done, now);
        let owed = model.keys.insert(key, Owed::default()).unwrap_or_default();
        if let Some(priority) = owed.again {
            model.add(key, priority, now);
        } else if let Some((at, priority, _)) = owed.later {
            model.add_at(key, priority, at);
        }
    }
    now += Duration::from_secs(10);
    while let Some(key) = model.take(now) {
        prop_assert_eq!(queue.take(now), Some(key));
        queue.finish(&key, Outcome::Done, now);
        model.keys.insert(key, Owed::default());
    }
    prop_assert_eq!(queue.take(now), None);
    prop_assert!(queue.is_empty(), "nothing is remembered of keys that are done");
    Ok(())
}

fn finish(
    model: &mut Model,
    key: u8,
    priority: Priority,
    outcome: Outcome,
    now: Duration,
    queue: &Queue<u8>,
) -> Result<(), TestCaseError> {
    let number = model.number();
    let owed = model.keys.entry(key).or_default();
    owed.taken = false;
    let early = owed.retry.filter(|retry| *retry > now);
    let next = match outcome {
        Outcome::Done | Outcome::GivenUp => {
            (owed.failures, owed.retry) = (0, None);
            None
        }
        Outcome::Again(after) => {
            (owed.failures, owed.retry) = (0, None);
            Some(now + after)
        }
        Outcome::Failed { .. } if early.is_some() => early,
        Outcome::Failed { chance } => {
            owed.failures += 1;
            let delay = BACKOFF.delay(owed.failures, chance);
            let whole = (BACKOFF.first * 2_u32.pow((owed.failures - 1).min(6))).min(BACKOFF.longest);
            prop_assert!(delay <= whole && delay >= whole * 9 / 10, "{:?} is not near {:?}", delay, whole);
            Some(now + delay)
        }
        Outcome::FailedFor(after) => {
            owed.failures += 1;
            Some(now + after)
        }
    };
    if !matches!(outcome, Outcome::Done | Outcome::GivenUp | Outcome::Again(_)) {
        owed.retry = next;
    }
    let later = owed.later.take().map(|(at, of, _)| (at, of));
    let next = match (next, later) {
        (Some(at), Some((later, of))) => Some((at.min(later), priority.max(of))),
        (next, later) => next.map(|at| (at, priority)).or(later),
    };
    match (owed.again.take(), next) {
        (Some(again), _) => owed.due = Some((now, again, number)),
        (None, Some((at, priority))) => {
            owed.later = Some((at, priority, number));
            prop_assert!(queue.next_time().is_some_and(|time| time <= at));
        }
        (None, None) => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_key_is_lost_none_has_two_workers_and_order_is_kept(steps in steps()) {
        check(&steps)?;
    }
}

#[test]
fn an_event_during_backoff_runs_at_once_and_does_not_count() {
    let mut queue = Queue::new(BACKOFF);
    let (mut now, fails) = (Duration::ZERO, Outcome::Failed { chance: 0.0 });
    queue.add("x", Priority::Normal);
    for _ in 0..4 {
        assert_eq!(queue.take(now), Some("x"));
        queue.finish(&"x", fails, now);
        now = queue.next_time().expect("it is tried again");
    }
    let due = now;
    now -= Duration::from_millis(1);
    assert_eq!(queue.take(now), None, "it waits");
    queue.add("x", Priority::Normal);
    assert_eq!(queue.take(now), Some("x"), "an event does not");
    queue.finish(&"x", fails, now);
    assert_eq!((queue.failures(&"x"), queue.next_time()), (4, Some(due)));
    assert_eq!(queue.take(due), Some("x"));
    queue.finish(&"x", Outcome::Done, due);
    assert_eq!(queue.failures(&"x"), 0, "success resets");
}

#[test]
fn a_time_that_is_set_during_work_is_kept() {
    let mut queue = Queue::default();
    queue.add("x", Priority::Low);
    assert_eq!(queue.take(Duration::ZERO), Some("x"));
    queue.add_at("x", Priority::High, Duration::from_secs(10));
    queue.finish(&"x", Outcome::Done, Duration::ZERO);
    assert_eq!(queue.next_time(), Some(Duration::from_secs(10)));
    assert_eq!(queue.take(Duration::from_secs(10)), Some("x"));
}

#[test]
fn the_delay_grows_to_its_bound_and_never_overflows() {
    let backoff = Backoff::default();
    let delays: Vec<Duration> = (1..100).map(|failures| backoff.delay(failures, 0.0)).collect();
    assert_eq!(delays[0], Duration::from_millis(5));
    assert_eq!(delays[1], Duration::from_millis(10));
    assert!(delays.is_sorted());
    assert_eq!(delays.last(), Some(&Duration::from_secs(1000)));
    assert_eq!(backoff.delay(u32::MAX, 1.0), Duration::from_mins(15));
}
