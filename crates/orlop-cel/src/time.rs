//! Durations and timestamps: reading, writing and the calendar, without a clock.

/// A point in time: seconds since 1970 and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
}

/// A day and time of day.
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: i64,
    /// 1 to 31.
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) millisecond: i64,
    /// 0 is Sunday.
    pub(crate) weekday: i64,
    /// 0 is the first of January.
    pub(crate) year_day: i64,
}

const SECONDS_MIN: i64 = -62_135_596_800;
const SECONDS_MAX: i64 = 253_402_300_799;
const NANOS: i128 = 1_000_000_000;

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

impl Timestamp {
    /// A timestamp if it lies in the years 1 to 9999.
    pub(crate) fn new(seconds: i64, nanos: u32) -> Option<Self> {
        (SECONDS_MIN..=SECONDS_MAX).contains(&seconds).then_some(Self { seconds, nanos })
    }

    fn total(self) -> i128 {
        i128::from(self.seconds) * NANOS + i128::from(self.nanos)
    }

    pub(crate) fn plus(self, nanos: i128) -> Option<Self> {
        let total = self.total() + nanos;
        Self::new(i64::try_from(total.div_euclid(NANOS)).ok()?, total.rem_euclid(NANOS) as u32)
    }

    pub(crate) fn since(self, other: Self) -> Option<i64> {
        i64::try_from(self.total() - other.total()).ok()
    }

    /// The calendar in a zone: nothing, `UTC`, or `+05:30`.
    pub(crate) fn civil(self, zone: &str) -> Option<Civil> {
        let local = self.seconds + zone_offset(zone)?;
        let days = local.div_euclid(86_400);
        let of_day = local.rem_euclid(86_400);
        let (year, month, day) = civil_from_days(days);
        Some(Civil {
            year,
            month,
            day,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            millisecond: i64::from(self.nanos / 1_000_000),
            weekday: (days + 4).rem_euclid(7),
            year_day: days - days_from_civil(year, 1, 1),
        })
    }

    /// RFC 3339 with as many digits as needed.
    pub(crate) fn write(self) -> String {
        let Some(c) = self.civil("") else { return String::new() };
        let fraction = fraction(self.nanos);
        format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{fraction}Z",
            c.year, c.month, c.day, c.hour, c.minute, c.second
        )
    }
}

fn fraction(nanos: u32) -> String {
    if nanos == 0 { String::new() } else { format!(".{nanos:09}").trim_end_matches('0').to_owned() }
}

fn zone_offset(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "UTC" | "Etc/UTC" | "GMT" | "Z") {
        return Some(0);
    }
    let (sign, rest) = match zone.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, zone.strip_prefix('+').unwrap_or(zone)),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    Some(sign * (hours.min(1000) * 3600 + minutes.min(1000) * 60))
}

/// Reads RFC 3339, or a plain date.
pub(crate) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let at = |index: usize, expected: &[u8]| bytes.get(index).is_some_and(|b| expected.contains(b));
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !at(4, b"-")
        || !at(7, b"-")
        || !(1..=12).contains(&month)
        || !(1..=days).contains(&day)
        || !at(10, b"T")
    {
        return None;
    }
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !at(13, b":") || !at(16, b":") || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let rest = text.get(19..)?;
    let (nanos, zone) = match rest.strip_prefix(['.', ',']) {
        None => (0, rest),
        Some(tail) => {
            let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
            let digits: String = tail[..end].chars().chain("000000000".chars()).take(9).collect();
            if end == 0 {
                return None;
            }
            (digits.parse().ok()?, &tail[end..])
        }
    };
    let offset = match zone {
        "Z" => 0,
        _ if zone.len() == 6 && zone.starts_with(['+', '-']) && zone.as_bytes()[3] == b':' => {
            zone_offset(zone)?
        }
        _ => return None,
    };
    Timestamp::new(
        days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset,
        nanos,
    )
}

/// Reads a date such as `2024-01-31`.
pub(crate) fn parse_date(text: &str) -> Option<Timestamp> {
    parse_timestamp(&format!("{text}T00:00:00Z"))
}

/// Reads a duration as Go writes it: `1h30m`, `-1.5s`, `100ms`, `0`.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let whole = &rest[..digits];
        rest = &rest[digits..];
        let mut part = "";
        if let Some(tail) = rest.strip_prefix('.') {
            let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
            part = &tail[..digits];
            rest = &tail[digits..];
        }
        if whole.is_empty() && part.is_empty() {
            return None;
        }
        let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
        let unit: i128 = match &rest[..end] {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => NANOS,
            "m" => 60 * NANOS,
            "h" => 3600 * NANOS,
            _ => return None,
        };
        rest = &rest[end..];
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()?.into() };
        total += whole * unit;
        let part: String = part.chars().take(18).collect();
        if !part.is_empty() {
            total += part.parse::<i128>().ok()? * unit / 10_i128.pow(part.len() as u32);
        }
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// Seconds with `s`, as CEL writes durations.
pub(crate) fn write_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let whole = nanos.unsigned_abs();
    format!("{sign}{}{}s", whole / 1_000_000_000, fraction((whole % 1_000_000_000) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_read_and_written() {
        let table = [
            ("2024-01-01T00:00:00Z", Some("2024-01-01T00:00:00Z")),
            ("2024-02-29T23:59:59.120Z", Some("2024-02-29T23:59:59.12Z")),
            ("2024-01-01T02:00:00+02:00", Some("2024-01-01T00:00:00Z")),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            ("2023-02-29T00:00:00Z", None),
            ("2024-01-01", None),
            ("2024-01-01T24:00:00Z", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_timestamp(text).map(Timestamp::write).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn durations_are_read_and_written() {
        let table = [
            ("1h30m", Some("5400s")),
            ("-1.5s", Some("-1.5s")),
            ("100ms", Some("0.1s")),
            ("0", Some("0s")),
            ("1d", None),
            ("", None),
            ("300000h", Some("1080000000s")),
            ("99999999h", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_duration(text).map(write_duration).as_deref(), expected, "{text}");
        }
    }
}
