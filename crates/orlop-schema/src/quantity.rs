//! Quantities such as `100m`, `1.5Gi` and `12e6`: parsing, comparing, adding and the canonical spelling.
//!
//! A quantity is a decimal number `unscaled × 10^scale` and the family of suffixes it was written with.
//! Like Kubernetes, a spelling that is already canonical enough is kept as it was written, anything finer
//! than a billionth is rounded up, and binary quantities are capped at the largest signed 64-bit number.
//! Numbers with more than 38 significant digits are rounded up to 38.

use std::cmp::Ordering;
use std::fmt;

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text does not have the shape of a quantity.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number before the suffix cannot be read.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The family of suffixes a quantity is printed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
    /// `12M`
    DecimalSi,
}

/// A fixed-point number with a suffix family.
#[derive(Clone, Debug)]
pub struct Quantity {
    unscaled: i128,
    scale: i32,
    format: Format,
    spelling: Option<String>,
}

/// The smallest unit: a billionth.
const NANO: i32 = -9;
/// Digits that the quick form of a decimal quantity can hold.
const QUICK_DIGITS: usize = 18;
/// Significant digits that are kept of any number.
const DIGITS_MAX: usize = 38;
/// Digits after the point that are kept of a binary quantity.
const FRACTION_MAX: usize = 20;
const BINARY_MAX: i128 = i64::MAX as i128;

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

impl Quantity {
    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let parts = Parts::split(text)?;
        let suffix = Suffix::read(parts.suffix)?;
        let kept = || Some(text.to_owned());
        let sign = if parts.negative { -1 } else { 1 };
        let digits = parts.whole.len() + parts.fraction.len();
        match suffix {
            Suffix::Decimal(exponent, format) => {
                let scale = exponent.wrapping_sub(parts.fraction.len() as i32);
                if digits <= QUICK_DIGITS && scale >= NANO {
                    let unscaled = parts.number()?;
                    let spelling =
                        if scale % 3 == 0 && !parts.ends_in_thousands() && !parts.whole.starts_with('0') {
                            kept()
                        } else {
                            None
                        };
                    return Ok(Self { unscaled: sign * unscaled, scale, format, spelling });
                }
                parts.must_have_digits()?;
                let (unscaled, dropped) = parts.significant();
                let mut quantity =
                    Self { unscaled, scale: scale.saturating_add(dropped), format, spelling: None };
                quantity.round(NANO);
                quantity.unscaled *= sign;
                Ok(quantity)
            }
            Suffix::Binary(bits) => {
                let quick = 14 - parts.whole.len() as i64 - i64::from(bits) * 3 / 10;
                if parts.fraction.is_empty() && quick >= 0 {
                    let number = parts.number()?;
                    let spelling = if number.trailing_zeros() >= 3 { None } else { kept() };
                    let unscaled = sign * (number << bits);
                    return Ok(Self { unscaled, scale: 0, format: Format::BinarySi, spelling });
                }
                parts.must_have_digits()?;
                let mut quantity = parts.binary(bits);
                quantity.unscaled *= sign;
                Ok(quantity)
            }
        }
    }

    /// A whole number printed in the given family.
    pub fn whole(value: i64, format: Format) -> Self {
        Self { unscaled: i128::from(value), scale: 0, format, spelling: None }
    }

    /// The suffix family.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether the number is zero.
    pub fn is_zero(&self) -> bool {
        self.unscaled == 0
    }

    /// −1, 0 or 1.
    pub fn sign(&self) -> i32 {
        self.unscaled.signum() as i32
    }

    /// The number rounded away from zero to an integer, saturating.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// A thousand times the number, rounded away from zero to an integer, saturating.
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(-3)
    }

    /// The number in units of `10^scale`, rounded away from zero, saturating.
    pub fn scaled_value(&self, scale: i32) -> i64 {
        let shift = i64::from(self.scale) - i64::from(scale);
        let value =
            if shift < 0 {
                divide_away(self.unscaled, -shift)
            } else {
                pow10(shift)
                    .and_then(|power| self.unscaled.checked_mul(power))
                    .unwrap_or(if self.unscaled == 0 { 0 } else { self.unscaled.signum() * i128::MAX })
            };
        i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
    }

    /// Rounds away from zero to whole units of `10^scale`; says whether nothing was lost.
    pub fn round_up(&mut self, scale: i32) -> bool {
        if self.scale >= scale {
            return true;
        }
        self.spelling = None;
        self.round(scale)
    }

    /// The sum; zero takes the suffix family of what is added to it.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        let (a, b, scale) = align(self, other);
        Self { unscaled: a.saturating_add(b), scale, format, spelling: None }
    }

    /// The difference; zero takes the suffix family of what is taken from it.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&other.negated())
    }

    /// The number with the other sign.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self { unscaled: -self.unscaled, scale: self.scale, format: self.format, spelling: None }
    }

    /// The number as a float, for ratios only.
    pub fn approximate(&self) -> f64 {
        self.unscaled as f64 * 10f64.powi(self.scale)
    }

    fn round(&mut self, scale: i32) -> bool {
        if self.scale >= scale {
            return true;
        }
        let shift = i64::from(scale) - i64::from(self.scale);
        let before = self.unscaled;
        self.unscaled = divide_away(before, shift);
        self.scale = scale;
        pow10(shift).and_then(|power| self.unscaled.checked_mul(power)) == Some(before)
    }

    fn canonical(&self) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        if self.format == Format::BinarySi
            && let Some(mut number) = self.exact_integer()
            && !(-1024 < number && number < 1024)
        {
            let mut times = 0;
            while number % 1024 == 0 && times < BINARY_SUFFIXES.len() {
                number /= 1024;
                times += 1;
            }
            let suffix = if times == 0 { "" } else { BINARY_SUFFIXES[times - 1].0 };
            return format!("{number}{suffix}");
        }
        let (mut number, mut exponent) = (self.unscaled, i64::from(self.scale));
        while number % 10 == 0 {
            number /= 10;
            exponent += 1;
        }
        let zeros = exponent.rem_euclid(3);
        exponent -= zeros;
        let zeros = &"00"[..zeros as usize];
        if self.format == Format::DecimalExponent {
            return if exponent == 0 {
                format!("{number}{zeros}")
            } else {
                format!("{number}{zeros}e{exponent}")
            };
        }
        let suffix = DECIMAL_SUFFIXES.iter().find(|(_, e)| i64::from(*e) == exponent).map_or("", |s| s.0);
        format!("{number}{zeros}{suffix}")
    }

    fn exact_integer(&self) -> Option<i128> {
        if self.scale >= 0 {
            return pow10(i64::from(self.scale)).and_then(|power| self.unscaled.checked_mul(power));
        }
        let power = pow10(-i64::from(self.scale))?;
        (self.unscaled % power == 0).then(|| self.unscaled / power)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.spelling {
            Some(text) => f.write_str(text),
            None => f.write_str(&self.canonical()),
        }
    }
}

