//! Event mapping: the Pods that a change enqueues.

use std::sync::Arc;

use kcm_framework::api::views::{PersistentVolumeClaim, Pod, PodVolumes};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::informers::Change;

use super::plan::{claim_key, ephemeral};

/// A Pod with ephemeral volumes is enqueued when it is added. Its volumes never change.
pub(super) fn key_for_pod(change: &Change<Pod>, volumes: PartReader<PodVolumes>) -> Option<ObjectKey> {
    let pod = match change {
        Change::Added(pod) => pod,
        // A Pod that was recreated under its name is another Pod.
        Change::Updated { old, new } if old.metadata.uid != new.metadata.uid => new,
        Change::Updated { .. } | Change::Undecodable { .. } | Change::Deleted { .. } => return None,
    };
    let needs_claims = !pod.metadata.is_terminating() && ephemeral(volumes.of(pod)).next().is_some();
    needs_claims.then(|| pod.metadata.key.clone())
}

/// A deleted claim enqueues the Pods whose ephemeral volumes name it.
pub(super) fn keys_for_claim(
    change: &Change<PersistentVolumeClaim>,
    pods: impl Fn(&ObjectKey) -> Vec<Arc<Pod>>,
) -> Vec<ObjectKey> {
    match change {
        Change::Deleted { .. } => pods(change.key()).iter().map(|pod| pod.metadata.key.clone()).collect(),
        Change::Added(_) | Change::Updated { .. } | Change::Undecodable { .. } => Vec::new(),
    }
}

/// Returns the keys of the claims of the ephemeral volumes of a Pod.
pub(super) fn claims_of(pod: &Pod, volumes: PartReader<PodVolumes>) -> Vec<ObjectKey> {
    ephemeral(volumes.of(pod)).map(|volume| claim_key(&pod.metadata.key, &volume.name)).collect()
}
