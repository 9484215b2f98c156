//! Event mapping: the volumes that a change of a volume enqueues.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::PersistentVolume;
use kcm_framework::informers::Change;

use super::plan::FINALIZER;
use crate::shared::protection::is_candidate;

/// A volume whose finalizer may have to change is enqueued when it is added, updated or resynced.
pub(super) fn keys_for_volume(change: &Change<PersistentVolume>) -> Option<ObjectKey> {
    let volume = match change {
        Change::Added(volume) | Change::Updated { new: volume, .. } => volume,
        Change::Undecodable { .. } | Change::Deleted { .. } => return None,
    };
    is_candidate(&volume.metadata, FINALIZER).then(|| volume.metadata.key.clone())
}
