//! The record of one reconcile, as the journal keeps it.

use std::time::Duration;

use jiff::Timestamp;
use kcm_api::{ObjectKey, ResourceVersion};

use super::notes::{Note, Noted, ResourceName};
use super::trigger::Trigger;

/// The record of one reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Time at which the reconcile ended.
    pub at: Timestamp,
    /// Duration of the reconcile.
    pub took: Duration,
    /// Number of the try in a row, from 1.
    pub attempt: u32,
    /// Why the key was enqueued.
    pub triggers: Box<[Trigger]>,
    /// The object that the key names, as the cache showed it. `None` if the loop has no such cache.
    pub seen: Option<Seen>,
    /// The decisions, writes and events of the reconcile.
    pub noted: Noted,
    /// Outcome of the reconcile, with its error.
    pub ended: Ended,
}

/// The object of a key in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// It is not there.
    Missing,
    /// It is there, with that resource version.
    Version(ResourceVersion),
    /// As [`Version`](Self::Version), and it is being deleted.
    Terminating(ResourceVersion),
}

/// The outcome of a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The reconcile has succeeded.
    Succeeded {
        /// After which delay it asked to be called again.
        requeue_after: Option<Duration>,
    },
    /// The reconcile has failed.
    Failed {
        /// The class of the error.
        class: &'static str,
        /// The error with its causes.
        error: Box<str>,
    },
    /// It failed while the API server was unreachable, which counts as no failure.
    Unreachable {
        /// The error with its causes.
        error: Box<str>,
    },
    /// It panicked, with this message.
    Panicked(Box<str>),
}

/// Overhead of an allocation, in bytes.
const ALLOCATION: usize = 16;

const fn text(length: usize) -> usize {
    if length == 0 { 0 } else { length + ALLOCATION }
}

fn key(key: Option<&ObjectKey>) -> usize {
    // The counters of a shared string are two words; namespaces are shared with the caches.
    key.map_or(0, |key| text(key.name().len() + 2 * size_of::<usize>()))
}

impl Decision {
    /// The memory that it takes beside itself, at most.
    pub(super) fn heap_bytes(&self) -> usize {
        let triggers: usize =
            self.triggers.iter().map(|trigger| size_of::<Trigger>() + key(trigger.object.as_ref())).sum();
        let notes: usize = self.noted.notes.iter().map(|note| size_of::<Note>() + bytes_of(note)).sum();
        let ended = match &self.ended {
            Ended::Succeeded { .. } => 0,
            Ended::Failed { error, .. } | Ended::Unreachable { error } | Ended::Panicked(error) => text(error.len()),
        };
        triggers + notes + ended + 2 * ALLOCATION
    }

    /// Gives back what its vectors have too much.
    pub(super) fn shrink(&mut self) {
        self.noted.notes.shrink_to_fit();
    }
}

fn bytes_of(note: &Note) -> usize {
    match note {
        Note::Words(words) => text(words.len()),
        Note::Wrote(wrote) => {
            let resource = match &wrote.resource {
                ResourceName::Cache(_) => 0,
                ResourceName::Other(name) => text(name.len()),
            };
            resource + key(wrote.object.as_ref()) + wrote.error.as_deref().map_or(0, |error| text(error.len()))
        }
        Note::Recorded { reason, message, count: _ } => text(reason.len()) + text(message.len()),
    }
}
