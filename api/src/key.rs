//! The key and the uid of an object.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::intern::InternedStr;

/// Namespace and name of an object within one resource; cluster-scoped objects have no namespace.
///
/// Cheap to clone. Ordered by namespace, then name. Displays as `namespace/name`, or `name`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    namespace: Option<InternedStr>,
    name: Arc<str>,
}

impl ObjectKey {
    /// The key of an object in a namespace.
    #[must_use]
    pub fn namespaced(namespace: impl Into<InternedStr>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }

    /// The key of a cluster-scoped object.
    #[must_use]
    pub fn cluster_scoped(name: impl Into<Arc<str>>) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// Returns the namespace, or `None` for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns the namespace as an interned string. Cloning it allocates nothing.
    #[must_use]
    pub const fn shared_namespace(&self) -> Option<&InternedStr> {
        self.namespace.as_ref()
    }

    /// Returns the name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectKey({self})")
    }
}

/// The uid of an object; an object recreated under the same name has another.
///
/// Ordered as a string.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Uid(Repr);

// The API server makes uids as lower-case hyphenated UUIDs: 16 bytes instead of 36 and an allocation.
// As bytes, since a `u128` would align, and so widen, everything that holds a uid.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Uuid([u8; 16]),
    Text(Box<str>),
}

impl Ord for Uid {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Uuid(a), Repr::Uuid(b)) => a.cmp(b),
            (Repr::Text(a), Repr::Text(b)) => a.cmp(b),
            (Repr::Uuid(_), Repr::Text(text)) => (*self.to_string()).cmp(text),
            (Repr::Text(text), Repr::Uuid(_)) => (**text).cmp(&other.to_string()),
        }
    }
}

impl PartialOrd for Uid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Uid {
    /// Returns `true` if the uid is unset: the empty string.
    #[must_use]
    pub fn is_unset(&self) -> bool {
        matches!(&self.0, Repr::Text(text) if text.is_empty())
    }
}

impl Default for Uid {
    fn default() -> Self {
        Self(Repr::Text(Box::from("")))
    }
}

// The positions of the two digits of each byte; hyphens are between. Uids are read and written for every event and
// every deleted pod: through `fmt`, byte by byte, that took a fortieth of all instructions of a rollout.
const DIGITS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let text: &[u8; 36] = text.as_bytes().try_into().ok()?;
    if HYPHENS.iter().any(|&at| text[at] != b'-') {
        return None;
    }
    let digit = |at: usize| match text[at] {
        digit @ b'0'..=b'9' => Some(digit - b'0'),
        digit @ b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut uuid = [0; 16];
    for (byte, at) in uuid.iter_mut().zip(DIGITS) {
        *byte = digit(at)? << 4 | digit(at + 1)?;
    }
    Some(uuid)
}

fn write_uuid(uuid: &[u8; 16]) -> [u8; 36] {
    let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' + value - 10 };
    let mut text = [b'-'; 36];
    for (byte, at) in uuid.iter().zip(DIGITS) {
        text[at] = digit(byte >> 4);
        text[at + 1] = digit(byte & 0xf);
    }
    text
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(parse_uuid(text).map_or_else(|| Repr::Text(Box::from(text)), Repr::Uuid))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Uuid(uuid) => f.write_str(str::from_utf8(&write_uuid(uuid)).map_err(|_| fmt::Error)?),
            Repr::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uid({self})")
    }
}

impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Uid;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a uid")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Uid, E> {
                Ok(Uid::from(text))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UUID: &str = "01234567-89ab-cdef-0123-456789abcdef";

    #[test]
    fn a_key_displays_as_kubectl_names_objects() {
        assert_eq!(ObjectKey::namespaced("a", "b").to_string(), "a/b");
        assert_eq!(ObjectKey::cluster_scoped("b").to_string(), "b");
    }

    #[test]
    fn keys_are_ordered_by_namespace_then_name() {
        let mut keys = [
            ObjectKey::namespaced("b", "a"),
            ObjectKey::namespaced("a", "b"),
            ObjectKey::namespaced("a", "a"),
            ObjectKey::cluster_scoped("z"),
        ];
        keys.sort();
        assert_eq!(keys.map(|key| key.to_string()), ["z", "a/a", "a/b", "b/a"]);
    }

    #[test]
    fn a_uuid_takes_no_allocation() {
        assert!(matches!(Uid::from(UUID).0, Repr::Uuid(_)));
        assert!(size_of::<Uid>() <= 24);
    }

    #[test]
    fn what_is_no_canonical_uuid_keeps_its_text() {
        for text in ["", "a", &UUID.to_uppercase(), &UUID.replace('-', "_"), &UUID.replace('-', ""), &"é".repeat(18)] {
            assert!(matches!(Uid::from(text).0, Repr::Text(_)), "{text}");
            assert_eq!(Uid::from(text).to_string(), text);
        }
        assert!(Uid::from("").is_unset());
        assert!(!Uid::from(UUID).is_unset());
    }

    fn uid() -> impl Strategy<Value = String> {
        let uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
        prop_oneof![uuid, "[0-9a-fA-F-]{30,40}", ".{0,40}"]
    }

    proptest! {
        #[test]
        fn a_uid_comes_back_as_it_was_given(text in uid()) {
            let uid = Uid::from(text.as_str());
            prop_assert_eq!(uid.to_string(), text.clone());
            let json = serde_json::to_string(&uid).unwrap();
            prop_assert_eq!(serde_json::from_str::<Uid>(&json).unwrap(), uid);
            prop_assert_eq!(json, serde_json::to_string(&text).unwrap());
        }

        #[test]
        fn uids_are_ordered_as_their_text(a in uid(), b in uid()) {
            prop_assert_eq!(Uid::from(a.as_str()).cmp(&Uid::from(b.as_str())), a.cmp(&b));
        }
    }
}
