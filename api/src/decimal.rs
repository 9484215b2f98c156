//! Decimal numbers of any size, compared by value.

use std::cmp::Ordering;
use std::fmt;

/// A decimal number, exact.
///
/// It has one form: digits without zeros at either end. Zero has no digits and no sign. Therefore numbers are
/// equal if their strings are, and equality and hash can be derived.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Decimal {
    negative: bool,
    // Each 0 to 9, the most significant first.
    digits: Vec<u8>,
    // The value is 0.d₁d₂d₃… times ten to the power of this.
    magnitude: i64,
}

impl Decimal {
    /// Reads `[+-]digits[.digits]`, times ten to the power of `exponent`; `None` for anything else.
    pub(crate) fn parse(text: &str, exponent: i32) -> Option<Self> {
        let (negative, text) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|byte| byte.wrapping_sub(b'0')).collect();
        let is_number = !digits.is_empty() && digits.iter().all(|digit| *digit <= 9);
        is_number.then(|| Self::new(negative, digits, length(whole.as_bytes()) + i64::from(exponent)))
    }

    /// Reads a number of JSON; `None` for anything else, and for an exponent beyond 32 bits.
    pub(crate) fn parse_json(text: &str) -> Option<Self> {
        match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => Self::parse(mantissa, exponent.parse().ok()?),
            None => Self::parse(text, 0),
        }
    }

    fn new(negative: bool, mut digits: Vec<u8>, mut magnitude: i64) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        magnitude -= length(&digits[..zeros]);
        digits.drain(..zeros);
        while digits.last() == Some(&0) {
            digits.pop();
        }
        if digits.is_empty() { Self::default() } else { Self { negative, digits, magnitude } }
    }

    /// This times a small number.
    #[must_use]
    pub(crate) fn times(mut self, factor: u16) -> Self {
        let mut carry = 0_u32;
        for digit in self.digits.iter_mut().rev() {
            let product = u32::from(*digit) * u32::from(factor) + carry;
            *digit = single(product % 10);
            carry = product / 10;
        }
        while carry > 0 {
            self.digits.insert(0, single(carry % 10));
            self.magnitude += 1;
            carry /= 10;
        }
        Self::new(self.negative, self.digits, self.magnitude)
    }

    /// Rounds the number away from zero to at most `places` digits after the point.
    #[must_use]
    pub(crate) fn round_up(mut self, places: i64) -> Self {
        let kept = self.magnitude + places;
        if kept >= length(&self.digits) {
            return self;
        }
        // The digits that are dropped are not all zero, since the last one never is.
        let kept = usize::try_from(kept).unwrap_or_else(|_| {
            self.magnitude = -places;
            0
        });
        self.digits.truncate(kept);
        for digit in self.digits.iter_mut().rev() {
            *digit = (*digit + 1) % 10;
            if *digit != 0 {
                return Self::new(self.negative, self.digits, self.magnitude);
            }
        }
        Self { digits: vec![1], magnitude: self.magnitude + 1, ..self }
    }

    /// Returns this number, or the bound with the same sign if the number is farther from zero.
    #[must_use]
    pub(crate) fn capped(self, bound: u64) -> Self {
        let mut bound = Self::from(bound);
        if self.cmp_magnitude(&bound) != Ordering::Greater {
            return self;
        }
        bound.negative = self.negative;
        bound
    }

    /// Returns the integer part, as far as 64 bits hold it.
    pub(crate) fn to_i64(&self) -> i64 {
        let places = usize::try_from(self.magnitude).unwrap_or(0);
        // 64 bits hold 19 digits and a part of 20.
        let digits = self.digits.iter().copied().chain(std::iter::repeat(0)).take(places.min(20));
        let magnitude = digits.fold(0_i128, |number, digit| number * 10 + i128::from(digit));
        let number = if self.negative { -magnitude } else { magnitude };
        i64::try_from(number).unwrap_or(if self.negative { i64::MIN } else { i64::MAX })
    }

    /// Returns the integer part of this times ten to the power of `places`, as far as 37 digits hold it.
    pub(crate) fn to_scaled(&self, places: i64) -> i128 {
        const DIGITS: usize = 37;
        let places = usize::try_from(self.magnitude.saturating_add(places)).unwrap_or(0);
        let number = if places > DIGITS {
            10_i128.pow(37)
        } else {
            let digits = self.digits.iter().copied().chain(std::iter::repeat(0)).take(places);
            digits.fold(0, |number, digit| number * 10 + i128::from(digit))
        };
        if self.negative { -number } else { number }
    }

    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (false, false) => (self.magnitude, &self.digits).cmp(&(other.magnitude, &other.digits)),
            (is_zero, other_is_zero) => other_is_zero.cmp(&is_zero),
        }
    }
}

