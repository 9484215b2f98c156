//! Resource versions and how two of them compare (KEP-5504).

use std::cmp::Ordering;
use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// The version of an object, or of a list or watch of one resource.
///
/// Two versions compare only within one resource of one cluster, and only when both are decimals
/// without leading zeros, of any length: see [`ResourceVersion::compare`].
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct ResourceVersion(Repr);

// Nearly every version fits a word. Other versions keep their text, so that nothing is lost on the way back.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Number(u64),
    Text(Box<str>),
}

impl Default for Repr {
    fn default() -> Self {
        Self::Text(Box::from(""))
    }
}

impl ResourceVersion {
    /// Returns `true` if no version is known: the empty text.
    #[must_use]
    pub fn is_unset(&self) -> bool {
        matches!(&self.0, Repr::Text(text) if text.is_empty())
    }

    /// Compares two versions of one resource: the greater one is newer. Returns `None` if one of them is not a decimal.
    ///
    /// # Upstream
    /// KEP-5504: versions are decimals without a leading zero and without a bound on their length.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (&self.0, &other.0) {
            (Repr::Number(a), Repr::Number(b)) => Some(a.cmp(b)),
            (Repr::Number(_), Repr::Text(b)) => is_decimal(b).then_some(Ordering::Less),
            (Repr::Text(a), Repr::Number(_)) => is_decimal(a).then_some(Ordering::Greater),
            (Repr::Text(a), Repr::Text(b)) => {
                (is_decimal(a) && is_decimal(b)).then(|| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
            }
        }
    }

    /// Returns `true` if this version is `other` or a later version, and `None` if they do not compare.
    #[must_use]
    pub fn is_at_least(&self, other: &Self) -> Option<bool> {
        self.compare(other).map(Ordering::is_ge)
    }
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        match text.parse() {
            Ok(number) if is_decimal(text) => Self(Repr::Number(number)),
            _ => Self(Repr::Text(Box::from(text))),
        }
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        if number == 0 { Self::from("0") } else { Self(Repr::Number(number)) }
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Number(number) => write!(f, "{number}"),
            Repr::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceVersion({self})")
    }
}

impl Serialize for ResourceVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ResourceVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Version;
        impl Visitor<'_> for Version {
            type Value = ResourceVersion;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a resource version")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<ResourceVersion, E> {
                Ok(ResourceVersion::from(text))
            }
        }
        deserializer.deserialize_str(Version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn compare(a: &str, b: &str) -> Option<Ordering> {
        ResourceVersion::from(a).compare(&ResourceVersion::from(b))
    }

    #[test]
    fn decimals_of_any_length_compare_as_numbers() {
        let long = "1".repeat(50);
        for (less, more) in [("1", "2"), ("99", "100"), ("18446744073709551615", "18446744073709551616"), ("9", &*long)]
        {
            assert_eq!(compare(less, more), Some(Ordering::Less), "{less} {more}");
            assert_eq!(compare(more, less), Some(Ordering::Greater), "{less} {more}");
            assert_eq!(compare(more, more), Some(Ordering::Equal), "{more}");
        }
        assert_eq!(ResourceVersion::from("5").is_at_least(&ResourceVersion::from("5")), Some(true));
        assert_eq!(ResourceVersion::from("4").is_at_least(&ResourceVersion::from("5")), Some(false));
    }

    #[test]
    fn what_is_no_decimal_compares_with_nothing() {
        for malformed in ["", "0", "01", "-1", "+1", "1a", "a", " 1", "1.0", "\u{0661}"] {
            assert_eq!(compare(malformed, "1"), None, "{malformed:?}");
            assert_eq!(compare("1", malformed), None, "{malformed:?}");
            assert_eq!(compare(malformed, malformed), None, "{malformed:?}");
            assert_eq!(ResourceVersion::from(malformed).to_string(), malformed);
        }
        assert_eq!(ResourceVersion::from(0).compare(&ResourceVersion::from(0)), None);
    }

    #[test]
    fn takes_two_words() {
        assert!(size_of::<ResourceVersion>() <= 16);
    }

    /// Compares digit by digit, as numbers written beneath each other.
    fn naive(a: &str, b: &str) -> Ordering {
        let width = a.len().max(b.len());
        format!("{a:0>width$}").cmp(&format!("{b:0>width$}"))
    }

    proptest! {
        #[test]
        fn decimals_compare_as_big_integers(a in "[1-9][0-9]{0,24}", b in "[1-9][0-9]{0,24}") {
            prop_assert_eq!(compare(&a, &b), Some(naive(&a, &b)));
        }

        #[test]
        fn a_version_comes_back_as_it_was_given(text in "[0-9]{0,24}|.{0,8}") {
            let version = ResourceVersion::from(text.as_str());
            prop_assert_eq!(version.to_string(), text.clone());
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(serde_json::from_str::<ResourceVersion>(&json).unwrap(), version);
        }
    }
}
