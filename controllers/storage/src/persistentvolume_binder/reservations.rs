//! The volumes that a reconcile is working on, and the writes of them that the cache does not show yet.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kcm_framework::api::views::PersistentVolume;
use kcm_framework::api::{ObjectKey, ResourceVersion};
use kcm_framework::workqueue::{Priority, Queue};
use parking_lot::Mutex;

use super::vocabulary::volume_key;

/// A reconcile that works on a volume.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// The reconcile of a claim.
    Claim(ObjectKey),
    /// The reconcile of the volume.
    Volume,
}

#[derive(Debug, Default)]
struct Slot {
    holder: Option<Holder>,
    waiting: BTreeSet<Holder>,
    /// The version of the last write of the binder.
    written: Option<ResourceVersion>,
}

/// Reservations of volumes.
///
/// # Guarantees
/// - One reconcile at a time works on a volume, whether its key is the volume or a claim. Others are enqueued when it ends.
/// - A volume is free for claims only once the cache shows the last write of it.
///
/// So the binder never binds a volume twice, and never conflicts with itself.
#[derive(Clone)]
pub(super) struct Reservations {
    slots: Arc<Mutex<HashMap<Box<str>, Slot>>>,
    claims: Queue<ObjectKey>,
    volumes: Queue<ObjectKey>,
}

/// A volume that a reconcile works on, until it is dropped.
#[must_use]
pub(super) struct Reserved {
    reservations: Reservations,
    volume: Box<str>,
}

impl Reservations {
    pub(super) fn new(claims: Queue<ObjectKey>, volumes: Queue<ObjectKey>) -> Self {
        Self { slots: Arc::default(), claims, volumes }
    }

    /// Reserves a volume. `None` if another reconcile works on it: `by` is enqueued when that ends.
    pub(super) fn reserve(&self, volume: &str, by: Holder) -> Option<Reserved> {
        let mut slots = self.slots.lock();
        let slot = slots.entry(volume.into()).or_default();
        if slot.holder.is_some() {
            slot.waiting.insert(by);
            return None;
        }
        slot.holder = Some(by);
        Some(Reserved { reservations: self.clone(), volume: volume.into() })
    }

    /// Returns `true` if the cache shows the last write of the volume.
    pub(super) fn is_current(&self, volume: &PersistentVolume) -> bool {
        let mut slots = self.slots.lock();
        let name = volume.metadata.key.name();
        let Some(slot) = slots.get_mut(name) else { return true };
        let shown = &volume.metadata.resource_version;
        // Versions that cannot be compared hold up nothing.
        if slot.written.as_ref().is_some_and(|written| shown.is_at_least(written) == Some(false)) {
            return false;
        }
        slot.written = None;
        if slot.holder.is_none() {
            slots.remove(name);
        }
        true
    }

    /// Returns `true` if no reconcile works on the volume and the cache shows the last write of it. `claim` is enqueued when
    /// the reconcile of the volume itself ends.
    pub(super) fn is_free(&self, volume: &PersistentVolume, claim: &ObjectKey) -> bool {
        let is_held = {
            let mut slots = self.slots.lock();
            let slot = slots.get_mut(volume.metadata.key.name()).filter(|slot| slot.holder.is_some());
            if let Some(slot) = slot {
                if slot.holder == Some(Holder::Volume) {
                    slot.waiting.insert(Holder::Claim(claim.clone()));
                }
                true
            } else {
                false
            }
        };
        !is_held && self.is_current(volume)
    }

    /// Forgets the writes of a volume that does not exist any more.
    pub(super) fn forget(&self, volume: &str) {
        let mut slots = self.slots.lock();
        if slots.get(volume).is_some_and(|slot| slot.holder.is_none()) {
            slots.remove(volume);
        }
    }
}

impl Reserved {
    /// Notes the version of a write.
    pub(super) fn written(&self, version: &ResourceVersion) {
        if let Some(slot) = self.reservations.slots.lock().get_mut(&self.volume) {
            slot.written = Some(version.clone());
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let waiting = {
            let mut slots = self.reservations.slots.lock();
            let Some(slot) = slots.get_mut(&self.volume) else { return };
            slot.holder = None;
            let waiting = std::mem::take(&mut slot.waiting);
            if slot.written.is_none() {
                slots.remove(&self.volume);
            }
            waiting
        };
        for holder in waiting {
            match holder {
                Holder::Claim(claim) => self.reservations.claims.add(claim, Priority::Live),
                Holder::Volume => self.reservations.volumes.add(volume_key(&self.volume), Priority::Live),
            }
        }
    }
}
