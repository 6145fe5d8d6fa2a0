//! Times as `metav1.Time` and `metav1.MicroTime` read and print them, with the errors of Go's `time.Parse`.

use orlop_schema::field::go_quote;

/// A layout of Go's time package, with or without a fraction that must be there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Seconds,
    Micros,
}

impl Layout {
    fn text(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// The time in UTC as Kubernetes prints it; `None` for the zero time, which prints as null.
pub(super) fn canonical(text: &str, layout: Layout) -> Result<Option<String>, String> {
    let (seconds, nanos) = parse(text, layout)?;
    let digits = if layout == Layout::Micros { 6 } else { 0 };
    if seconds == days_from_civil(1, 1, 1) * 86_400 && nanos / 1000 == 0 {
        return Ok(None);
    }
    Ok(Some(printed(seconds, nanos, digits)))
}

/// Seconds since 1970 and nanoseconds of a time that Kubernetes printed.
pub(crate) fn instant(text: &str) -> Option<(i64, i64)> {
    parse(text, Layout::Seconds).ok()
}

/// A time in UTC, with as many digits after the second.
pub(crate) fn printed(seconds: i64, nanos: i64, digits: usize) -> String {
    let (days, clock) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years beyond those of Go's layouts do not occur; they are kept within bounds for the arithmetic.
    let (year, month, day) = civil_from_days(days.clamp(-4_000_000, 4_000_000));
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    let date = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    match digits {
        0 => format!("{date}Z"),
        digits => {
            let fraction = format!("{:09}", nanos.rem_euclid(1_000_000_000));
            format!("{date}.{}Z", &fraction[..digits.min(9)])
        }
    }
}

/// Seconds since 1970 and nanoseconds.
fn parse(text: &str, layout: Layout) -> Result<(i64, i64), String> {
    let mut reader = Reader { whole: text, rest: text, layout };
    let year = reader.digits(4, "2006")?;
    reader.literal("-")?;
    let month = reader.digits(2, "01")?;
    if !(1..=12).contains(&month) {
        return Err(reader.out_of_range("month"));
    }
    reader.literal("-")?;
    let day = reader.digits(2, "02")?;
    reader.literal("T")?;
    let hour = reader.hour()?;
    if hour > 23 {
        return Err(reader.out_of_range("hour"));
    }
    reader.literal(":")?;
    let minute = reader.digits(2, "04")?;
    if minute > 59 {
        return Err(reader.out_of_range("minute"));
    }
    reader.literal(":")?;
    let second = reader.digits(2, "05")?;
    if second > 59 {
        return Err(reader.out_of_range("second"));
    }
    let fraction = reader.fraction()?;
    let offset = reader.zone()?;
    if !reader.rest.is_empty() {
        return Err(format!("parsing time {}: extra text: {}", go_quote(text), go_quote(reader.rest)));
    }
    if day < 1 || day > days_in(year, month) {
        return Err(reader.out_of_range("day"));
    }
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    let nanos = format!("{fraction:0<9}")[..9].parse().unwrap_or_default();
    Ok((seconds, nanos))
}

struct Reader<'a> {
    whole: &'a str,
    rest: &'a str,
    layout: Layout,
}

impl<'a> Reader<'a> {
    fn cannot_parse(&self, element: &str) -> String {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            go_quote(self.whole),
            go_quote(self.layout.text()),
            go_quote(self.rest),
            go_quote(element)
        )
    }

    fn out_of_range(&self, what: &str) -> String {
        format!("parsing time {}: {what} out of range", go_quote(self.whole))
    }

    fn literal(&mut self, text: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(text).ok_or_else(|| self.cannot_parse(text))?;
        Ok(())
    }

    fn digits(&mut self, count: usize, element: &str) -> Result<i64, String> {
        match self.rest.as_bytes().get(..count) {
            Some(digits) if digits.iter().all(u8::is_ascii_digit) => {
                let (digits, rest) = self.rest.split_at(count);
                self.rest = rest;
                Ok(digits.parse().unwrap_or_default())
            }
            _ => Err(self.cannot_parse(element)),
        }
    }

