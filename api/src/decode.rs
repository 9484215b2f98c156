//! Decoding of Go's JSON: `null` for empty values, and lists that are reduced to one fact.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

/// Text that borrows from the input if it has no escapes, so that reading a key which is not kept allocates nothing.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Reads a text that may be absent and borrows it if possible. `#[serde(borrow)]` alone copies within an option.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    Ok(Option::<Text<'de>>::deserialize(deserializer)?.map(|Text(text)| text))
}

/// Reads `null` as the default; Go serves it for empty lists, maps and times.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Folds a list while it is read, so that the list is never built.
pub(crate) fn fold<'de, D, T, A, F>(deserializer: D, start: A, add: F) -> Result<A, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
    F: FnMut(&mut A, T),
{
    struct Fold<T, A, F>(A, F, PhantomData<T>);

    impl<'de, T: Deserialize<'de>, A, F: FnMut(&mut A, T)> Visitor<'de> for Fold<T, A, F> {
        type Value = A;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_unit<E>(self) -> Result<A, E> {
            Ok(self.0)
        }

        fn visit_seq<S: SeqAccess<'de>>(mut self, mut seq: S) -> Result<A, S::Error> {
            while let Some(item) = seq.next_element()? {
                (self.1)(&mut self.0, item);
            }
            Ok(self.0)
        }
    }

    deserializer.deserialize_any(Fold(start, add, PhantomData))
}
