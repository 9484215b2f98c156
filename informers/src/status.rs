//! The status of an informer, for operators.

use std::time::Duration;

use kcm_api::{Resource, ResourceVersion};
use tokio::time::Instant;

use crate::list_options::ListOptions;
use crate::protocol::Protocol;

/// The phase of an informer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The factory has not started it yet.
    NotStarted,
    /// It lists all objects.
    Listing,
    /// It watches for changes.
    Watching,
    /// It has failed and waits before it tries again.
    BackingOff,
    /// The API server does not serve the resource any more; its cache is empty.
    NotServed,
    /// It was stopped; its cache stays as it was.
    Stopped,
}

/// The status of an informer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InformerStatus {
    /// The resource that it lists and watches.
    pub resource: Resource,
    /// The list options of the informer.
    pub list_options: ListOptions,
    /// The type of the objects in the cache.
    pub view: &'static str,
    /// Other views and list options of the same resource, each of which is a watch of its own.
    pub also_watched_as: Vec<String>,
    /// Phase of the list and watch.
    pub phase: Phase,
    /// Time for which it has been in that phase.
    pub phase_for: Duration,
    /// Whether it has synced; stays set through later failures.
    pub synced: bool,
    /// Why it has not synced, or the current error; absent without one.
    pub reason: Option<String>,
    /// The last error, kept after recovery.
    pub last_error: Option<String>,
    /// Number of objects in the cache.
    pub objects: usize,
    /// Number of objects that cannot be decoded, and so are not in the cache.
    pub undecodable: usize,
    /// Number of lists that were completed.
    pub lists: u64,
    /// Time since the last watch event was received, including bookmarks.
    pub last_event_ago: Option<Duration>,
    /// Time since a list, a change or a bookmark confirmed that the cache is current, or since the end of an outage if
    /// that is later. `None` before the first list, and while the resource is not watched. If the API server sends no
    /// bookmarks, the response to the next watch after a quiet watch counts as well.
    pub confirmed_ago: Option<Duration>,
    /// `true` once a bookmark was received.
    pub has_bookmarks: bool,
    /// The resource version up to which the cache has applied all changes.
    pub last_sync_resource_version: ResourceVersion,
}

impl InformerStatus {
    /// Time after which a cache that nothing confirms is stale. An API server sends a bookmark every minute, and a watch
    /// that is silent for as long is replaced.
    pub const STALE_AFTER: Duration = Protocol::SILENCE;

    /// Time that the response to the next watch may take after a quiet watch without bookmarks, which is replaced after
    /// [`STALE_AFTER`](Self::STALE_AFTER).
    const REPLACED_WITHIN: Duration = Duration::from_secs(10);

    /// Returns `true` if it has synced, and nothing has confirmed its cache for [`STALE_AFTER`](Self::STALE_AFTER), or a
    /// little longer if the API server sends no bookmarks: its watch fails, or is silent.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        let more = if self.has_bookmarks { Duration::ZERO } else { Self::REPLACED_WITHIN };
        self.synced && self.confirmed_ago.is_some_and(|ago| ago > Self::STALE_AFTER + more)
    }
}

/// The part of the status that the cache does not hold.
#[derive(Debug)]
pub(crate) struct Record {
    phase: Phase,
    since: Instant,
    trouble: Option<String>,
    pub(crate) last_error: Option<String>,
    pub(crate) lists: u64,
    last_event: Option<Instant>,
    /// When the cache was last confirmed to be current.
    confirmed: Option<Instant>,
    /// `true` after the first bookmark.
    has_bookmarks: bool,
    /// Whether the server has accepted the last watch, which has not failed since.
    was_watching: bool,
}

impl Record {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::NotStarted,
            since: Instant::now(),
            trouble: None,
            last_error: None,
            lists: 0,
            last_event: None,
            confirmed: None,
            has_bookmarks: false,
            was_watching: false,
        }
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn phase_for(&self) -> Duration {
        self.since.elapsed()
    }

    pub(crate) fn enter(&mut self, phase: Phase) {
        if phase != Phase::Watching {
            self.was_watching = false;
        }
        if self.phase != phase {
            self.phase = phase;
            self.since = Instant::now();
        }
    }

    pub(crate) fn received_event(&mut self) {
        self.last_event = Some(Instant::now());
    }

    /// The API server sends bookmarks, so that a watch without one is suspicious.
    pub(crate) const fn received_bookmark(&mut self) {
        self.has_bookmarks = true;
    }

    pub(crate) const fn has_bookmarks(&self) -> bool {
        self.has_bookmarks
    }

    /// The server accepts a watch. If it sends no bookmarks, and the watch before was quiet to its end, nothing else
    /// confirms the cache: the server goes on from its version.
    pub(crate) fn watches(&mut self) {
        self.trouble = None;
        if std::mem::replace(&mut self.was_watching, true) && !self.has_bookmarks {
            self.confirm();
        }
    }

    /// A list, a change or a bookmark confirms that the cache is current.
    pub(crate) fn confirm(&mut self) {
        self.confirmed = Some(Instant::now());
    }

    /// The end of an outage: the cache cannot have been confirmed during it.
    pub(crate) fn outage_ended(&mut self) {
        if self.confirmed.is_some() {
            self.confirm();
        }
    }

    pub(crate) fn confirmed_ago(&self) -> Option<Duration> {
        match self.phase {
            Phase::Listing | Phase::Watching | Phase::BackingOff => Some(self.confirmed?.elapsed()),
            Phase::NotStarted | Phase::NotServed | Phase::Stopped => None,
        }
    }

    pub(crate) fn last_event_ago(&self) -> Option<Duration> {
        self.last_event.map(|at| at.elapsed())
    }

    pub(crate) fn trouble(&mut self, text: String) {
        self.last_error = Some(text.clone());
        self.trouble = Some(text);
    }

    pub(crate) fn all_is_well(&mut self) {
        self.trouble = None;
    }

    /// Why it has not synced, or what is wrong; `undecodable` is what is said of objects that cannot be decoded.
    pub(crate) fn reason(&self, synced: bool, undecodable: Option<String>) -> Option<String> {
        if self.phase == Phase::Stopped {
            return Some("it was stopped".to_owned());
        }
        if self.phase == Phase::NotServed {
            return Some("the API server does not serve the resource; it is listed when discovery has it".to_owned());
        }
        self.trouble.clone().or(undecodable).or_else(|| {
            (!synced).then(|| match self.phase {
                Phase::NotStarted => "it has not been started".to_owned(),
                Phase::Listing | Phase::Watching | Phase::BackingOff | Phase::NotServed | Phase::Stopped => {
                    "the first list has not been completed".to_owned()
                }
            })
        })
    }
}
