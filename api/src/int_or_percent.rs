//! A count, or a share of a total: `maxSurge`, `maxUnavailable`, `partition`.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A count, or a percentage of a total.
///
/// Text that is not a percentage is kept. Using it is an error, reading it is not.
///
/// # Upstream
/// `intstr.IntOrString`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IntOrPercent {
    /// A count; not bounded by any total.
    Int(i32),
    /// Hundredths of a total, such as `25%`.
    Percent(i64),
    /// Text that is not a percentage.
    Invalid(Box<str>),
}

/// Direction in which a share of a total is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// To the next count that is not less.
    Up,
    /// To the next count that is not more.
    Down,
}

/// Text in place of a count or a percentage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is neither an integer nor a percentage")]
pub struct InvalidPercent {
    text: Box<str>,
}

impl IntOrPercent {
    /// Returns the count for a `total`.
    ///
    /// # Upstream
    /// `intstr.GetScaledValueFromIntOrPercent`. A count is returned unchanged, even above `total` and below zero.
    pub fn of(&self, total: i32, rounding: Rounding) -> Result<i32, InvalidPercent> {
        match self {
            Self::Int(count) => Ok(*count),
            Self::Percent(percent) => {
                let hundredths = i128::from(*percent) * i128::from(total);
                let floor = hundredths.div_euclid(100);
                let count = match rounding {
                    Rounding::Up if hundredths.rem_euclid(100) > 0 => floor + 1,
                    Rounding::Up | Rounding::Down => floor,
                };
                let bounded = count.clamp(i32::MIN.into(), i32::MAX.into());
                Ok(i32::try_from(bounded).expect("must fit after the clamp"))
            }
            Self::Invalid(text) => Err(InvalidPercent { text: text.clone() }),
        }
    }
}

impl Default for IntOrPercent {
    /// Zero, as in Go.
    fn default() -> Self {
        Self::Int(0)
    }
}

impl From<i32> for IntOrPercent {
    fn from(count: i32) -> Self {
        Self::Int(count)
    }
}

impl From<&str> for IntOrPercent {
    /// Reads a percentage; a number in quotes is not one, as upstream.
    fn from(text: &str) -> Self {
        let percent = text.strip_suffix('%').and_then(|number| number.parse().ok());
        percent.map_or_else(|| Self::Invalid(text.into()), Self::Percent)
    }
}

impl fmt::Display for IntOrPercent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Invalid(text) => f.write_str(text),
        }
    }
}

impl Serialize for IntOrPercent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(count) => serializer.serialize_i32(*count),
            Self::Percent(_) | Self::Invalid(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrPercent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl Either {
            fn count<E: Error>(number: Option<i32>) -> Result<IntOrPercent, E> {
                number.map(IntOrPercent::Int).ok_or_else(|| E::custom("the count does not fit 32 bits"))
            }
        }

        impl Visitor<'_> for Either {
            type Value = IntOrPercent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer or a percentage")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<IntOrPercent, E> {
                Self::count(number.try_into().ok())
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<IntOrPercent, E> {
                Self::count(number.try_into().ok())
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<IntOrPercent, E> {
                Ok(IntOrPercent::from(text))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> IntOrPercent {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_percentage_is_rounded_as_asked() {
        // text, total, up, down
        for (text, total, up, down) in [
            ("90%", 100, 90, 90),
            ("90%", 95, 86, 85),
            ("25%", 10, 3, 2),
            ("1%", 1, 1, 0),
            ("0%", 7, 0, 0),
            ("150%", 3, 5, 4),
            ("+10%", 10, 1, 1),
            ("-10%", 15, -1, -2),
            ("100%", i32::MAX, i32::MAX, i32::MAX),
            ("200%", i32::MAX, i32::MAX, i32::MAX),
            ("9223372036854775807%", i32::MAX, i32::MAX, i32::MAX),
            ("50%", 0, 0, 0),
        ] {
            let value = IntOrPercent::from(text);
            assert_eq!(value.of(total, Rounding::Up), Ok(up), "{text} of {total} up");
            assert_eq!(value.of(total, Rounding::Down), Ok(down), "{text} of {total} down");
        }
    }

    #[test]
    fn a_count_is_itself_whatever_the_total() {
        for count in [0, 7, -3, i32::MAX, i32::MIN] {
            assert_eq!(IntOrPercent::from(count).of(5, Rounding::Up), Ok(count));
        }
    }

    #[test]
    fn text_that_is_no_percentage_is_an_error_where_it_is_used() {
        for text in ["", "%", "5", "a%", "40%%", "30%0", "1.5%", " 5%", "5 %", "9223372036854775808%"] {
            let value = read(&serde_json::to_string(text).unwrap());
            assert_eq!(value, IntOrPercent::Invalid(text.into()));
            assert!(value.of(5, Rounding::Up).is_err(), "{text}");
        }
        assert_eq!(
            IntOrPercent::from("5").of(5, Rounding::Up).unwrap_err().to_string(),
            "\"5\" is neither an integer nor a percentage"
        );
    }

    #[test]
    fn is_written_as_it_was_read() {
        for json in ["3", "-3", "\"25%\"", "\"x\"", "\"3\""] {
            assert_eq!(serde_json::to_string(&read(json)).unwrap(), json);
        }
    }

    #[test]
    fn other_json_does_not_decode() {
        for json in ["1.5", "2147483648", "-2147483649", "true", "[]", "{}"] {
            assert!(serde_json::from_str::<IntOrPercent>(json).is_err(), "{json}");
        }
    }
}
