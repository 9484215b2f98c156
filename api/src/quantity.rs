//! `resource.Quantity`: `100m`, `1.5Gi`, `1e3`.

use std::fmt;
use std::str::FromStr;

use crate::decimal::Decimal;

/// A quantity of a resource, compared by value: `1`, `1000m` and `1e0` are equal.
///
/// Exact to a billionth (`n`), and rounded away from zero beyond, so that a positive quantity never becomes zero.
/// Displays as digits and an exponent, one string for one value, which parses to the same quantity.
///
/// # Upstream
/// `resource.Quantity`. With a binary suffix (`Ki` … `Ei`) the largest value is 2⁶³ − 1. Unlike upstream, a string
/// without any digit (`m`, `-`) is not a quantity here; the API server never serves it.
///
/// # Examples
/// ```
/// # fn main() -> Result<(), kcm_api::InvalidQuantity> {
/// use kcm_api::Quantity;
/// assert_eq!("0.5Gi".parse::<Quantity>()?, "512Mi".parse()?);
/// assert!("1500m".parse::<Quantity>()? < "2".parse()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(Decimal);

/// The error for a string that is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a quantity")]
pub struct InvalidQuantity {
    text: Box<str>,
}

/// The factor of a suffix.
enum Scale {
    /// A power of ten.
    Ten(i32),
    /// A power of 1024.
    Binary(u8),
}

/// The number of decimal places.
const NANO: i64 = 9;

impl FromStr for Quantity {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        parse(text).map(Self).ok_or_else(|| InvalidQuantity { text: text.into() })
    }
}

fn parse(text: &str) -> Option<Decimal> {
    let is_suffix = |character: char| character.is_ascii_alphabetic();
    let (number, suffix) = text.split_at(text.find(is_suffix).unwrap_or(text.len()));
    let amount = match scale(suffix)? {
        Scale::Ten(exponent) => Decimal::parse(number, exponent)?.round_up(NANO),
        Scale::Binary(power) => (0..power)
            .fold(Decimal::parse(number, 0)?, |amount, _| amount.times(1024))
            .round_up(NANO)
            .capped(i64::MAX.unsigned_abs()),
    };
    Some(amount)
}

fn scale(suffix: &str) -> Option<Scale> {
    Some(match suffix {
        "n" => Scale::Ten(-9),
        "u" => Scale::Ten(-6),
        "m" => Scale::Ten(-3),
        "" => Scale::Ten(0),
        "k" => Scale::Ten(3),
        "M" => Scale::Ten(6),
        "G" => Scale::Ten(9),
        "T" => Scale::Ten(12),
        "P" => Scale::Ten(15),
        "E" => Scale::Ten(18),
        "Ki" => Scale::Binary(1),
        "Mi" => Scale::Binary(2),
        "Gi" => Scale::Binary(3),
        "Ti" => Scale::Binary(4),
        "Pi" => Scale::Binary(5),
        "Ei" => Scale::Binary(6),
        _ => Scale::Ten(suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

impl Quantity {
    /// Returns the amount as a whole number, rounded away from zero. An amount beyond 64 bits becomes the nearest
    /// number that fits.
    ///
    /// # Upstream
    /// `Quantity.Value`.
    #[must_use]
    pub fn value(&self) -> i64 {
        self.0.clone().round_up(0).to_i64()
    }

    /// The amount in billionths, as far as 37 digits hold it.
    pub(crate) fn to_nano(&self) -> i128 {
        self.0.to_scaled(NANO)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
