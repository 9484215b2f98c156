//! The back-off of failed pods, per node.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::Uid;

/// The first delay.
const FIRST: SignedDuration = SignedDuration::from_secs(1);
/// The longest delay.
const LONGEST: SignedDuration = SignedDuration::from_mins(15);
/// After how long an entry is forgotten, so that the next failure counts as the first.
const KEPT: SignedDuration = SignedDuration::from_mins(30);
/// How often entries that are forgotten are removed.
const SWEEP: SignedDuration = SignedDuration::from_mins(1);

/// The failures that one delay follows: of one generation of one daemon set on one node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FailureKey {
    /// The daemon set.
    pub(super) set: Uid,
    /// Its observed generation: another template starts anew.
    pub(super) observed_generation: i64,
    /// The node.
    pub(super) node: Box<str>,
}

/// When failed pods may be deleted, so that a node which rejects pods does not get one after the other.
///
/// A kubelet that has no room rejects a pod at once. Its replacement is created after 1 s, then 2 s, up to 15 minutes.
///
/// # Upstream
/// `flowcontrol.Backoff` of `client-go`, from 1 s to 15 minutes.
#[derive(Debug, Default)]
pub(super) struct FailedPodBackoff {
    entries: HashMap<FailureKey, Entry>,
    swept: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    delay: SignedDuration,
    since: Timestamp,
}

impl Entry {
    fn is_forgotten(self, now: Timestamp) -> bool {
        now.duration_since(self.since) > KEPT
    }

    fn until(self) -> Timestamp {
        self.since.saturating_add(self.delay).expect("a duration without months adds to any time")
    }
}

impl FailedPodBackoff {
    /// Until when no failed pod may be deleted; absent if one may be deleted now.
    pub(super) fn blocked_until(&self, key: &FailureKey, now: Timestamp) -> Option<Timestamp> {
        let entry = self.entries.get(key).filter(|entry| !entry.is_forgotten(now))?;
        Some(entry.until()).filter(|until| now < *until)
    }

    /// Starts the next delay, after the deletion of a failed pod.
    pub(super) fn deleted(&mut self, key: FailureKey, now: Timestamp) {
        if self.swept.is_none_or(|swept| now.duration_since(swept) >= SWEEP) {
            self.entries.retain(|_, entry| !entry.is_forgotten(now));
            self.swept = Some(now);
        }
        let last = self.entries.get(&key).filter(|entry| !entry.is_forgotten(now));
        let delay = last.map_or(FIRST, |entry| (entry.delay * 2).min(LONGEST));
        self.entries.insert(key, Entry { delay, since: now });
    }

    /// How many entries are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
