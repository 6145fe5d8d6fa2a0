//! Cron schedules and time zones, read only to say what is wrong with them.

use orlop_schema::field::go_quote;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// One of the five fields of a schedule.
struct Bounds {
    low: u64,
    high: u64,
    names: &'static [&'static str],
}

const FIELDS: [Bounds; 5] = [
    Bounds { low: 0, high: 59, names: &[] },
    Bounds { low: 0, high: 23, names: &[] },
    Bounds { low: 1, high: 31, names: &[] },
    Bounds { low: 1, high: 12, names: &MONTHS },
    Bounds { low: 0, high: 6, names: &DAYS },
];

/// What is wrong with a schedule.
pub(super) fn schedule(text: &str) -> Result<(), String> {
    let mut spec = text;
    for prefix in ["TZ=", "CRON_TZ="] {
        if let Some(rest) = text.strip_prefix(prefix) {
            let (zone, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            if !is_zone(zone) {
                return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
            }
            spec = rest.trim();
        }
    }
    if spec.starts_with('@') {
        return descriptor(spec);
    }
    let fields: Vec<&str> = spec.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let found = format!("found {}: [{}]", fields.len(), fields.join(" "));
        return Err(format!("expected exactly 5 fields, {found}"));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        for part in field.split(',').filter(|part| !part.is_empty()) {
            range(part, bounds)?;
        }
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    let known = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    if known.contains(&text) {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        Some(duration) if is_duration(duration) => Ok(()),
        Some(duration) => {
            Err(format!("failed to parse duration {text}: time: invalid duration {}", go_quote(duration)))
        }
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

/// Whether Go's `time.ParseDuration` accepts the text.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let mut any = false;
    while !rest.is_empty() {
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let digits = &rest[..rest.len() - number.len()];
        if !digits.bytes().any(|b| b.is_ascii_digit()) || digits.matches('.').count() > 1 {
            return false;
        }
        let unit = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"].iter().find(|u| {
            number
                .strip_prefix(**u)
                .is_some_and(|r| r.is_empty() || r.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
        });
        let Some(unit) = unit else { return false };
        rest = &number[unit.len()..];
        any = true;
    }
    any
}

fn number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(n) if n < 0 => Err(format!("negative number ({n}) not allowed: {text}")),
        Ok(n) => Ok(n.unsigned_abs()),
        Err(error) => {
            let range = matches!(
                error.kind(),
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow
            );
            let why = if range { "value out of range" } else { "invalid syntax" };
            let quoted = go_quote(text);
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: {why}"))
        }
    }
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match bounds.names.iter().position(|name| *name == lower) {
        Some(index) => Ok(index as u64 + bounds.low),
        None => number(text),
    }
}

fn range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?", ..] => (bounds.low, bounds.high),
        [only] => {
            let start = number_or_name(only, bounds)?;
            (start, start)
        }
        [low, high] => (number_or_name(low, bounds)?, number_or_name(high, bounds)?),
        _ => {
            number_or_name(ends[0], bounds)?;
            return Err(format!("too many hyphens: {text}"));
        }
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            if ends.len() == 1 {
                end = bounds.high;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < bounds.low {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", bounds.low));
    }
    if end > bounds.high {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", bounds.high));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

/// Whether a time zone has that name.
pub(super) fn is_zone(name: &str) -> bool {
    ["", "UTC", "Local"].contains(&name) || include_str!("zones.txt").lines().any(|zone| zone == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_that_are_fine_and_schedules_that_are_not() {
        for (text, error) in [
            ("*/5 * * * *", ""),
            ("0 0 1 jan MON-fri", ""),
            ("@daily", ""),
            ("@every 1h30m", ""),
            ("x", "expected exactly 5 fields, found 1: [x]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
            ("@foo", "unrecognized descriptor: @foo"),
        ] {
            assert_eq!(schedule(text).err().unwrap_or_default(), error, "{text}");
        }
    }
}
