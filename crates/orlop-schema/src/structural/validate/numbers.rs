//! Checks of numbers. Go tells integers from floats, and bounds are always floats.

use super::failure::{Failure, Outcome};
use crate::field::go_float;
use crate::structural::Schema;
use crate::structural::formats::Format;
use serde_json::{Number, Value};

/// A number as Go decodes it: an integer if it was written as one and fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Num {
    Int(i64),
    Float(f64),
}

impl Num {
    pub(super) fn of(number: &Number) -> Self {
        number.as_i64().map_or_else(|| Self::Float(number.as_f64().unwrap_or_default()), Self::Int)
    }

    fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    fn value(self) -> Value {
        match self {
            Self::Int(value) => value.into(),
            Self::Float(value) => value.into(),
        }
    }

    fn text(self) -> String {
        match self {
            Self::Int(value) => value.to_string(),
            Self::Float(value) => go_float(value),
        }
    }
}

/// Whether a float is close enough to an integer that JSON clients can tell.
pub(super) fn is_whole(value: f64) -> bool {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    if !value.is_finite() || value.abs() > SAFE {
        return false;
    }
    let near = value.trunc();
    let off = (value - near).abs();
    off == 0.0 || off / (value.abs() + near.abs()).min(f64::MAX) < 1e-9
}

/// Everything a schema says about a number.
pub(super) fn check(schema: &Schema, number: Num, place: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let range = Range::of(schema);
    outcome.failures.extend(range.check(number, "Checked", place));
    if let Some(factor) = schema.multiple_of {
        let fits = range.check(Num::Float(factor), "MultipleOf", place);
        let bound = if fits.is_none() { native(number, factor) } else { Num::Float(factor) };
        outcome.failures.extend(fits);
        if let Some(failure) = check_multiple(number, bound, place) {
            outcome.add(failure);
        }
    }
    for (limit, what, exclusive, sign) in [
        (schema.minimum, "Minimum boundary", schema.exclusive_minimum, -1.0),
        (schema.maximum, "Maximum boundary", schema.exclusive_maximum, 1.0),
    ] {
        let Some(limit) = limit else { continue };
        let fits = range.check(Num::Float(limit), what, place);
        let bound = if fits.is_none() { native(number, limit) } else { Num::Float(limit) };
        outcome.failures.extend(fits);
        let beyond = match (number, bound) {
            (Num::Int(value), Num::Int(bound)) if sign > 0.0 => value.cmp(&bound),
            (Num::Int(value), Num::Int(bound)) => bound.cmp(&value),
            (value, bound) => (sign * value.as_f64())
                .partial_cmp(&(sign * bound.as_f64()))
                .unwrap_or(std::cmp::Ordering::Less),
        };
        if beyond.is_gt() || (exclusive && beyond.is_eq()) {
            let side = if sign > 0.0 { "less" } else { "greater" };
            let or_equal = if exclusive { "" } else { " or equal to" };
            let words = format!("should be {side} than{or_equal} {}", bound.text());
            outcome.add(Failure::invalid(place, number.value(), &words));
        }
    }
    outcome.matches += 1;
    outcome
}

/// A bound in the type of the number it is compared with.
fn native(number: Num, bound: f64) -> Num {
    match number {
        Num::Int(_) => Num::Int(bound as i64),
        Num::Float(_) => Num::Float(bound),
    }
}

fn check_multiple(number: Num, factor: Num, place: &str) -> Option<Failure> {
    let positive = match factor {
        Num::Int(factor) => factor > 0,
        Num::Float(factor) => factor > 0.0,
    };
    if !positive {
        let message = format!("factor MultipleOf declared for {place} must be positive: {}", factor.text());
        return Some(Failure::stated(place, factor.value(), message));
    }
    let divides = match (number, factor) {
        (Num::Int(value), Num::Int(factor)) => value % factor == 0,
        (value, factor) => {
            let (value, factor) = (value.as_f64(), factor.as_f64());
            is_whole(if factor < 1.0 { 1.0 / factor * value } else { value / factor })
        }
    };
    let words = || format!("should be a multiple of {}", factor.text());
    (!divides).then(|| Failure::invalid(place, number.value(), &words()))
}

/// The type that a number must fit in.
struct Range {
    ty: &'static str,
    format: &'static str,
}

impl Range {
    fn of(schema: &Schema) -> Self {
        let ty = match schema.types().as_slice() {
            ["integer"] => "integer",
            ["number"] => "number",
            _ => "",
        };
        let format = match schema.checked_format() {
            Some(Format::Number(format)) => format,
            _ => "",
        };
        Self { ty, format }
    }

    fn check(&self, number: Num, what: &str, place: &str) -> Option<Failure> {
        let fits = match (self.ty, self.format, number) {
            ("integer", "int32", Num::Int(value)) => i32::try_from(value).is_ok(),
            ("integer", _, Num::Int(_)) => true,
            ("integer", "int32", Num::Float(value)) => {
                value.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value)
            }
            ("integer", _, Num::Float(value)) => {
                value.fract() == 0.0 && (i64::MIN as f64..i64::MAX as f64).contains(&value)
            }
            (_, "float", number) => number.as_f64().abs() <= f64::from(f32::MAX),
            _ => true,
        };
        if fits {
            return None;
        }
        let format = if self.format.is_empty() {
            "(default format)".to_owned()
        } else {
            format!("with format {}", self.format)
        };
        Some(Failure::whole(format!("{what} value must be of type {} {format} in {place}", self.ty)))
    }
}
