//! The evictions that are pending, and those that took place because of rules.

use std::collections::HashMap;

use kcm_framework::api::views::Pod;
use kcm_framework::api::{InternedStr, ObjectKey, Uid};

use super::plan::Eviction;

/// Memory of this process, which a restart clears.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pending: HashMap<ObjectKey, Pending>,
    /// Number of Pods that were evicted because of each rule.
    evicted: HashMap<InternedStr, (Uid, u64)>,
}

/// The eviction of a Pod.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) uid: Uid,
    pub(super) eviction: Eviction,
    /// `true` if the event of the eviction was recorded, after which the Pod is deleted.
    is_announced: bool,
    is_counted: bool,
}

impl Pending {
    /// Returns `true` if the Pod was deleted, and the response was lost.
    pub(super) const fn is_uncounted(&self) -> bool {
        self.is_announced && !self.is_counted
    }
}

impl Progress {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Keeps the eviction of a Pod. Returns `true` if it is new or has changed.
    pub(super) fn set(&mut self, pod: &Pod, eviction: &Eviction) -> bool {
        let uid = &pod.metadata.uid;
        let entry = self.pending.get_mut(&pod.metadata.key).filter(|pending| pending.uid == *uid);
        if let Some(pending) = entry {
            return std::mem::replace(&mut pending.eviction, eviction.clone()) != *eviction;
        }
        let (uid, eviction) = (uid.clone(), eviction.clone());
        let pending = Pending { uid, eviction, is_announced: false, is_counted: false };
        self.pending.insert(pod.metadata.key.clone(), pending);
        true
    }

    /// Returns `true` for the first call since the eviction of the Pod is pending.
    pub(super) fn announce(&mut self, pod: &ObjectKey) -> bool {
        self.pending.get_mut(pod).is_some_and(|pending| !std::mem::replace(&mut pending.is_announced, true))
    }

    /// Forgets a Pod. Returns its eviction, if one was pending.
    pub(super) fn remove(&mut self, pod: &ObjectKey) -> Option<Pending> {
        self.pending.remove(pod)
    }

    /// Counts the eviction of a Pod that is kept, once.
    pub(super) fn count(&mut self, pod: &ObjectKey, eviction: &Eviction) {
        if let Some(pending) = self.pending.get_mut(pod) {
            pending.is_counted = true;
        }
        self.count_for_rules(eviction);
    }

    /// Counts an eviction for each rule among its reasons.
    pub(super) fn count_for_rules(&mut self, eviction: &Eviction) {
        for (name, uid) in eviction.rules() {
            let entry = self.evicted.entry(name.clone()).or_insert_with(|| (uid.clone(), 0));
            if entry.0 != *uid {
                *entry = (uid.clone(), 0);
            }
            entry.1 += 1;
        }
    }

    /// Returns the number of Pods that were evicted because of the rule with that uid.
    pub(super) fn evicted_by(&self, rule: &str, uid: &Uid) -> u64 {
        self.evicted.get(rule).filter(|(of, _)| of == uid).map_or(0, |(_, number)| *number)
    }

    pub(super) fn forget_rule(&mut self, rule: &str) {
        self.evicted.remove(rule);
    }
}
