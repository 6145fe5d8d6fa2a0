//! What a plain scalar would be read as, and the order of keys.

/// Whether the text, written plainly, would be read back as this string.
pub(super) fn reads_as_string(text: &str) -> bool {
    !special(text) && !number_like(text) && !base60(text)
}

/// Words that YAML 1.1 takes for booleans, nulls and floats.
fn special(text: &str) -> bool {
    const WORDS: [&str; 39] = [
        "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "n", "N", "no", "No", "NO",
        "false", "False", "FALSE", "off", "Off", "OFF", "", "~", "null", "Null", "NULL", ".nan", ".NaN",
        ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF",
    ];
    WORDS.contains(&text)
}

fn number_like(text: &str) -> bool {
    match text.as_bytes().first() {
        Some(b'.') => go_float(text),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let plain = text.replace('_', "");
            timestamp(text) || integer(&plain) || yaml_float(&plain)
        }
        _ => false,
    }
}

/// Go's `strconv.ParseFloat` on what starts with a point; underscores may stand between digits.
fn go_float(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let separated = |at: usize| at > 0 && digit(at - 1) && digit(at + 1);
    let fine = bytes.iter().enumerate().all(|(at, b)| match b {
        b'_' => separated(at),
        b => b.is_ascii_digit() || b".eE+-".contains(b),
    });
    fine && text.replace('_', "").parse::<f64>().is_ok_and(f64::is_finite)
}

/// Go's `strconv.ParseInt` or `ParseUint` with base 0.
fn integer(text: &str) -> bool {
    let signed = text.starts_with(['+', '-']);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = match lower.get(..2) {
        Some("0x") => (&lower[2..], 16),
        Some("0b") => (&lower[2..], 2),
        Some("0o") => (&lower[2..], 8),
        Some(_) if lower.starts_with('0') => (&lower[1..], 8),
        _ => (lower.as_str(), 10),
    };
    if digits.is_empty() || !digits.bytes().all(|b| char::from(b).is_digit(radix)) {
        return false;
    }
    match u64::from_str_radix(digits, radix) {
        Ok(_) if !signed => true,
        Ok(value) => value <= i64::MAX as u64 + u64::from(text.starts_with('-')),
        Err(_) => false,
    }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn yaml_float(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let whole = body.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = &body[whole..];
    if let Some(after) = rest.strip_prefix('.') {
        let places = after.bytes().take_while(u8::is_ascii_digit).count();
        if whole == 0 && places == 0 {
            return false;
        }
        rest = &after[places..];
    } else if whole == 0 {
        return false;
    }
    if let Some(after) = rest.strip_prefix(['e', 'E']) {
        let digits = after.strip_prefix(['+', '-']).unwrap_or(after);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return false;
        }
        rest = "";
    }
    rest.is_empty() && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`
fn base60(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = body.split(':');
    let first = parts.next().unwrap_or_default();
    if !first.starts_with(|c: char| c.is_ascii_digit())
        || !first.bytes().all(|b| b.is_ascii_digit() || b == b'_')
    {
        return false;
    }
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    let sixty = |part: &&str| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    middle.iter().all(sixty) && sixty(&last) && fraction.bytes().all(|b| b.is_ascii_digit() || b == b'_')
}

/// Dates as YAML 1.1 knows them, with one or two digits a part.
fn timestamp(text: &str) -> bool {
    let Some((year, rest)) = text.split_once('-') else { return false };
    if year.len() != 4 || !year.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    let (date, time) = match rest.find(['T', 't', ' ']) {
        Some(at) => (&rest[..at], Some((&rest[at..=at], &rest[at + 1..]))),
        None => (rest, None),
    };
    let Some((month, day)) = date.split_once('-') else { return false };
    let (Some(month), Some(day)) = (part(month), part(day)) else { return false };
    let year: u32 = year.parse().unwrap_or(0);
    if !(1..=12).contains(&month) || day < 1 || day > days(year, month) {
        return false;
    }
    time.is_none_or(|(separator, time)| clock(time, separator != " "))
}

fn part(text: &str) -> Option<u32> {
    let fine = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if fine { text.parse().ok() } else { None }
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn clock(text: &str, zoned: bool) -> bool {
    let time = if zoned {
        if let Some(time) = text.strip_suffix('Z') {
            time
        } else {
            let Some(at) = text.rfind(['+', '-']) else { return false };
            let zone = text[at + 1..].split_once(':');
            let two = |digits: &str| digits.len() == 2 && part(digits).is_some_and(|n| n < 60);
            if !zone.is_some_and(|(hours, minutes)| two(hours) && two(minutes) && part(hours) <= Some(24)) {
                return false;
            }
            &text[..at]
        }
    } else {
        text
    };
    let mut parts = time.splitn(3, ':');
    let hour = parts.next().and_then(part);
    let minute = parts.next().and_then(part);
    let seconds = parts.next().unwrap_or_default();
    let (whole, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, "0"));
    hour.is_some_and(|h| h < 24)
        && minute.is_some_and(|m| m < 60)
        && part(whole).is_some_and(|s| s < 60)
        && !fraction.is_empty()
        && fraction.bytes().all(|b| b.is_ascii_digit())
}

/// Entries in goyaml's order of keys: letters after everything else, runs of digits by their number.
/// That relation is not always transitive, which the sorting of the standard library would not forgive.
pub(super) fn sorted<T>(entries: Vec<(String, T)>) -> Vec<(String, T)> {
    let mut runs: Vec<Vec<(String, T)>> = entries.into_iter().map(|entry| vec![entry]).collect();
    while runs.len() > 1 {
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        let mut pairs = runs.into_iter();
        while let Some(left) = pairs.next() {
            merged.push(match pairs.next() {
                Some(right) => merge(left, right),
                None => left,
            });
        }
        runs = merged;
    }
    runs.pop().unwrap_or_default()
}

fn merge<T>(left: Vec<(String, T)>, right: Vec<(String, T)>) -> Vec<(String, T)> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let take_right = less(&b.0, &a.0);
        out.extend(if take_right { right.next() } else { left.next() });
    }
    out.extend(left);
    out.extend(right);
    out
}

fn less(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = a.iter().zip(&b).position(|(x, y)| x != y) else { return a.len() < b.len() };
    let (x, y) = (a[at], b[at]);
    let (letter_x, letter_y) = (x.is_alphabetic(), y.is_alphabetic());
    if letter_x && letter_y {
        return x < y;
    }
    if letter_x || letter_y {
        return letter_y;
    }
    let mut start = 0i64;
    if x == '0' || y == '0' {
        let run = a[..at].iter().rev().take_while(|c| c.is_numeric());
        start = i64::from(run.into_iter().any(|c| *c != '0'));
    }
    let number = |chars: &[char]| {
        let digits: Vec<i64> = chars[at..].iter().map_while(|c| c.to_digit(10)).map(i64::from).collect();
        let value = digits.iter().fold(start, |n, digit| n.wrapping_mul(10).wrapping_add(*digit));
        (value, digits.len())
    };
    let (number_x, number_y) = (number(&a), number(&b));
    if number_x == number_y { x < y } else { number_x < number_y }
}
