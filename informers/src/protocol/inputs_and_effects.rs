//! The requests, inputs, effects and failures of the protocol.

use std::fmt;
use std::time::Duration;

use kcm_api::ResourceVersion;

use super::Protocol;

/// A list or watch request to the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListWatchRequest {
    /// A watch with `sendInitialEvents`: all objects as initial events, then changes.
    StreamingList {
        /// The `timeoutSeconds` of the request.
        timeout: Duration,
    },
    /// One page of a list; without a token, the first page.
    Page {
        /// The `continue` token of the previous page.
        continue_token: Option<String>,
        /// The greatest number of objects on the page.
        limit: u32,
    },
    /// A watch for changes after a version.
    Watch {
        /// The resource version to watch from.
        from: ResourceVersion,
        /// The `timeoutSeconds` of the request.
        timeout: Duration,
    },
}

impl ListWatchRequest {
    /// Returns `true` if it begins a new list.
    #[must_use]
    pub const fn begins_a_list(&self) -> bool {
        matches!(self, Self::StreamingList { .. } | Self::Page { continue_token: None, .. })
    }
}

impl fmt::Display for ListWatchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StreamingList { .. } => "streaming list",
            Self::Page { .. } => "list",
            Self::Watch { .. } => "watch",
        })
    }
}

/// An input of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The [deadline](Protocol::deadline) has passed.
    Deadline,
    /// A successful response has begun; its body follows.
    ResponseStarted,
    /// Bytes of the body were received.
    Data,
    /// An object was received, with its version if that can be decoded.
    Object(Option<ResourceVersion>),
    /// An event was received that is too long or malformed: of its object nothing is known.
    UnreadableEvent,
    /// A bookmark was received.
    Bookmark {
        /// The version up to which all changes have been sent.
        version: ResourceVersion,
        /// Whether it ends the initial events of a streaming list.
        ends_initial_events: bool,
    },
    /// A whole page of a list was received.
    Page {
        /// Version of the list.
        version: ResourceVersion,
        /// Token of the next page, if this is not the last page.
        continue_token: Option<String>,
    },
    /// A page of a list is longer than [`Protocol::LONGEST_PAGE`], and its rest is not read.
    PageTooLarge,
    /// The server ended the body.
    Ended,
    /// The exchange failed with this cause.
    Failed(Failure),
}

/// The class of a failed exchange, which decides the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The server does not have the version or the token any more (410).
    Expired,
    /// The server does not support the request.
    Unsupported,
    /// The server refused for another reason, or the response cannot be read.
    Refused,
    /// Authentication, authorization or a missing route refused the request before the server looked at its version.
    Denied,
    /// The server is overloaded and asks to retry later.
    Busy {
        /// For how long, if it said so.
        retry_after: Option<Duration>,
    },
    /// The connection failed or broke, or the server cannot serve: nothing is wrong with the request.
    Broken,
    /// The informer panicked: the cache may be incomplete.
    Panicked,
}

/// An effect for the reflector to perform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// There is nothing to do.
    Nothing,
    /// Send a request, and drop an open exchange.
    Open(ListWatchRequest),
    /// Drop the open exchange and the staged objects.
    Close(Option<Trouble>),
    /// Stage the object until the list is complete.
    Stage,
    /// Apply the event to the cache.
    Apply,
    /// Replace the contents of the cache by the staged objects, a complete list at this version.
    Commit(ResourceVersion),
    /// Move the last sync resource version to this version.
    Advance(ResourceVersion),
}

/// The reason why the protocol closed an exchange itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The response did not begin in time.
    #[error("no response within {} s", Protocol::ANSWERED_WITHIN.as_secs())]
    NoAnswer,
    /// The body had no data for too long.
    #[error("no data for {} s", Protocol::SILENCE.as_secs())]
    Silent,
    /// A watch ended at once, without an event.
    #[error("it was closed within {} s, before anything was sent", Protocol::SHORT.as_secs())]
    Short,
    /// A streaming list ended, or fell silent, before its end was marked.
    #[error("its initial events were never marked as complete")]
    Unfinished,
    /// A page with a single object is too large.
    #[error("a page of one object is longer than {} bytes", Protocol::LONGEST_PAGE)]
    TooLarge,
}
