//! Event mapping: the classes that a change enqueues.

use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};
use kcm_framework::api::{InternedStr, ObjectKey};
use kcm_framework::informers::Change;

use super::plan::{FINALIZER, classes_of_claim, classes_of_volume};
use super::view::VolumeAttributesClass;
use crate::shared::protection::is_candidate;

/// A class whose finalizer may have to change is enqueued when it is added, updated or resynced.
pub(super) fn keys_for_class(change: &Change<VolumeAttributesClass>) -> Option<ObjectKey> {
    let class = match change {
        Change::Added(class) | Change::Updated { new: class, .. } => class,
        Change::Undecodable { .. } | Change::Deleted { .. } => return None,
    };
    is_candidate(&class.metadata, FINALIZER).then(|| class.metadata.key.clone())
}

/// A claim enqueues the classes that it gives up: all of them when it is deleted.
pub(super) fn keys_for_claim(change: &Change<PersistentVolumeClaim>) -> Vec<ObjectKey> {
    given_up(change, classes_of_claim)
}

/// A volume enqueues the class that it gives up, also when it is deleted.
pub(super) fn keys_for_volume(change: &Change<PersistentVolume>) -> Vec<ObjectKey> {
    given_up(change, classes_of_volume)
}

fn given_up<V>(change: &Change<V>, classes: impl Fn(&V) -> Vec<InternedStr>) -> Vec<ObjectKey> {
    let (before, after) = match change {
        // An object that cannot be decoded may still name them.
        Change::Added(_) | Change::Undecodable { .. } => return Vec::new(),
        Change::Updated { old, new } => (classes(old), classes(new)),
        Change::Deleted { last, .. } => (classes(last), Vec::new()),
    };
    let given_up = before.into_iter().filter(|class| !after.contains(class));
    given_up.map(|class| ObjectKey::cluster_scoped(&*class)).collect()
}
