//! Quantities of bytes in Kubernetes' notation.

use std::fmt;
use std::str::FromStr;

/// A quantity of bytes, such as `64Ki`, `1.5M` or `1e3`.
///
/// It is printed as it was written. Fractions of a byte are rounded up, and what exceeds 64 bits is the largest value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantity {
    text: String,
    value: i64,
}

/// The text is not a quantity in Kubernetes' notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a quantity, such as 64Ki")]
pub struct NotAQuantity;

impl Quantity {
    /// The number of bytes; nothing for a negative quantity.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.value).unwrap_or(0)
    }

    /// The signed value.
    #[must_use]
    pub const fn value(&self) -> i64 {
        self.value
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

/// More digits than any quantity of bytes has.
const MOST_DIGITS: usize = 24;

impl FromStr for Quantity {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let digits = unsigned.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(digits);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_number = whole.len() + fraction.len() > 0 && !fraction.contains('.');
        if !is_number || whole.len() + fraction.len() > MOST_DIGITS {
            return Err(NotAQuantity);
        }
        let (base, exponent) = scale(suffix).ok_or(NotAQuantity)?;
        let magnitude = format!("{whole}{fraction}").parse::<i128>().map_err(|_| NotAQuantity)?;
        let magnitude = scaled(magnitude, base, exponent, fraction.len());
        let signed = if text.starts_with('-') { -magnitude } else { magnitude };
        let value = i64::try_from(signed).unwrap_or(if signed < 0 { i64::MIN } else { i64::MAX });
        Ok(Self { text: text.to_owned(), value })
    }
}

/// The base and the exponent that a suffix stands for.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|known| *known == suffix);
    if let Some(position) = binary {
        return Some((1024, i32::try_from(position).ok()? + 1));
    }
    let decimal = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"].iter().position(|known| *known == suffix);
    if let Some(position) = decimal {
        return Some((10, (i32::try_from(position).ok()? - 3) * 3));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    (-30..=30).contains(&exponent).then_some((10, exponent))
}

/// `magnitude`, whose last `decimals` digits stand behind the point, times the scale; rounded up.
fn scaled(magnitude: i128, base: i128, exponent: i32, decimals: usize) -> i128 {
    let power = |base: i128, exponent: u32| base.checked_pow(exponent).unwrap_or(i128::MAX);
    let above = magnitude.saturating_mul(power(base, exponent.max(0).unsigned_abs()));
    let below = power(base, exponent.min(0).unsigned_abs());
    let below = below.saturating_mul(power(10, u32::try_from(decimals).unwrap_or(u32::MAX)));
    above / below + i128::from(above % below != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_reads_them() {
        let cases = [
            ("0", Some(0)),
            ("64Ki", Some(65536)),
            ("1.5M", Some(1_500_000)),
            ("1e3", Some(1000)),
            ("+2E", Some(2_000_000_000_000_000_000)),
            ("1.5", Some(2)),
            ("100m", Some(1)),
            (".5k", Some(500)),
            ("-1Ki", Some(-1024)),
            ("9Ei", Some(i64::MAX)),
            ("", None),
            ("Ki", None),
            ("1KiB", None),
            ("1.2.3", None),
            ("1 Ki", None),
            ("1e", None),
            ("--1", None),
        ];
        for (text, expected) in cases {
            let quantity = text.parse::<Quantity>().ok();
            assert_eq!(quantity.as_ref().map(Quantity::value), expected, "{text:?}");
        }
        assert_eq!("-1Ki".parse::<Quantity>().map(|quantity| quantity.bytes()), Ok(0));
    }
}
