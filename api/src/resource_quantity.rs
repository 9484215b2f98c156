//! Quantities that are added, as the usage of a resource quota is.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::protobuf::{Kind, ProtobufType};
use crate::quantity::{InvalidQuantity, Quantity};

/// A quantity that can be added to others, exact to a billionth, and shown in its own notation.
///
/// Equality and order compare the values. Larger values than 10²⁸ become 10²⁸.
///
/// # Upstream
/// `resource.Quantity`: `Add`, `Sub`, `RoundUp` and `CanonicalizeBytes`. A sum has the notation of its first summand
/// that is not zero.
///
/// # Examples
/// ```
/// # fn main() -> Result<(), kcm_api::InvalidQuantity> {
/// use kcm_api::ResourceQuantity;
/// let mut sum: ResourceQuantity = "512Mi".parse()?;
/// sum += "1.5Gi".parse()?;
/// assert_eq!(sum.to_string(), "2Gi");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ResourceQuantity {
    nano: i128,
    notation: Notation,
}

/// Notation of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Notation {
    /// Decimal notation, such as `1500m` and `2k`.
    #[default]
    DecimalSi,
    /// Binary notation, such as `512Mi`.
    BinarySi,
    /// Notation with an exponent, such as `1e3`.
    DecimalExponent,
}

const ONE: i128 = 1_000_000_000;
/// The bound of every value: sums of many fit into 128 bits.
const MOST: i128 = 10_i128.pow(37);
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl ResourceQuantity {
    /// Makes a quantity from a whole number, in decimal notation.
    #[must_use]
    pub fn whole(number: i64) -> Self {
        Self { nano: i128::from(number) * ONE, notation: Notation::DecimalSi }
    }

    /// Makes a quantity from thousandths, in decimal notation: `1500m`.
    #[must_use]
    pub fn of_milli(thousandths: i64) -> Self {
        Self { nano: i128::from(thousandths) * (ONE / 1000), notation: Notation::DecimalSi }
    }

    /// Makes a quantity from thousandths, in binary notation if that is exact: `512Mi`.
    #[must_use]
    pub fn of_milli_in_binary(thousandths: i64) -> Self {
        Self { notation: Notation::BinarySi, ..Self::of_milli(thousandths) }
    }

    /// Returns the amount in thousandths, rounded up. An amount beyond 64 bits becomes the nearest number that fits.
    ///
    /// # Upstream
    /// `Quantity.MilliValue`, which is 0 or wraps around beyond them.
    #[must_use]
    pub fn to_milli(self) -> i64 {
        let step = ONE / 1000;
        // Upstream rounds away from zero.
        let milli = if self.nano < 0 { -((-self.nano + step - 1) / step) } else { (self.nano + step - 1) / step };
        i64::try_from(milli).unwrap_or(if milli < 0 { i64::MIN } else { i64::MAX })
    }

    /// The nearest floating-point number.
    ///
    /// # Upstream
    /// `Quantity.AsApproximateFloat64`
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the nearest number is what is asked for")]
    pub fn to_f64(self) -> f64 {
        self.nano as f64 / ONE as f64
    }

    /// Returns `true` if both are one amount in one notation.
    pub(crate) fn prints_like(self, other: Self) -> bool {
        self == other && self.notation == other.notation
    }

    /// Hashes the amount, without its notation.
    pub(crate) fn digest<H: Hasher>(self, state: &mut H) {
        self.nano.hash(state);
    }

    /// Returns `true` if the quantity is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.nano == 0
    }

    /// Returns `true` if the quantity is greater than zero.
    #[must_use]
    pub const fn is_positive(self) -> bool {
        self.nano > 0
    }

    /// The quantity in thousandths, rounded up (upstream: `MilliValue`).
    #[must_use]
    pub fn millis(self) -> i64 {
        const MILLI: i128 = ONE / 1000;
        let floor = self.nano.div_euclid(MILLI);
        let millis = if self.nano.rem_euclid(MILLI) == 0 { floor } else { floor + 1 };
        i64::try_from(millis).unwrap_or(if millis < 0 { i64::MIN } else { i64::MAX })
    }

    /// Rounds the quantity up to a whole number.
    #[must_use]
    pub const fn round_up(self) -> Self {
        let rest = self.nano.rem_euclid(ONE);
        let nano = if rest == 0 { self.nano } else { self.nano - rest + ONE };
        Self { nano, ..self }
    }

    fn plus(self, nano: i128, notation: Notation) -> Self {
        let notation = if self.nano == 0 { notation } else { self.notation };
        Self { nano: self.nano.saturating_add(nano).clamp(-MOST, MOST), notation }
    }
}

impl std::ops::AddAssign for ResourceQuantity {
    fn add_assign(&mut self, other: Self) {
        *self = self.plus(other.nano, other.notation);
    }
}

impl std::ops::SubAssign for ResourceQuantity {
    fn sub_assign(&mut self, other: Self) {
        *self = self.plus(-other.nano, other.notation);
    }
}

impl FromStr for ResourceQuantity {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        let nano = text.parse::<Quantity>()?.to_nano().clamp(-MOST, MOST);
        let suffix = text.trim_start_matches(|character: char| !character.is_ascii_alphabetic());
        let notation = match suffix.as_bytes() {
            [b'e' | b'E', _, ..] if !suffix.ends_with('i') => Notation::DecimalExponent,
            [_, b'i'] => Notation::BinarySi,
            _ => Notation::DecimalSi,
        };
        Ok(Self { nano, notation })
    }
}

impl fmt::Display for ResourceQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nano == 0 {
            return f.write_str("0");
        }
        // Small and broken numbers are not written in binary units: nothing is rounded.
        let is_binary = matches!(self.notation, Notation::BinarySi);
        if is_binary && self.nano.abs() >= 1024 * ONE && self.nano % ONE == 0 {
            let (mut number, mut power) = (self.nano / ONE, 0);
            while number % 1024 == 0 && power + 1 < BINARY.len() {
                number /= 1024;
                power += 1;
            }
            return write!(f, "{number}{}", BINARY[power]);
        }
        let (mut number, mut exponent) = (self.nano, -9);
        let is_exponent = matches!(self.notation, Notation::DecimalExponent);
        while number % 1000 == 0 && (exponent < 18 || is_exponent) {
            number /= 1000;
            exponent += 3;
        }
        match (self.notation, DECIMAL.iter().find(|(_, known)| *known == exponent)) {
            (Notation::DecimalSi | Notation::BinarySi, Some((suffix, _))) => write!(f, "{number}{suffix}"),
            _ if exponent == 0 => write!(f, "{number}"),
            _ => write!(f, "{number}e{exponent}"),
        }
    }
}

impl PartialEq for ResourceQuantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for ResourceQuantity {}

impl PartialOrd for ResourceQuantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ResourceQuantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl Serialize for ResourceQuantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ResourceQuantity {
    /// From a string or, as Go does, a number.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = ResourceQuantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ResourceQuantity, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<ResourceQuantity, E> {
                Ok(ResourceQuantity::whole(number))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<ResourceQuantity, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<ResourceQuantity, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl ProtobufType for ResourceQuantity {
    const KIND: Kind = Kind::Quantity;
}
