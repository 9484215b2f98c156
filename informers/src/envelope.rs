//! What wraps objects on the wire: events of a watch, pages of a list, and refusals.

use std::borrow::Cow;

use kcm_api::ResourceVersion;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Kind of an event of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum EventKind {
    /// An object was made, or entered the selector.
    Added,
    /// An object changed.
    Modified,
    /// An object was deleted, or left the selector.
    Deleted,
    /// Nothing but a newer version.
    Bookmark,
    /// The watch has failed.
    Error,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Added, Self::Modified, Self::Deleted, Self::Bookmark, Self::Error];

    /// The kind as it stands on the wire.
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
}

/// An event of a watch; the object is still the text that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// What happened.
    pub kind: EventKind,
    /// JSON of the object.
    pub object: &'a str,
}

impl<'a> Event<'a> {
    /// Splits a line into kind and object without looking into the object.
    ///
    /// The API server writes the two fields in a fixed order, so the object is what lies between: its decoder then is
    /// the only one that reads it. The object is only as well-formed as its decoder finds it; where that fails,
    /// [`parse`](Self::parse) tells whether the line was at fault.
    ///
    /// # Errors
    /// When the line is no event.
    pub fn split(line: &'a [u8]) -> Result<Self, serde_json::Error> {
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
            Some(Self { kind, object: std::str::from_utf8(object).ok()? })
        })
    }

    /// Reads a line as JSON, with its fields in any order and others between them.
    ///
    /// # Errors
    /// When the line is no event.
    pub fn parse(line: &'a [u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(rename = "type")]
            kind: EventKind,
            #[serde(borrow)]
            object: &'a RawValue,
        }
        let Line { kind, object } = serde_json::from_slice(line)?;
        Ok(Self { kind, object: object.get() })
    }
}

/// What a bookmark says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bookmark {
    pub(crate) version: ResourceVersion,
    /// Whether it ends the initial events of a streaming list.
    pub(crate) ends_initial_events: bool,
}

impl Bookmark {
    pub(crate) fn read(json: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Object<'a> {
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
        let Object { metadata } = serde_json::from_str(json)?;
        let ends = metadata.annotations.and_then(|annotations| annotations.initial_events_end);
        Ok(Self { version: metadata.resource_version, ends_initial_events: ends.as_deref() == Some("true") })
    }
}

/// A page of a list; the items are still the text that came, and carry neither `apiVersion` nor `kind`.
#[derive(Debug, Deserialize)]
pub(crate) struct Page<'a> {
    pub(crate) metadata: PageMetadata,
    // Go serves an empty list as `null`.
    #[serde(borrow, default)]
    pub(crate) items: Option<Vec<&'a RawValue>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageMetadata {
    #[serde(default)]
    pub(crate) resource_version: ResourceVersion,
    #[serde(default, rename = "continue")]
    pub(crate) continue_token: Option<String>,
}

/// Why the API server refused; also what an `ERROR` event carries.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) code: u16,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) details: Option<StatusDetails>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StatusDetails {
    pub(crate) causes: Option<Vec<StatusCause>>,
    pub(crate) retry_after_seconds: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StatusCause {
    pub(crate) reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_every_kind_of_event() {
        for kind in EventKind::ALL {
            let line = format!(r#"{{"type":"{}","object":{{"a":{{"b":1}}}}}}"#, kind.as_str());
            let expected = Event { kind, object: r#"{"a":{"b":1}}"# };
            assert_eq!(Event::split(line.as_bytes()).unwrap(), expected);
            assert_eq!(Event::parse(line.as_bytes()).unwrap(), expected);
        }
    }

    #[test]
    fn reads_fields_in_any_order() {
        let line = br#"{ "object": {"a":1}, "more": true, "type": "ADDED" }"#;
        assert_eq!(Event::split(line).unwrap(), Event { kind: EventKind::Added, object: r#"{"a":1}"# });
    }

    #[test]
    fn a_line_that_is_no_event_is_an_error() {
        for line in [&b"{"[..], b"{}", br#"{"type":"NEW","object":{}}"#, b"\xff", br#"{"type":"ADDED"}"#] {
            assert!(Event::split(line).is_err(), "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn a_bookmark_ends_the_initial_events_when_it_says_so() {
        let bookmark = |annotations: &str| {
            Bookmark::read(&format!(r#"{{"metadata":{{"resourceVersion":"7"{annotations}}}}}"#)).unwrap()
        };
        let rows = [
            ("", false),
            (r#","annotations":null"#, false),
            (r#","annotations":{"a":"b"}"#, false),
            (r#","annotations":{"k8s.io/initial-events-end":"false"}"#, false),
            (r#","annotations":{"k8s.io/initial-events-end":"true"}"#, true),
        ];
        for (annotations, ends) in rows {
            let expected = Bookmark { version: ResourceVersion::from(7), ends_initial_events: ends };
            assert_eq!(bookmark(annotations), expected, "{annotations}");
        }
    }

    #[test]
    fn reads_pages_with_and_without_items() {
        let page: Page<'_> =
            serde_json::from_str(r#"{"metadata":{"resourceVersion":"5","continue":"c"},"items":[{"a":1}]}"#).unwrap();
        assert_eq!(page.metadata.continue_token.as_deref(), Some("c"));
        assert_eq!(page.items.unwrap()[0].get(), r#"{"a":1}"#);
        let empty: Page<'_> = serde_json::from_str(r#"{"metadata":{"resourceVersion":"5"},"items":null}"#).unwrap();
        assert!(empty.items.is_none());
    }
}
