//! Facts about volumes on nodes that no object holds.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::plan::{Memory, next_back_off};

/// An operation: attaching or detaching a volume.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Operation {
    /// Start of the current attempt.
    since: Option<Timestamp>,
    /// Start of the first attempt, for metrics.
    first: Option<Timestamp>,
    /// End of the wait after the last failure, and its length.
    back_off: Option<(Timestamp, SignedDuration)>,
}

impl Operation {
    /// Starts an attempt, unless one has started.
    pub(super) fn start(&mut self, now: Timestamp) {
        self.since.get_or_insert(now);
        self.first.get_or_insert(now);
    }

    /// Starts the next attempt.
    pub(super) fn restart(&mut self, now: Timestamp) {
        self.since = Some(now);
        self.first.get_or_insert(now);
    }

    pub(super) const fn is_started(&self) -> bool {
        self.first.is_some()
    }

    /// Returns the end of the wait after the last failure.
    pub(super) fn next_attempt(&self) -> Option<Timestamp> {
        self.back_off.map(|(end, _)| end)
    }

    /// Notes that the attempt failed. The next one starts when the wait ends.
    pub(super) fn fail(&mut self, now: Timestamp) {
        let wait = next_back_off(self.back_off.map(|(_, wait)| wait));
        let end = now.saturating_add(wait).unwrap_or(Timestamp::MAX);
        self.back_off = Some((end, wait));
        self.since = Some(end);
        self.first.get_or_insert(now);
    }

    /// Returns the time since the first attempt.
    pub(super) fn elapsed(&self, now: Timestamp) -> SignedDuration {
        self.first.map_or(SignedDuration::ZERO, |first| now.duration_since(first))
    }
}

/// The facts about a volume on a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) unwanted_since: Option<Timestamp>,
    pub(super) attach: Operation,
    pub(super) detach: Operation,
    pub(super) was_forced: bool,
    pub(super) is_conflict_reported: bool,
    /// `true` if the volume is to be reported again, because the kubelet uses it after all.
    pub(super) is_restored: bool,
}

impl Facts {
    /// Returns the facts that the plan reads.
    pub(super) fn memory(&self, is_wanted: bool) -> Memory {
        let operation = if is_wanted { &self.attach } else { &self.detach };
        Memory {
            unwanted_since: self.unwanted_since,
            attempt_since: operation.since,
            attach_after: self.attach.next_attempt(),
            detach_after: self.detach.next_attempt(),
            was_forced: self.was_forced,
            is_conflict_reported: self.is_conflict_reported,
        }
    }
}

/// The facts of all volumes. A volume on a node without facts has no entry.
#[derive(Debug, Default)]
pub(super) struct Memories {
    facts: Mutex<HashMap<Box<str>, BTreeMap<String, Facts>>>,
    /// Deleted nodes that did not use the volume at that time.
    idle: Mutex<HashMap<Box<str>, BTreeSet<String>>>,
}

impl Memories {
    pub(super) fn of(&self, volume: &str) -> BTreeMap<String, Facts> {
        self.facts.lock().get(volume).cloned().unwrap_or_default()
    }

    /// Replaces the facts of a volume.
    pub(super) fn set(&self, volume: &str, mut facts: BTreeMap<String, Facts>) {
        facts.retain(|_, facts| *facts != Facts::default());
        let mut all = self.facts.lock();
        if facts.is_empty() {
            all.remove(volume);
        } else {
            all.insert(volume.into(), facts);
        }
    }

    /// Notes that a node was deleted that did not use the volume.
    pub(super) fn note_idle(&self, volume: &str, node: &str) {
        self.idle.lock().entry(volume.into()).or_default().insert(node.to_owned());
    }

    /// Returns the deleted nodes that did not use the volume. Forgets nodes that do not `matter` any more.
    pub(super) fn idle(&self, volume: &str, matters: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let mut idle = self.idle.lock();
        let Some(nodes) = idle.get_mut(volume) else { return BTreeSet::new() };
        nodes.retain(|node| matters(node));
        let nodes = nodes.clone();
        if nodes.is_empty() {
            idle.remove(volume);
        }
        nodes
    }
}
