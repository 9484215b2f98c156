//! How an informer is doing, in words for an operator.

use std::collections::BTreeMap;
use std::time::Duration;

use kcm_api::{ObjectKey, Resource, ResourceVersion};
use tokio::time::Instant;

use crate::list_options::ListOptions;

/// What an informer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The factory has not started it yet.
    NotStarted,
    /// It is getting everything there is.
    Listing,
    /// It is being told what changes.
    Watching,
    /// It has failed and waits before it tries again.
    BackingOff,
    /// It was stopped; its cache stays as it was.
    Stopped,
}

/// How an informer is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InformerStatus {
    /// What it lists and watches.
    pub resource: Resource,
    /// Which objects of that.
    pub list_options: ListOptions,
    /// Type that objects are kept as.
    pub view: &'static str,
    /// Other views and list options of the same resource, each of which is a watch of its own.
    pub also_watched_as: Vec<String>,
    /// What it is about.
    pub phase: Phase,
    /// For how long it has been about that.
    pub phase_for: Duration,
    /// Whether the cache has once held everything; stays so through later failures.
    pub synced: bool,
    /// Why it is not synced, or what is wrong now; absent while all is well.
    pub reason: Option<String>,
    /// The last failure, kept after it was overcome.
    pub last_error: Option<String>,
    /// How many objects the cache holds.
    pub objects: usize,
    /// How many objects the cache should hold in another state but cannot decode.
    pub undecodable: usize,
    /// How often everything was listed.
    pub lists: u64,
    /// The version up to which the cache has seen everything.
    pub last_sync_resource_version: ResourceVersion,
}

/// What a status is made of, beside the cache itself.
#[derive(Debug)]
pub(crate) struct Record {
    phase: Phase,
    since: Instant,
    trouble: Option<String>,
    pub(crate) last_error: Option<String>,
    pub(crate) lists: u64,
    pub(crate) unread: UndecodableObjects,
}

/// Objects that the server has and we cannot decode.
#[derive(Debug, Default, Clone)]
pub(crate) struct UndecodableObjects {
    by_key: BTreeMap<ObjectKey, String>,
    /// Those whose very key cannot be read; only a new list forgets them.
    nameless: BTreeMap<String, usize>,
}

impl UndecodableObjects {
    pub(crate) fn note(&mut self, key: Option<&ObjectKey>, error: String) {
        match key {
            Some(key) => {
                self.by_key.insert(key.clone(), error);
            }
            None => *self.nameless.entry(error).or_default() += 1,
        }
    }

    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        self.by_key.remove(key);
    }

    pub(crate) fn contains(&self, key: &ObjectKey) -> bool {
        self.by_key.contains_key(key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty() && self.nameless.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len() + self.nameless.values().sum::<usize>()
    }

    fn sentence(&self) -> Option<String> {
        let first = self.by_key.iter().map(|(key, error)| format!("{key}: {error}")).next();
        let first =
            first.or_else(|| self.nameless.keys().next().map(|error| format!("an object without a name: {error}")))?;
        Some(match self.len() {
            1 => format!("an object cannot be decoded: {first}"),
            count => format!("{count} objects cannot be decoded, the first: {first}"),
        })
    }
}

impl Record {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::NotStarted,
            since: Instant::now(),
            trouble: None,
            last_error: None,
            lists: 0,
            unread: UndecodableObjects::default(),
        }
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn phase_for(&self) -> Duration {
        self.since.elapsed()
    }

    pub(crate) fn enter(&mut self, phase: Phase) {
        if self.phase != phase {
            self.phase = phase;
            self.since = Instant::now();
        }
    }

    pub(crate) fn trouble(&mut self, text: String) {
        self.last_error = Some(text.clone());
        self.trouble = Some(text);
    }

    pub(crate) fn all_is_well(&mut self) {
        self.trouble = None;
    }

    pub(crate) fn reason(&self, synced: bool) -> Option<String> {
        if self.phase == Phase::Stopped {
            return Some("it was stopped".to_owned());
        }
        self.trouble.clone().or_else(|| self.unread.sentence()).or_else(|| {
            (!synced).then(|| match self.phase {
                Phase::NotStarted => "it has not been started".to_owned(),
                Phase::Listing | Phase::Watching | Phase::BackingOff | Phase::Stopped => {
                    "the first list has not been completed".to_owned()
                }
            })
        })
    }
}
