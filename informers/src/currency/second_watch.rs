//! A watch of versions: of each event only the version is read.

use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use futures::future::select_all;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use http::{HeaderValue, Request};
use kcm_api::{Resource, ResourceVersion};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;

use crate::http_exchange::{HttpExchange, ResponseEvent};
use crate::list_options::ListOptions;
use crate::protocol::Failure;

/// The `timeoutSeconds` of a second watch. The API server sends a bookmark two seconds before the end of a watch, which is
/// a second after its beginning.
///
/// # Upstream
/// `nextBookmarkTime` in `apiserver/pkg/storage/cacher/cache_watcher.go`
pub(super) const TIMEOUT_SECONDS: &str = "3";

/// Longest line that is read: the metadata of one object.
const LONGEST_LINE: usize = 4 << 20;

/// A watch of the versions of one resource.
pub(super) struct SecondWatch {
    exchange: HttpExchange,
    received: BytesMut,
}

/// An event of the watch, or its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shown {
    Event(ResourceVersion),
    Bookmark {
        version: ResourceVersion,
        ends_initial_events: bool,
    },
    /// The watch has ended, or has failed.
    Ended {
        is_expired: bool,
    },
}

/// The second watches of one cache.
#[derive(Default)]
pub(super) struct Watches(Vec<SecondWatch>);

impl Watches {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, watch: SecondWatch) {
        self.0.push(watch);
    }

    /// Returns what one of the watches shows next. Never returns without a watch. Nothing is lost if the future is dropped.
    ///
    /// A watch has one bookmark, and is closed after it.
    pub(super) async fn next(&mut self) -> Shown {
        if self.is_empty() {
            return std::future::pending().await;
        }
        let (shown, at, _) = select_all(self.0.iter_mut().map(|watch| Box::pin(watch.next()))).await;
        match shown {
            Shown::Event(_) => {}
            Shown::Bookmark { .. } | Shown::Ended { .. } => drop(self.0.swap_remove(at)),
        }
        shown
    }
}

impl SecondWatch {
    /// Watches the objects of `list_options` from that version.
    pub(super) fn open(
        client: &Client,
        resource: &kcm_api::Resource,
        list_options: &ListOptions,
        from: &ResourceVersion,
    ) -> Self {
        let from = from.to_string();
        let query = [
            ("watch", "1"),
            ("resourceVersion", &from),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", TIMEOUT_SECONDS),
        ];
        Self::send(client, resource, list_options, &query)
    }

    /// Sends a watch with that query.
    pub(super) fn send(
        client: &Client,
        resource: &kcm_api::Resource,
        list_options: &ListOptions,
        query: &[(&str, &str)],
    ) -> Self {
        let request = versions_request(resource, list_options, query);
        Self { exchange: HttpExchange::open(client.clone(), request), received: BytesMut::new() }
    }

    /// Returns what the watch shows next. Nothing is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> Shown {
        loop {
            while let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line = self.received.split_to(end);
                self.received.advance(1);
                if let Some(shown) = read(&line) {
                    return shown;
                }
            }
            match self.exchange.next().await {
                ResponseEvent::Started(response) => self.exchange = HttpExchange::Reading(response.body),
                ResponseEvent::Chunk(chunk) if self.received.len() + chunk.len() <= LONGEST_LINE => {
                    self.received.extend_from_slice(&chunk);
                }
                ResponseEvent::Failed(cause) => {
                    return Shown::Ended { is_expired: cause.class() == Failure::Expired };
                }
                ResponseEvent::Chunk(_) | ResponseEvent::Ended => return Shown::Ended { is_expired: false },
            }
        }
    }
}

/// Reads an event; `None` for an event of a type that is not known.
fn read(line: &[u8]) -> Option<Shown> {
    #[derive(Deserialize)]
    struct Line {
        r#type: String,
        object: Object,
    }
    #[derive(Deserialize)]
    struct Object {
        #[serde(default)]
        metadata: Metadata,
        /// The code of an error, whose object is a status.
        #[serde(default)]
        code: u16,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Metadata {
        resource_version: ResourceVersion,
        annotations: Option<Annotations>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Annotations {
        #[serde(rename = "k8s.io/initial-events-end")]
        initial_events_end: Option<String>,
    }
    let Ok(Line { r#type, object: Object { metadata, code } }) = serde_json::from_slice(line) else {
        return Some(Shown::Ended { is_expired: false });
    };
    let version = metadata.resource_version;
    Some(match &*r#type {
        "ADDED" | "MODIFIED" | "DELETED" => Shown::Event(version),
        "BOOKMARK" => {
            let annotations = metadata.annotations.unwrap_or_default();
            let ends_initial_events = annotations.initial_events_end.as_deref() == Some("true");
            Shown::Bookmark { version, ends_initial_events }
        }
        "ERROR" => Shown::Ended { is_expired: code == 410 },
        _ => return None,
    })
}

// A server that cannot reduce objects to their metadata sends whole objects.
const WATCHED: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
const LISTED: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json");

/// Pause before a request of a proof that has failed or ended is sent again.
pub(super) const PAUSE: Duration = Duration::from_millis(250);

/// A request for the metadata of objects, as JSON.
pub(super) fn versions_request(
    resource: &Resource,
    list_options: &ListOptions,
    query: &[(&str, &str)],
) -> Request<Body> {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    if let Some(selector) = &list_options.label_selector {
        pairs.append_pair("labelSelector", &selector.to_string());
    }
    if let Some(selector) = &list_options.field_selector {
        pairs.append_pair("fieldSelector", selector);
    }
    pairs.extend_pairs(query);
    let uri = format!("{}?{}", resource.collection_path(list_options.namespace.as_deref()), pairs.finish());
    let is_watch = query.contains(&("watch", "1"));
    let request = Request::get(uri).header(ACCEPT, if is_watch { WATCHED } else { LISTED });
    // A compressed watch may end each event with its member, after which common decoders end.
    let request = request.header(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    request.body(Body::empty()).expect("a path of resource names and an encoded query must be a valid request")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_event_the_version_is_read() {
        for (line, shown) in [
            (
                r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}}}"#,
                Some(Shown::Event("7".into())),
            ),
            (
                r#"{"type":"DELETED","object":{"metadata":{"resourceVersion":"8","annotations":{"a":"b"}}}}"#,
                Some(Shown::Event("8".into())),
            ),
            (
                r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"},"spec":{"containers":null}}}"#,
                Some(Shown::Bookmark { version: "9".into(), ends_initial_events: false }),
            ),
            (
                r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
                Some(Shown::Bookmark { version: "9".into(), ends_initial_events: true }),
            ),
            (
                r#"{"type":"ERROR","object":{"kind":"Status","metadata":{},"code":410}}"#,
                Some(Shown::Ended { is_expired: true }),
            ),
            (r#"{"type":"ERROR","object":{"kind":"Status","code":500}}"#, Some(Shown::Ended { is_expired: false })),
            (r#"{"type":"FUTURE","object":{"metadata":{"resourceVersion":"9"}}}"#, None),
            ("{", Some(Shown::Ended { is_expired: false })),
        ] {
            assert_eq!(read(line.as_bytes()), shown, "{line}");
        }
    }
}
