//! The key, uid and resource version of an object, decoded without the rest of it.

use std::borrow::Cow;
use std::fmt;

use kcm_api::{InternedStr, ResourceVersion, Uid};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// The fields that identify an object and its version.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Head {
    pub(crate) name: Box<str>,
    pub(crate) namespace: Option<InternedStr>,
    pub(crate) uid: Uid,
    pub(crate) resource_version: ResourceVersion,
}

impl Head {
    /// Decodes the head of an object. Missing fields keep their defaults.
    ///
    /// Decoding ends with the last of these fields, which the API server writes first: nine tenths of the response to a
    /// creation are skipped, which took an eighth of all instructions of creating pods.
    pub(crate) fn of(json: &[u8]) -> Result<Self, serde_json::Error> {
        let mut head = Self::default();
        let read = Object(&mut head).deserialize(&mut serde_json::Deserializer::from_slice(json));
        if head.is_complete() { Ok(head) } else { read.map(|()| head) }
    }

    fn is_complete(&self) -> bool {
        // The namespace may be missing: cluster-scoped objects have none.
        !self.name.is_empty() && !self.uid.is_unset() && !self.resource_version.is_unset()
    }
}

/// A seed that fills the head from an object, and fails once it is complete, to end decoding.
struct Object<'a>(&'a mut Head);

/// A seed that fills the head from the metadata.
struct Metadata<'a>(&'a mut Head);

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of the API")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key::<Cow<'de, str>>()? {
            if field == "metadata" {
                map.next_value_seed(Metadata(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Metadata<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Metadata<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key::<Cow<'de, str>>()? {
            match &*field {
                "name" => self.0.name = map.next_value()?,
                "namespace" => self.0.namespace = map.next_value()?,
                "uid" => self.0.uid = map.next_value()?,
                "resourceVersion" => self.0.resource_version = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
            if self.0.is_complete() {
                return Err(A::Error::custom("the rest is not needed"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(json: &str) -> Option<Head> {
        Head::of(json.as_bytes()).ok()
    }

    #[test]
    fn nothing_behind_the_head_is_read() {
        let read = head(r#"{"kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7",]"#);
        let expected =
            Head { name: "a".into(), namespace: Some("b".into()), uid: "u".into(), resource_version: "7".into() };
        assert_eq!(read, Some(expected));
    }

    #[test]
    fn the_fields_may_stand_anywhere() {
        let read = head(
            r#"{"spec":{"metadata":1},"metadata":{"labels":{"uid":"x"},"resourceVersion":"7","uid":"u","name":"a"}}"#,
        );
        let expected = Head { name: "a".into(), namespace: None, uid: "u".into(), resource_version: "7".into() };
        assert_eq!(read, Some(expected));
    }

    #[test]
    fn without_the_whole_head_the_answer_must_be_whole() {
        assert_eq!(head(r#"{"kind":"Status","status":"Success"}"#), Some(Head::default()));
        assert_eq!(head(r#"{"metadata":{"name":"a","uid":"u"}"#), None);
        assert_eq!(head("[]"), None);
        assert_eq!(head(r#"{"metadata":{"name":7}}"#), None);
    }
}