    /// One or two digits: Go is lenient about hours only.
    fn hour(&mut self) -> Result<i64, String> {
        let count = self.rest.bytes().take(2).take_while(u8::is_ascii_digit).count().max(1);
        self.digits(count, "15")
    }

    fn fraction(&mut self) -> Result<&'a str, String> {
        let digits = match self.rest.as_bytes() {
            [b'.' | b',', rest @ ..] => rest.iter().take_while(|b| b.is_ascii_digit()).count(),
            _ => 0,
        };
        let count = match self.layout {
            Layout::Seconds if digits == 0 => return Ok(""),
            Layout::Seconds => digits,
            Layout::Micros if digits < 6 => return Err(self.cannot_parse(".000000")),
            Layout::Micros => 6,
        };
        let fraction = &self.rest[1..=count];
        self.rest = &self.rest[count + 1..];
        Ok(fraction)
    }

    /// The offset from UTC in seconds.
    fn zone(&mut self) -> Result<i64, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let digit = |b: u8| i64::from(b.wrapping_sub(b'0'));
        match *self.rest.as_bytes() {
            [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2, ..]
                if [h1, h2, m1, m2].iter().all(u8::is_ascii_digit) =>
            {
                let (hours, minutes) = (digit(h1) * 10 + digit(h2), digit(m1) * 10 + digit(m2));
                if hours > 24 {
                    return Err(self.out_of_range("time zone offset hour"));
                }
                if minutes > 60 {
                    return Err(self.out_of_range("time zone offset minute"));
                }
                self.rest = &self.rest[6..];
                let offset = hours * 3600 + minutes * 60;
                Ok(if sign == b'-' { -offset } else { offset })
            }
            _ => Err(self.cannot_parse("Z07:00")),
        }
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_in_utc() {
        for (text, layout, printed) in [
            ("2020-01-02T03:04:05Z", Layout::Seconds, Some("2020-01-02T03:04:05Z")),
            ("2020-01-01T00:30:00+01:00", Layout::Seconds, Some("2019-12-31T23:30:00Z")),
            ("2020-02-29T23:59:59.999-00:01", Layout::Seconds, Some("2020-03-01T00:00:59Z")),
            ("0001-01-01T00:00:00Z", Layout::Seconds, None),
            ("2020-01-02T03:04:05.000006Z", Layout::Micros, Some("2020-01-02T03:04:05.000006Z")),
            ("0000-12-31T00:00:00Z", Layout::Seconds, Some("0000-12-31T00:00:00Z")),
        ] {
            assert_eq!(canonical(text, layout), Ok(printed.map(str::to_owned)), "{text}");
        }
    }

    #[test]
    fn errors_read_as_in_go() {
        let seconds = "2006-01-02T15:04:05Z07:00";
        let micros = "2006-01-02T15:04:05.000000Z07:00";
        let cannot = |text: &str, layout: &str, rest: &str, element: &str| {
            format!(r#"parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{element}""#)
        };
        for (text, layout, error) in [
            ("x", Layout::Seconds, cannot("x", seconds, "x", "2006")),
            ("", Layout::Seconds, cannot("", seconds, "", "2006")),
            ("2020", Layout::Seconds, cannot("2020", seconds, "", "-")),
            ("2020-01-02", Layout::Seconds, cannot("2020-01-02", seconds, "", "T")),
            ("2020-01-02T03:04:05", Layout::Seconds, cannot("2020-01-02T03:04:05", seconds, "", "Z07:00")),
            ("2020-01-02T03:04:05Z", Layout::Micros, cannot("2020-01-02T03:04:05Z", micros, "Z", ".000000")),
            ("2020-13-02T", Layout::Seconds, r#"parsing time "2020-13-02T": month out of range"#.to_owned()),
            (
                "2020-02-30T00:00:00Z",
                Layout::Seconds,
                r#"parsing time "2020-02-30T00:00:00Z": day out of range"#.to_owned(),
            ),
            (
                "2020-02-20T00:00:00Zx",
                Layout::Seconds,
                r#"parsing time "2020-02-20T00:00:00Zx": extra text: "x""#.to_owned(),
            ),
        ] {
            assert_eq!(canonical(text, layout), Err(error), "{text}");
        }
    }
}
