//! The envelopes of objects: watch events, list pages and statuses.

use std::borrow::Cow;

use kcm_api::protobuf::{self, Field, Malformed, Message, Reader};
use kcm_api::{DecodeError, Meta, ResourceVersion, Status, View};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// An object was created, or entered the selector.
    Added,
    /// An object was updated.
    Modified,
    /// An object was deleted, or left the selector.
    Deleted,
    /// A newer resource version without a change.
    Bookmark,
    /// The watch has failed.
    Error,
}

/// The error for bytes that are no event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The type is none that this crate knows.
    #[error("the type of the event, {0:?}, is unknown")]
    UnknownType(String),
    /// The envelope of the event is malformed.
    #[error("the event is malformed")]
    Malformed(#[from] serde_json::Error),
}

impl EventKind {
    /// All types of watch events.
    pub const ALL: [Self; 5] = [Self::Added, Self::Modified, Self::Deleted, Self::Bookmark, Self::Error];

    /// The type in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }

    fn named(name: &str) -> Result<Self, EventError> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == name);
        known.ok_or_else(|| EventError::UnknownType(name.chars().take(LONGEST_TYPE).collect()))
    }
}

/// The number of characters of an unknown type that are shown.
const LONGEST_TYPE: usize = 40;

/// An object in one of the encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object<'a> {
    /// The object as JSON.
    Json(&'a str),
    /// A protobuf message, without the envelope.
    Protobuf(&'a [u8]),
}

impl<'a> Object<'a> {
    /// Decodes it as that view.
    ///
    /// # Errors
    /// If the object does not fit the view.
    pub fn decode<V: View>(self) -> Result<V, DecodeError> {
        match self {
            Self::Json(json) => V::decode(json),
            Self::Protobuf(message) => V::decode_protobuf(message),
        }
    }

    /// Reads it as that type, of protobuf the fields of `message`.
    pub(crate) fn read<T: Deserialize<'a>>(self, message: &'static Message) -> Result<T, serde_json::Error> {
        match self {
            Self::Json(json) => serde_json::from_str(json),
            Self::Protobuf(bytes) => T::deserialize(Reader::new(bytes, message)).map_err(unreadable),
        }
    }

    /// Detects the encoding of a body.
    fn of(body: &'a [u8]) -> Result<Self, serde_json::Error> {
        match protobuf::unwrap(body) {
            Ok(message) => Ok(Self::Protobuf(message)),
            Err(Malformed::NoEnvelope) => Ok(Self::Json(std::str::from_utf8(body).map_err(serde_json::Error::custom)?)),
            Err(malformed) => Err(unreadable(malformed)),
        }
    }
}

fn unreadable(malformed: Malformed) -> serde_json::Error {
    serde_json::Error::custom(malformed)
}

/// A watch event, whose object is not decoded yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The type of the event.
    pub kind: EventKind,
    /// The object, not decoded yet.
    pub object: Object<'a>,
}

impl<'a> Event<'a> {
    /// Splits a line into kind and object without looking into the object.
    ///
    /// The API server writes the two fields in a fixed order, so the object is the text between them: it is read only
    /// once, by its decoder. If that fails, [`parse`](Self::parse) shows whether the line is malformed.
    ///
    /// # Errors
    /// If the line is not an event.
    pub fn split(line: &'a [u8]) -> Result<Self, EventError> {
        match Self::split_in_fixed_order(line) {
            Some(event) => Ok(event),
            None => Self::parse(line),
        }
    }

