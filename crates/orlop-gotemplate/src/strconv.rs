//! Floats as digits: what Go's `strconv.AppendFloat` writes.

/// How a float is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `%e`
    Exponent,
    /// `%f`
    Fixed,
    /// `%g`
    Shortest,
    /// `%b`
    Binary,
    /// `%x`
    Hex,
}

/// Appends a float; no precision asks for the fewest digits that read back as the same number.
pub(crate) fn push_float(
    out: &mut Vec<u8>,
    value: f64,
    layout: Layout,
    precision: Option<usize>,
    single: bool,
) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
        return;
    }
    if value.is_infinite() {
        out.extend_from_slice(if value < 0.0 { b"-Inf" } else { b"+Inf" });
        return;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let value = value.abs();
    match layout {
        Layout::Binary => push_binary(out, value, single),
        Layout::Hex => push_hex(out, value, precision),
        Layout::Exponent => {
            push_exponent(out, &Digits::new(value, precision.map(|p| p + 1), single), precision);
        }
        Layout::Fixed => match precision {
            Some(places) => out.extend_from_slice(format!("{value:.places$}").as_bytes()),
            None => push_fixed(out, &Digits::new(value, None, single), None),
        },
        Layout::Shortest => push_general(out, value, precision, single),
    }
}

/// Significant digits and where the decimal point is, counted from the first digit.
struct Digits {
    digits: Vec<u8>,
    point: i32,
}

impl Digits {
    /// The digits of a positive number: as many as asked for, or as few as needed.
    fn new(value: f64, count: Option<usize>, single: bool) -> Self {
        let text = match count {
            Some(count) => format!("{value:.*e}", count.max(1) - 1),
            None if single => format!("{:e}", value as f32),
            None => format!("{value:e}"),
        };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits: Vec<u8> = mantissa.bytes().filter(|b| *b != b'.').collect();
        let exponent: i32 = exponent.parse().unwrap_or(0);
        if value == 0.0 && count.is_none() {
            return Self { digits: Vec::new(), point: 0 };
        }
        Self { digits, point: if value == 0.0 { 0 } else { exponent + 1 } }
    }

    fn digit(&self, at: i32) -> u8 {
        usize::try_from(at).ok().and_then(|at| self.digits.get(at)).copied().unwrap_or(b'0')
    }

    fn without_trailing_zeros(mut self) -> Self {
        while self.digits.last() == Some(&b'0') {
            self.digits.pop();
        }
        self
    }
}

fn push_general(out: &mut Vec<u8>, value: f64, precision: Option<usize>, single: bool) {
    let wanted = precision.map(|p| p.max(1));
    // Rounded digits are counted without the zeros at their end, as the decimal behind them has none.
    let digits = Digits::new(value, wanted, single).without_trailing_zeros();
    let count = digits.digits.len();
    let point = if count == 0 { 0 } else { digits.point };
    let limit = match wanted {
        None => 6,
        Some(p) => {
            let exact = i32::try_from(count).unwrap_or(i32::MAX);
            let p = i32::try_from(p).unwrap_or(i32::MAX);
            if p > exact && exact >= point { exact } else { p }
        }
    };
    let exponent = point - 1;
    if exponent < -4 || exponent >= limit {
        push_exponent(out, &digits, Some(count.saturating_sub(1)));
    } else {
        let places = i32::try_from(count).unwrap_or(i32::MAX) - point;
        push_fixed(out, &digits, Some(usize::try_from(places).unwrap_or(0)));
    }
}

fn push_exponent(out: &mut Vec<u8>, digits: &Digits, precision: Option<usize>) {
    out.push(digits.digit(0));
    let places = precision.unwrap_or_else(|| digits.digits.len().saturating_sub(1));
    if places > 0 {
        out.push(b'.');
        for at in 1..=places {
            out.push(digits.digits.get(at).copied().unwrap_or(b'0'));
        }
    }
    let zero = digits.digits.iter().all(|d| *d == b'0');
    let exponent = if zero { 0 } else { digits.point - 1 };
    out.push(b'e');
    push_power(out, exponent, 2);
}

fn push_fixed(out: &mut Vec<u8>, digits: &Digits, places: Option<usize>) {
    if digits.point > 0 {
        (0..digits.point).for_each(|at| out.push(digits.digit(at)));
    } else {
        out.push(b'0');
    }
    let count = i32::try_from(digits.digits.len()).unwrap_or(i32::MAX);
    let places = places.unwrap_or_else(|| usize::try_from(count - digits.point).unwrap_or(0));
    if places > 0 {
        out.push(b'.');
        for place in 0..i32::try_from(places).unwrap_or(i32::MAX) {
            out.push(digits.digit(digits.point + place));
        }
    }
}

/// A signed power with at least that many digits.
fn push_power(out: &mut Vec<u8>, power: i32, digits: usize) {
    out.push(if power < 0 { b'-' } else { b'+' });
    out.extend_from_slice(format!("{:0digits$}", power.unsigned_abs()).as_bytes());
}

fn push_binary(out: &mut Vec<u8>, value: f64, single: bool) {
    let (mantissa, power) = if single {
        let bits = (value as f32).to_bits();
        let exponent = (bits >> 23 & 0xFF) as i32;
        let fraction = u64::from(bits & 0x7F_FFFF);
        if exponent == 0 { (fraction, -149) } else { (fraction | 1 << 23, exponent - 150) }
    } else {
        let bits = value.to_bits();
        let exponent = (bits >> 52 & 0x7FF) as i32;
        let fraction = bits & ((1 << 52) - 1);
        if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
    };
    out.extend_from_slice(mantissa.to_string().as_bytes());
    out.push(b'p');
    push_power(out, power, 1);
}

/// `0x1.8p+01`
fn push_hex(out: &mut Vec<u8>, value: f64, precision: Option<usize>) {
    let bits = value.to_bits();
    let (mut exponent, mut mantissa) = ((bits >> 52 & 0x7FF) as i32 - 1023, bits & ((1 << 52) - 1));
    if exponent == -1023 {
        exponent = -1022;
    } else {
        mantissa |= 1 << 52;
    }
    if mantissa == 0 {
        exponent = 0;
    }
    // One leading digit before 60 bits of fraction.
    mantissa <<= 8;
    while mantissa != 0 && mantissa & 1 << 60 == 0 {
        mantissa <<= 1;
        exponent -= 1;
    }
    if let Some(digits) = precision.filter(|p| *p < 15) {
        let shift = (digits * 4) as u32;
        let extra = (mantissa << shift) & ((1 << 60) - 1);
        mantissa >>= 60 - shift;
        if extra | (mantissa & 1) > 1 << 59 {
            mantissa += 1;
        }
        mantissa <<= 60 - shift;
        if mantissa & 1 << 61 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    out.extend_from_slice(b"0x");
    out.push(b'0' + (mantissa >> 60 & 1) as u8);
    mantissa <<= 4;
    let mut places = precision.unwrap_or(usize::MAX);
    if precision.is_none() && mantissa == 0 {
        places = 0;
    }
    if places > 0 {
        out.push(b'.');
        while places > 0 && (precision.is_some() || mantissa != 0) {
            out.push(b"0123456789abcdef"[(mantissa >> 60) as usize]);
            mantissa <<= 4;
            places -= 1;
        }
    }
    out.push(b'p');
    push_power(out, exponent, 2);
}