impl From<u64> for Decimal {
    fn from(number: u64) -> Self {
        Self::parse(&number.to_string(), 0).expect("digits must be a number")
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
            (negative, other_negative) => other_negative.cmp(&negative),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    /// Digits and an exponent, `-15e-1`; one string for one value, and a number of JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.digits.is_empty() {
            return f.write_str("0");
        }
        if self.negative {
            f.write_str("-")?;
        }
        for digit in &self.digits {
            write!(f, "{digit}")?;
        }
        match self.magnitude - length(&self.digits) {
            0 => Ok(()),
            exponent => write!(f, "e{exponent}"),
        }
    }
}

fn length(digits: &[u8]) -> i64 {
    i64::try_from(digits.len()).expect("text must be shorter than the address space")
}

fn single(digit: u32) -> u8 {
    u8::try_from(digit).expect("a remainder of ten must fit")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::parse_json(text).unwrap()
    }

    #[test]
    fn forms_of_one_number_are_equal_and_written_alike() {
        for (forms, text) in [
            (&["1", "1.0", "1e0", "10e-1", "0.1E+1", "01"][..], "1"),
            (&["0", "-0", "0.000", "0e9", "-0.0e-9"], "0"),
            (&["-1500", "-1.5e3", "-15E2"], "-15e2"),
            (&["0.0001", "1e-4", "10e-5"], "1e-4"),
            (
                &["123456789012345678901234567890", "123456789012345678901234567890.00"],
                "12345678901234567890123456789e1",
            ),
        ] {
            for form in forms {
                assert_eq!(number(form), number(text), "{form}");
                assert_eq!(number(form).to_string(), text, "{form}");
            }
        }
    }

    #[test]
    fn numbers_are_ordered_by_value() {
        let ascending = [
            "-1e400", "-10", "-9.99", "-1", "-0.1", "0", "1e-400", "0.09", "0.1", "0.11", "1", "9", "10", "100.5",
            "1e9",
        ];
        for (at, one) in ascending.iter().enumerate() {
            for (other_at, other) in ascending.iter().enumerate() {
                assert_eq!(number(one).cmp(&number(other)), at.cmp(&other_at), "{one} {other}");
            }
        }
    }

    #[test]
    fn rounding_goes_away_from_zero_and_stops_at_the_place() {
        for (before, places, after) in [
            ("0.15", 1, "0.2"),
            ("-0.11", 1, "-0.2"),
            ("0.99", 1, "1"),
            ("99.91", 1, "100"),
            ("0.1", 1, "0.1"),
            ("0.001", 1, "0.1"),
            ("0.01", 1, "0.1"),
            ("1e-400", 9, "1e-9"),
            ("1.0000000001", 9, "1.000000001"),
            ("1e30", 9, "1e30"),
            ("0", 0, "0"),
        ] {
            assert_eq!(number(before).round_up(places), number(after), "{before} to {places}");
        }
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        for text in ["", "-", "+", ".", "a", "1a", "--1", "1.2.3", "1e", "1e9999999999", "1 "] {
            assert_eq!(Decimal::parse_json(text), None, "{text}");
        }
    }
}