    fn split_in_fixed_order(line: &'a [u8]) -> Option<Self> {
        let rest = line.strip_prefix(br#"{"type":""#)?;
        let rest = rest.strip_suffix(b"}")?;
        EventKind::ALL.into_iter().find_map(|kind| {
            let object = rest.strip_prefix(kind.as_str().as_bytes())?.strip_prefix(br#"","object":"#)?;
            Some(Self { kind, object: Object::Json(std::str::from_utf8(object).ok()?) })
        })
    }

    /// Reads a line as JSON, with its fields in any order and others between them.
    ///
    /// # Errors
    /// If the line is not an event.
    pub fn parse(line: &'a [u8]) -> Result<Self, EventError> {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(rename = "type", borrow)]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            object: &'a RawValue,
        }
        let Line { kind, object } = serde_json::from_slice(line)?;
        Ok(Self { kind: EventKind::named(&kind)?, object: Object::Json(object.get()) })
    }

    /// Reads a message.
    ///
    /// # Errors
    /// If the message is not an event.
    pub fn of_message(message: &'a [u8]) -> Result<Self, EventError> {
        const EVENT: &Message = &[Field::text(1, "type"), Field::one(2, "object", &[Field::bytes(1, "raw")])];
        #[derive(Deserialize)]
        struct WatchEvent<'a> {
            #[serde(rename = "type", borrow)]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            object: RawExtension<'a>,
        }
        #[derive(Deserialize)]
        struct RawExtension<'a> {
            raw: &'a [u8],
        }
        let WatchEvent { kind, object } = WatchEvent::deserialize(Reader::new(message, EVENT)).map_err(unreadable)?;
        Ok(Self { kind: EventKind::named(&kind)?, object: Object::of(object.raw)? })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bookmark {
    pub(crate) version: ResourceVersion,
    /// `true` if it ends the initial events of a streaming list.
    pub(crate) ends_initial_events: bool,
}

impl Bookmark {
    pub(crate) fn read(object: Object<'_>) -> Result<Self, serde_json::Error> {
        const BOOKMARK: &Message = &[Field::one(1, "metadata", Meta::MESSAGE)];
        #[derive(Deserialize)]
        struct Bare<'a> {
            #[serde(borrow)]
            metadata: Metadata<'a>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata<'a> {
            resource_version: ResourceVersion,
            #[serde(borrow)]
            annotations: Option<Annotations<'a>>,
        }
        #[derive(Deserialize)]
        struct Annotations<'a> {
            #[serde(rename = "k8s.io/initial-events-end", borrow)]
            initial_events_end: Option<Cow<'a, str>>,
        }
        let Bare { metadata } = object.read(BOOKMARK)?;
        let ends = metadata.annotations.and_then(|annotations| annotations.initial_events_end);
        Ok(Self { version: metadata.resource_version, ends_initial_events: ends.as_deref() == Some("true") })
    }
}

/// A page of a list; the items carry neither `apiVersion` nor `kind`.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) metadata: PageMetadata,
    pub(crate) items: Vec<Object<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageMetadata {
    #[serde(default)]
    pub(crate) resource_version: ResourceVersion,
    #[serde(default, rename = "continue")]
    pub(crate) continue_token: Option<String>,
}

impl<'a> Page<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, serde_json::Error> {
        const LIST: &Message = &[
            Field::one(1, "metadata", &[Field::text(2, "resourceVersion"), Field::text(3, "continue")]),
            Field::blobs(2, "items"),
        ];
        #[derive(Deserialize)]
        struct List<T> {
            metadata: PageMetadata,
            // Go serves an empty list as `null`.
            #[serde(default = "Option::default")]
            items: Option<Vec<T>>,
        }
        let page = match Object::of(body)? {
            Object::Json(json) => {
                let List::<&RawValue> { metadata, items } = serde_json::from_str(json)?;
                let items = items.unwrap_or_default().into_iter().map(|item| Object::Json(item.get())).collect();
                Self { metadata, items }
            }
            list @ Object::Protobuf(_) => {
                let List::<&[u8]> { metadata, items } = list.read(LIST)?;
                let items = items.unwrap_or_default().into_iter().map(Object::Protobuf).collect();
                Self { metadata, items }
            }
        };
        // Anything else that has metadata would read as a cluster in which nothing exists.
        if page.metadata.resource_version.is_unset() {
            return Err(serde::de::Error::custom("the answer is no list: it has no resourceVersion"));
        }
        Ok(page)
    }
}

/// Reads the status that an `ERROR` event carries.
pub(crate) fn status_of_event(object: Object<'_>) -> Result<Status, serde_json::Error> {
    object.read(Status::MESSAGE)
}

/// Reads the status in the body of a response that is no success, if it is one.
pub(crate) fn status_of_body(body: &[u8]) -> Option<Status> {
    status_of_event(Object::of(body).ok()?).ok()
}

#[cfg(test)]
mod mutations;
#[cfg(test)]
mod targets;
#[cfg(test)]
mod tests;
