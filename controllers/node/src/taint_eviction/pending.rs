//! The evictions that are pending.

use std::collections::HashMap;

use kcm_framework::api::views::Pod;
use kcm_framework::api::{ObjectKey, Uid};

use super::plan::Pending;

/// Pending evictions by Pod. A Pod that was recreated under the same name starts without one.
#[derive(Debug, Default)]
pub(super) struct PendingEvictions(HashMap<ObjectKey, Entry>);

#[derive(Debug)]
struct Entry {
    uid: Uid,
    pending: Pending,
    /// `true` if the event of the eviction was recorded.
    is_announced: bool,
}

impl PendingEvictions {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn of(&self, pod: &Pod) -> Option<Pending> {
        self.0.get(&pod.metadata.key).filter(|entry| entry.uid == pod.metadata.uid).map(|entry| entry.pending)
    }

    pub(super) fn set(&mut self, pod: &Pod, pending: Pending) {
        let uid = &pod.metadata.uid;
        let entry = self.0.entry(pod.metadata.key.clone()).or_insert_with(|| Entry::new(uid.clone(), pending));
        if entry.uid == *uid {
            entry.pending = pending;
        } else {
            *entry = Entry::new(uid.clone(), pending);
        }
    }

    /// Returns `true` for the first call since the eviction became due.
    pub(super) fn announce(&mut self, pod: &Pod) -> bool {
        self.0.get_mut(&pod.metadata.key).is_some_and(|entry| !std::mem::replace(&mut entry.is_announced, true))
    }

    /// Forgets the Pod. Returns `true` if an eviction of it was pending.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> bool {
        self.0.remove(key).is_some()
    }
}

impl Entry {
    const fn new(uid: Uid, pending: Pending) -> Self {
        Self { uid, pending, is_announced: false }
    }
}
