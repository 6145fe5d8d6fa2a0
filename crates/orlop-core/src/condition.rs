//! Conditions by the conventions of Kubernetes: a list map by type, `observedGeneration` on each, a transition time
//! that moves only when the status does, reasons in CamelCase, messages for people.
//!
//! `Ready`, `Stalled` and `Reconciling` mean what kstatus takes them to mean, so that `kubectl wait`, Flux and Argo CD
//! understand an operator that uses them.

use serde_json::{Map, Value, json};

/// What a condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows.
    Unknown,
}

impl State {
    /// As it stands in an object.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// One condition, without what the runtime fills in: generation and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Such as `Ready`.
    pub kind: String,
    /// Whether it holds.
    pub state: State,
    /// One word for programs, in CamelCase.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

/// The longest message; the API refuses longer ones.
pub const MESSAGE_BYTES_MAX: usize = 32 * 1024;
/// The longest reason; the API refuses longer ones.
pub const REASON_BYTES_MAX: usize = 1024;

impl Condition {
    /// A condition.
    pub fn new(kind: &str, state: State, reason: &str, message: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), state, reason: reason.to_owned(), message: message.into() }
    }

    /// `kind` is true, with this reason, if `holds`; else it waits for [`When::otherwise`].
    pub fn when(kind: &str, holds: bool, reason: &str, message: impl Into<String>) -> When {
        if holds {
            When::Holds(Self::new(kind, State::True, reason, message))
        } else {
            When::Not { kind: kind.to_owned() }
        }
    }
}

/// A condition of which one half is known.
#[derive(Clone, Debug)]
pub enum When {
    /// It is true.
    Holds(Condition),
    /// It is not, and the reason is still to be said.
    Not {
        /// The condition's type.
        kind: String,
    },
}

impl When {
    /// Why it does not hold, if it does not.
    pub fn otherwise(self, reason: &str, message: impl Into<String>) -> Condition {
        match self {
            Self::Holds(condition) => condition,
            Self::Not { kind } => Condition::new(&kind, State::False, reason, message),
        }
    }
}

/// The conditions of an object after a reconcile: each of `wanted` with its generation and time; of those that were
/// there before, the ones in `kept` (others write them) stay as they are, and the rest go. In the order of `wanted`.
pub fn settle(
    before: &[Value],
    wanted: &[Condition],
    generation: i64,
    now: &str,
    kept: impl Fn(&str) -> bool,
) -> Vec<Value> {
    let kind_of = |condition: &Value| condition["type"].as_str().unwrap_or_default().to_owned();
    let mut settled: Vec<Value> = Vec::new();
    for condition in wanted {
        let known = before.iter().find(|known| known["type"] == condition.kind.as_str());
        let same = known.filter(|known| known["status"] == condition.state.as_str());
        let since = same.and_then(|known| known["lastTransitionTime"].as_str()).unwrap_or(now);
        let value = json!({
            "type": condition.kind,
            "status": condition.state.as_str(),
            "observedGeneration": generation,
            "lastTransitionTime": since,
            "reason": reason(&condition.reason),
            "message": cut(&condition.message, MESSAGE_BYTES_MAX),
        });
        // Of two with one type the last counts: a list map has room for one.
        match settled.iter().position(|other| other["type"] == value["type"]) {
            Some(at) => settled[at] = value,
            None => settled.push(value),
        }
    }
    let others = before.iter().filter(|known| {
        let kind = kind_of(known);
        kept(&kind) && !wanted.iter().any(|condition| condition.kind == kind)
    });
    settled.extend(others.cloned());
    settled
}

/// A status: what the author computed, with `observedGeneration` and conditions in place.
pub fn status(mut computed: Map<String, Value>, conditions: Vec<Value>, generation: i64) -> Value {
    computed.insert("observedGeneration".to_owned(), generation.into());
    computed.insert("conditions".to_owned(), Value::Array(conditions));
    Value::Object(computed)
}

/// A reason that the API accepts: letters, digits, `_`, `,` and `:`, beginning with a letter.
fn reason(wanted: &str) -> String {
    let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':');
    let cleaned: String = wanted.chars().filter(allowed).collect();
    let begins = cleaned.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    let ends = begins.trim_end_matches([',', ':']);
    if ends.is_empty() { "Unknown".to_owned() } else { cut(ends, REASON_BYTES_MAX).to_owned() }
}

fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLY: &str = "2026-01-01T00:00:00Z";
    const LATE: &str = "2026-01-02T00:00:00Z";

    #[test]
    fn the_time_moves_only_with_the_status() {
        let ready = |holds| {
            Condition::when("Ready", holds, "Available", "all is up").otherwise("Progressing", "starting")
        };
        let none = |_: &str| false;
        let first = settle(&[], &[ready(false)], 1, EARLY, none);
        assert_eq!(first[0]["reason"], "Progressing");
        let second = settle(&first, &[ready(false)], 2, LATE, none);
        assert_eq!(
            (&second[0]["lastTransitionTime"], &second[0]["observedGeneration"]),
            (&json!(EARLY), &json!(2))
        );
        let third = settle(&second, &[ready(true)], 2, LATE, none);
        assert_eq!((&third[0]["lastTransitionTime"], &third[0]["status"]), (&json!(LATE), &json!("True")));
        assert_eq!(settle(&third, &[ready(true)], 2, "later", none), third, "nothing changed");
    }

    #[test]
    fn what_others_write_stays_and_what_nobody_wants_goes() {
        let before = [json!({"type": "Theirs", "status": "True"}), json!({"type": "Old", "status": "True"})];
        let wanted = [
            Condition::new("Ready", State::True, "Ok", ""),
            Condition::new("Ready", State::Unknown, "9 lives!", ""),
        ];
        let settled = settle(&before, &wanted, 1, EARLY, |kind| kind == "Theirs");
        let found: Vec<(&str, &str)> = settled
            .iter()
            .map(|c| (c["type"].as_str().unwrap_or_default(), c["status"].as_str().unwrap_or_default()))
            .collect();
        assert_eq!(found, [("Ready", "Unknown"), ("Theirs", "True")]);
        assert_eq!(settled[0]["reason"], "lives");
    }

    #[test]
    fn texts_that_the_api_would_refuse_are_mended() {
        for (wanted, expected) in [("", "Unknown"), ("::", "Unknown"), ("not ready", "notready"), ("A:", "A")]
        {
            assert_eq!(reason(wanted), expected);
        }
        let long = "é".repeat(MESSAGE_BYTES_MAX);
        let settled = settle(&[], &[Condition::new("Ready", State::False, "R", long)], 1, EARLY, |_| false);
        let message = settled[0]["message"].as_str().unwrap_or_default();
        assert!(message.len() <= MESSAGE_BYTES_MAX && message.len() > MESSAGE_BYTES_MAX - 2);
    }
}
