//! Labels and annotations: a sorted list of pairs of interned strings.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::decode::Text;
use crate::intern::InternedStr;
use crate::shared::Shared;

/// A small map of strings, sorted by key; labels, or the annotations that are kept.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Labels(Shared<[(InternedStr, InternedStr)]>);

impl Labels {
    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.get_shared(key).map(InternedStr::as_str)
    }

    /// The interned value of `key`; cloning it does not allocate.
    #[must_use]
    pub fn get_shared(&self, key: &str) -> Option<&InternedStr> {
        let at = self.0.binary_search_by(|(known, _)| known.as_str().cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// Returns `true` if `key` is present.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// All pairs, sorted by key.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub(crate) fn pairs(&self) -> impl ExactSizeIterator<Item = &(InternedStr, InternedStr)> {
        self.0.iter()
    }

    /// Number of pairs of key and value.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if there are no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn deserialize_filtered<'de, D: Deserializer<'de>>(
        deserializer: D,
        keep: impl Fn(&str) -> bool,
    ) -> Result<Self, D::Error> {
        struct Pairs<F>(F);
        impl<'de, F: Fn(&str) -> bool> Visitor<'de> for Pairs<F> {
            type Value = Labels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }

            fn visit_unit<E>(self) -> Result<Labels, E> {
                Ok(Labels::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut pairs = Vec::new();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    if (self.0)(&key.0) {
                        pairs.push((
                            InternedStr::from(&*key.0),
                            map.next_value::<Option<InternedStr>>()?.unwrap_or_default(),
                        ));
                    } else {
                        map.next_value::<serde::de::IgnoredAny>()?;
                    }
                }
                Ok(pairs.into_iter().collect())
            }
        }
        deserializer.deserialize_any(Pairs(keep))
    }
}

impl<K: Into<InternedStr>, V: Into<InternedStr>> FromIterator<(K, V)> for Labels {
    /// Collects pairs; of pairs with the same key, the last one wins.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut pairs: Vec<(InternedStr, InternedStr)> =
            pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        pairs.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 = later.1.clone();
            }
            same
        });
        Self(pairs.into())
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize_filtered(deserializer, |_| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Labels {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn labels_are_sorted_and_the_last_value_of_a_repeated_key_wins() {
        let labels = read(r#"{"b":"1","a":"2","b":"3","\u0063":"\u0034"}"#);
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "3"), ("c", "4")]);
        assert_eq!((labels.get("b"), labels.get("z")), (Some("3"), None));
        assert_eq!(serde_json::to_string(&labels).unwrap(), r#"{"a":"2","b":"3","c":"4"}"#);
    }

    #[test]
    fn null_is_no_labels_and_a_null_value_is_empty() {
        assert!(read("null").is_empty());
        assert_eq!(read(r#"{"a":null}"#).get("a"), Some(""));
    }

    #[test]
    fn equal_labels_are_equal_whatever_their_order() {
        assert_eq!(read(r#"{"a":"1","b":"2"}"#), [("b", "2"), ("a", "1")].into_iter().collect());
    }
}