impl std::str::FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// Quantities compare as numbers: `1` equals `1000m`.
impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.unscaled, other.unscaled);
        if a.signum() != b.signum() || a == 0 {
            return a.signum().cmp(&b.signum());
        }
        let magnitude = |q: &Self| i64::from(q.unscaled.unsigned_abs().ilog10()) + i64::from(q.scale);
        let by_magnitude = magnitude(self).cmp(&magnitude(other));
        let by_size = by_magnitude.then_with(|| {
            let shift = i64::from(self.scale) - i64::from(other.scale);
            let lift = |n: i128, by: i64| pow10(by).and_then(|p| n.abs().checked_mul(p)).unwrap_or(i128::MAX);
            if shift >= 0 { lift(a, shift).cmp(&b.abs()) } else { a.abs().cmp(&lift(b, -shift)) }
        });
        if a < 0 { by_size.reverse() } else { by_size }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

fn pow10(exponent: i64) -> Option<i128> {
    10i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// `number / 10^shift`, away from zero.
fn divide_away(number: i128, shift: i64) -> i128 {
    match pow10(shift) {
        Some(power) if number % power == 0 => number / power,
        Some(power) => number / power + number.signum(),
        None => number.signum(),
    }
}

/// Both numbers in the finer of their scales, as far as that fits.
fn align(a: &Quantity, b: &Quantity) -> (i128, i128, i32) {
    let scale = a.scale.min(b.scale);
    let lift = |q: &Quantity| {
        let by = i64::from(q.scale) - i64::from(scale);
        if q.unscaled == 0 {
            return 0;
        }
        pow10(by).map_or(q.unscaled.signum() * i128::MAX, |power| q.unscaled.saturating_mul(power))
    };
    (lift(a), lift(b), scale)
}

/// A quantity cut into its parts; leading zeros of the whole part are gone.
struct Parts<'a> {
    negative: bool,
    /// Whether there is any digit before the suffix; `m` alone is zero milli.
    digits: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, QuantityError> {
        let (negative, rest) = match text.as_bytes() {
            [b'-', ..] => (true, &text[1..]),
            [b'+', ..] => (false, &text[1..]),
            _ => (false, text),
        };
        let signless = rest;
        let rest = rest.trim_start_matches('0');
        let (whole, rest) = leading(rest, |c| c.is_ascii_digit());
        let whole = if whole.is_empty() { "0" } else { whole };
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => leading(rest, |c| c.is_ascii_digit()),
            None => ("", rest),
        };
        let (_, exponent) = leading(suffix, |c| "eEinumkKMGTP".contains(c));
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if exponent.chars().all(|c| c.is_ascii_digit()) {
            let number = &signless[..signless.len() - suffix.len()];
            let digits = number.contains(|c: char| c.is_ascii_digit());
            Ok(Self { negative, digits, whole, fraction, suffix })
        } else {
            Err(QuantityError::Format)
        }
    }

    fn must_have_digits(&self) -> Result<(), QuantityError> {
        if self.digits { Ok(()) } else { Err(QuantityError::Numeric) }
    }

    fn number(&self) -> Result<i128, QuantityError> {
        let mut number = 0i128;
        for digit in self.whole.bytes().chain(self.fraction.bytes()) {
            number = number
                .checked_mul(10)
                .and_then(|n| n.checked_add(i128::from(digit - b'0')))
                .ok_or(QuantityError::Numeric)?;
        }
        Ok(number)
    }

    /// The digits as a number, and how many trailing digits did not fit and were rounded up.
    fn significant(&self) -> (i128, i32) {
        let digits = self.whole.bytes().chain(self.fraction.bytes()).skip_while(|d| *d == b'0');
        let (mut number, mut kept, mut dropped, mut inexact) = (0i128, 0, 0, false);
        for digit in digits {
            if kept < DIGITS_MAX {
                number = number * 10 + i128::from(digit - b'0');
                kept += 1;
            } else {
                dropped += 1;
                inexact |= digit != b'0';
            }
        }
        (number + i128::from(inexact), dropped)
    }

    /// The number times `2^bits`, rounded up to nanos and capped; without the sign.
    fn binary(&self, bits: u32) -> Quantity {
        let capped = Quantity { unscaled: BINARY_MAX, scale: 0, format: Format::BinarySi, spelling: None };
        let whole = Self { fraction: "", ..*self }.number().ok().and_then(|n| n.checked_mul(1 << bits));
        let Some(whole) = whole.filter(|n| *n <= BINARY_MAX) else { return capped };
        let (head, tail) = self.fraction.split_at(self.fraction.len().min(FRACTION_MAX));
        let fraction = Self { whole: "0", fraction: head, ..*self }.number().unwrap_or_default()
            + i128::from(tail.bytes().any(|d| d != b'0'));
        // Below one only nanos count, so whole and fraction fit together.
        let nanos = match head.len() as i64 + i64::from(NANO) {
            shift @ 0.. => divide_away(fraction << bits, shift),
            shift => (fraction << bits) * pow10(-shift).unwrap_or(1),
        };
        let mut quantity = Quantity {
            unscaled: whole * 1_000_000_000 + nanos,
            scale: NANO,
            format: Format::BinarySi,
            spelling: None,
        };
        if quantity > capped {
            return capped;
        }
        if !quantity.is_zero() && quantity < Quantity::whole(1, Format::BinarySi) {
            quantity.format = Format::DecimalSi;
        }
        quantity
    }

    fn ends_in_thousands(&self) -> bool {
        let all = [self.whole, self.fraction].concat();
        all.ends_with("000")
    }
}

