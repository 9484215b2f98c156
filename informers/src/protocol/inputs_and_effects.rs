//! What the protocol hears and says.

use std::fmt;
use std::time::Duration;

use kcm_api::ResourceVersion;

use super::Protocol;

/// A question to the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListWatchRequest {
    /// Everything there is as initial events, then what changes, on one stream.
    StreamingList {
        /// How long the server is to keep the stream.
        timeout: Duration,
    },
    /// One page of a list, the first where there is no token.
    Page {
        /// Where the page begins.
        continue_token: Option<String>,
    },
    /// What changes after a version.
    Watch {
        /// The version.
        from: ResourceVersion,
        /// How long the server is to keep the stream.
        timeout: Duration,
    },
}

impl ListWatchRequest {
    /// Whether what was listed before is void.
    #[must_use]
    pub const fn begins_a_list(&self) -> bool {
        matches!(self, Self::StreamingList { .. } | Self::Page { continue_token: None })
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

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The [deadline](Protocol::deadline) has passed.
    Deadline,
    /// The server has accepted the question; its body follows.
    Answered,
    /// Some bytes of the body have come.
    ResponseEvent,
    /// An object came, with its version where that can be read.
    Object(Option<ResourceVersion>),
    /// A bookmark came.
    Bookmark {
        /// Everything up to this version has been sent.
        version: ResourceVersion,
        /// Whether this ends the initial events of a streaming list.
        ends_initial_events: bool,
    },
    /// A page of a list came, all of it.
    Page {
        /// Version of the list.
        version: ResourceVersion,
        /// Where the next page begins, if this was not the last.
        continue_token: Option<String>,
    },
    /// The server ended the body in good order.
    Ended,
    /// The exchange failed.
    Failed(Failure),
}

/// How an exchange failed, as far as that decides what to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// What was known is of no use any more: the server does not have that version or that token (410).
    Expired,
    /// The server does not understand the question.
    Unsupported,
    /// The server refused for another reason, or sent what cannot be read.
    Refused,
    /// The server wants to be left alone for a while.
    Busy {
        /// For how long, if it said so.
        retry_after: Option<Duration>,
    },
    /// No answer came, or it broke off.
    Broken,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// ListWatchRequest, dropping any exchange that is still open.
    Open(ListWatchRequest),
    /// Drop the open exchange, and what was staged.
    Close(Option<Trouble>),
    /// Lay the object aside until the list is complete.
    Stage,
    /// Apply the event to the cache.
    Apply,
    /// What was staged is everything there is at this version: make it the cache.
    Commit(ResourceVersion),
    /// Everything up to this version has been seen.
    Advance(ResourceVersion),
}

/// Why the protocol itself gave up an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The server did not answer in time.
    #[error("no answer within {} s", Protocol::ANSWERED_WITHIN.as_secs())]
    NoAnswer,
    /// Nothing came for too long.
    #[error("nothing was heard for {} s", Protocol::SILENCE.as_secs())]
    Silent,
    /// A watch ended at once, with nothing on it.
    #[error("it was closed within {} s, before anything was sent", Protocol::SHORT.as_secs())]
    Short,
    /// A streaming list ended, or fell silent, before its end was marked.
    #[error("its initial events were never marked as complete")]
    Unfinished,
}
