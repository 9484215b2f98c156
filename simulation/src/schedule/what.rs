//! [`What`]: the deviations from the default order. A real API server or machine can show each of them.

use std::fmt;
use std::time::Duration;

/// A deviation from the default order, at an [`Anchor`](crate::Anchor).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum What {
    /// The process is killed at the request, and another starts after a time.
    Kill {
        /// Before the API server gets the request, or after it has answered; the response is lost then.
        moment: Moment,
        /// Time until the next process starts.
        restart: Duration,
    },
    /// The API server performs the request, and the connection breaks before the response arrives.
    LoseResponse,
    /// The request waits before it reaches the API server.
    HoldRequest(Until),
    /// The response waits before it reaches the process.
    HoldResponse(Until),
    /// The delivery waits, and with it all later events of the cache.
    Hold(Until),
    /// The watch ends instead of the delivery, and the cache is filled again.
    Relist(Relist),
    /// The API server, or a proxy before it, fails the request with a status code.
    Fail {
        /// Before or after the request takes effect.
        moment: Moment,
        /// The HTTP status code: 429, 500, 503 or 504, or 409 for a write with a precondition.
        code: u16,
    },
    /// An action of the user, by its name in the scenario, happens before the request.
    Act(String),
}

/// A moment relative to the effect of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Moment {
    /// The request has no effect.
    Before,
    /// The request has taken effect.
    After,
}

/// The end of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Until {
    /// The process has sent so many further writes, events not counted.
    Writes(u32),
    /// So many events wait for the cache. For requests and responses: so many events of all caches were delivered.
    Events(u32),
    /// Nothing else can happen at this time.
    Rest,
    /// A time has passed.
    After(Duration),
}

/// The way in which a watch ends before the cache is filled again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relist {
    /// The stream ends normally. The watch resumes after the last event that the process has received.
    Clean,
    /// The stream ends after the events that wait and a bookmark. The watch resumes after the bookmark.
    Bookmark,
    /// The connection of the watch breaks.
    Broken,
    /// The stream ends, and the API server has compacted the versions since.
    Compacted,
    /// The API server sends the error 410 (Gone) on the stream.
    Expired,
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writes(count) => write!(f, "{count} writes"),
            Self::Events(count) => write!(f, "{count} events"),
            Self::Rest => f.write_str("rest"),
            Self::After(time) => write!(f, "{}ms", time.as_millis()),
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "before",
            Self::After => "after",
        })
    }
}

impl fmt::Display for Relist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "clean",
            Self::Bookmark => "bookmark",
            Self::Broken => "broken",
            Self::Compacted => "compacted",
            Self::Expired => "expired",
        })
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill { moment, restart } if restart.is_zero() => write!(f, "kill {moment}"),
            Self::Kill { moment, restart } => write!(f, "kill {moment}, restart after {}ms", restart.as_millis()),
            Self::LoseResponse => f.write_str("lose response"),
            Self::HoldRequest(until) => write!(f, "hold request until {until}"),
            Self::HoldResponse(until) => write!(f, "hold response until {until}"),
            Self::Hold(until) => write!(f, "hold until {until}"),
            Self::Relist(how) => write!(f, "relist {how}"),
            Self::Fail { moment, code } => write!(f, "fail {moment} {code}"),
            Self::Act(name) => write!(f, "act {name}"),
        }
    }
}
