//! The recovery of a stuck rollout, with the gate `StatefulSetRolloutRecovery`, which upstream does not have.
//!
//! In order, a reconcile goes no further than the first pod that is not ready. If the revision of that pod can never become
//! ready, as with an image that does not exist, neither a repaired template nor a rollback reaches the pod until a person
//! deletes it (kubernetes/kubernetes#67250). With the gate, the pod is replaced.

use kcm_framework::api::views::{Pod, StatefulSetUpdateStrategy};

use super::status::{is_running_and_ready, revision_of};
use super::steps::Input;

/// Whether a pod that is not ready is replaced, where a new pod of its ordinal has the revision `next`.
///
/// It is if it has another revision, of which no pod is ready, and every pod of `next` is ready. So a revision that works is
/// rolled in the usual order while one of its pods is not ready, and a repair that does not work costs one pod.
pub(super) fn replaces(input: Input<'_>, pod: &Pod, next: &str) -> bool {
    let is_planned = input.gates.rollout_recovery
        && matches!(input.set.update_strategy, StatefulSetUpdateStrategy::RollingUpdate { .. })
        && revision_of(pod) != next;
    let is_ready = |pod: &Pod| is_running_and_ready(pod) && !pod.metadata.is_terminating();
    is_planned
        && input.pods.iter().all(|other| {
            let revision = revision_of(other);
            (revision != revision_of(pod) || !is_ready(other)) && (revision != next || is_ready(other))
        })
}
