//! [`Anchor`]: a point of a run that stays the same if another part of the run changes.

use std::fmt;

/// A point of a run.
///
/// Anchors count by loop and key, or by cache. A number of steps of the whole run would shift with each perturbation
/// before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Anchor {
    /// Number of the process, counted from 1. A process that starts after a kill has the next number.
    pub process: u32,
    /// The event within that process.
    pub place: Place,
    /// Number of the event, counted from 1.
    pub number: u32,
}

/// An event that an anchor counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A request of a loop for a key.
    Request {
        /// Name of the loop.
        of: String,
        /// The key. Generated parts of names are `*`.
        key: String,
        /// The requests that count.
        access: Access,
    },
    /// A key that a loop takes from its queue.
    Taken {
        /// Name of the loop.
        of: String,
        /// The key. Generated parts of names are `*`.
        key: String,
    },
    /// A delivery of events to a cache.
    Delivery {
        /// Plural name of the resource. With a second cache of the resource, the selector follows in brackets.
        cache: String,
    },
    /// The start of the process.
    Start,
    /// A step of the scheduler or a kubelet. It is counted anew for each process.
    Kubelet,
}

/// The requests that an anchor counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    /// Requests that read. Watches and the lists of informers are no such requests.
    Read,
    /// Requests that write, without events.
    Write,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.process != 1 {
            write!(f, "process {} ", self.process)?;
        }
        match &self.place {
            Place::Request { of, key, access } => write!(f, "{of} {key} {access} {}", self.number),
            Place::Taken { of, key } => write!(f, "{of} {key} taken {}", self.number),
            Place::Delivery { cache } => write!(f, "cache {cache} delivery {}", self.number),
            Place::Start => write!(f, "start {}", self.number),
            Place::Kubelet => write!(f, "kubelet {}", self.number),
        }
    }
}