enum Suffix {
    Decimal(i32, Format),
    Binary(u32),
}

impl Suffix {
    fn read(text: &str) -> Result<Self, QuantityError> {
        if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == text) {
            return Ok(Self::Decimal(*exponent, Format::DecimalSi));
        }
        if let Some((_, bits)) = BINARY_SUFFIXES.iter().find(|(name, _)| *name == text) {
            return Ok(Self::Binary(*bits));
        }
        let exponent = text.strip_prefix(['e', 'E']).and_then(|digits| digits.parse::<i64>().ok());
        exponent
            .map(|exponent| Self::Decimal(exponent as i32, Format::DecimalExponent))
            .ok_or(QuantityError::Suffix)
    }
}

fn leading(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_print_as_in_kubernetes() {
        for (text, printed) in [
            ("0", "0"),
            ("00", "0"),
            ("-0", "0"),
            ("0Ki", "0"),
            ("1", "1"),
            ("+1", "+1"),
            ("010", "010"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1.500", "1.500"),
            ("0.500", "500m"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("12345", "12345"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1Ki", "1Ki"),
            ("1024Ki", "1Mi"),
            ("1025Ki", "1025Ki"),
            ("8Gi", "8Gi"),
            ("1.1Ki", "1126400m"),
            ("100Ei", "9223372036854775807"),
            ("0.0001Ki", "102400u"),
            ("1e3", "1e3"),
            ("1000e3", "1e6"),
            ("1e2", "100"),
            ("1E", "1E"),
            ("1e-1", "100e-3"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            ("0.0000000001", "1n"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("1000E", "1"),
            ("1.", "1."),
            (".5", "500m"),
            ("m", "0"),
            ("-5m", "-5m"),
            ("-5000m", "-5"),
        ] {
            assert_eq!(Quantity::parse(text).map(|q| q.to_string()), Ok(printed.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused_in_the_words_of_kubernetes() {
        for (text, error) in [
            ("", QuantityError::Format),
            ("abc", QuantityError::Format),
            ("1x", QuantityError::Format),
            ("1 Gi", QuantityError::Format),
            ("1e3.5", QuantityError::Format),
            ("1mm", QuantityError::Suffix),
            ("1e", QuantityError::Suffix),
            ("1ki", QuantityError::Suffix),
            ("1Zi", QuantityError::Format),
            ("Pi", QuantityError::Numeric),
            ("+e-10", QuantityError::Numeric),
        ] {
            assert_eq!(Quantity::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn quantities_compare_add_and_round_as_numbers() {
        let q = |text: &str| Quantity::parse(text).expect("valid");
        for (a, order, b) in [
            ("1", Ordering::Equal, "1000m"),
            ("1Ki", Ordering::Equal, "1024"),
            ("1Ki", Ordering::Greater, "1k"),
            ("-2", Ordering::Less, "-1"),
            ("-1", Ordering::Less, "0"),
            ("1e30", Ordering::Greater, "1n"),
            ("999999999999999999999999n", Ordering::Less, "1e15"),
            ("0.1", Ordering::Less, "101m"),
        ] {
            assert_eq!(q(a).cmp(&q(b)), order, "{a} {b}");
        }
        for (a, b, sum) in [("1", "500m", "1500m"), ("0", "1Gi", "1Gi"), ("1Gi", "1Mi", "1025Mi")] {
            assert_eq!(q(a).plus(&q(b)).to_string(), sum);
        }
        assert_eq!(q("1Gi").minus(&q("1Mi")).to_string(), "1023Mi");
        for (text, value, milli) in [
            ("1500m", 2, 1500),
            ("-1500m", -2, -1500),
            ("1n", 1, 1),
            ("1Ki", 1024, 1_024_000),
            ("1e30", i64::MAX, i64::MAX),
            ("0", 0, 0),
        ] {
            assert_eq!((q(text).value(), q(text).milli_value()), (value, milli), "{text}");
        }
        let mut fine = q("1500u");
        assert!(!fine.round_up(-3));
        assert_eq!(fine.to_string(), "2m");
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[-+]?[0-9.]{0,45}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,12}") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let (printed, one) = (quantity.to_string(), Quantity::whole(1, Format::DecimalSi));
                let _ = (printed, quantity.value(), quantity.cmp(&one), quantity.plus(&one).to_string());
            }
        }
    }
}
