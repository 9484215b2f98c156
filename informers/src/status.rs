//! The status of an informer, for operators.

use std::collections::BTreeMap;
use std::time::Duration;

use kcm_api::{ObjectKey, Resource, ResourceVersion};
use tokio::time::Instant;

use crate::list_options::ListOptions;

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
    /// The list options.
    pub list_options: ListOptions,
    /// The type of the objects in the cache.
    pub view: &'static str,
    /// Other views and list options of the same resource, each of which is a watch of its own.
    pub also_watched_as: Vec<String>,
    /// The phase.
    pub phase: Phase,
    /// How long it has been in that phase.
    pub phase_for: Duration,
    /// Whether it has synced; stays set through later failures.
    pub synced: bool,
    /// Why it has not synced, or the current error; absent without one.
    pub reason: Option<String>,
    /// The last error, kept after recovery.
    pub last_error: Option<String>,
    /// How many objects the cache holds.
    pub objects: usize,
    /// How many objects have a state that cannot be decoded.
    pub undecodable: usize,
    /// How many lists were completed.
    pub lists: u64,
    /// The resource version up to which the cache has applied all changes.
    pub last_sync_resource_version: ResourceVersion,
}

/// The part of the status that the cache does not hold.
#[derive(Debug)]
pub(crate) struct Record {
    phase: Phase,
    since: Instant,
    trouble: Option<String>,
    pub(crate) last_error: Option<String>,
    pub(crate) lists: u64,
    pub(crate) undecodable_objects: UndecodableObjects,
}

/// The objects that cannot be decoded.
#[derive(Debug, Default, Clone)]
pub(crate) struct UndecodableObjects {
    by_key: BTreeMap<ObjectKey, String>,
    /// The number of objects whose key cannot be read, by error; only a new list clears them.
    without_key: BTreeMap<String, usize>,
}

impl UndecodableObjects {
    pub(crate) fn note(&mut self, key: Option<&ObjectKey>, error: String) {
        match key {
            Some(key) => {
                self.by_key.insert(key.clone(), error);
            }
            None => *self.without_key.entry(error).or_default() += 1,
        }
    }

    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        self.by_key.remove(key);
    }

    pub(crate) fn contains(&self, key: &ObjectKey) -> bool {
        self.by_key.contains_key(key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty() && self.without_key.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len() + self.without_key.values().sum::<usize>()
    }

    fn sentence(&self) -> Option<String> {
        let first = self.by_key.iter().map(|(key, error)| format!("{key}: {error}")).next();
        let first = first
            .or_else(|| self.without_key.keys().next().map(|error| format!("an object without a name: {error}")))?;
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
            undecodable_objects: UndecodableObjects::default(),
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
        if self.phase == Phase::NotServed {
            return Some("the API server does not serve the resource; it is listed when discovery has it".to_owned());
        }
        self.trouble.clone().or_else(|| self.undecodable_objects.sentence()).or_else(|| {
            (!synced).then(|| match self.phase {
                Phase::NotStarted => "it has not been started".to_owned(),
                Phase::Listing | Phase::Watching | Phase::BackingOff | Phase::NotServed | Phase::Stopped => {
                    "the first list has not been completed".to_owned()
                }
            })
        })
    }
}
