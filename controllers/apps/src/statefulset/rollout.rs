//! The rollout: pods of another revision than that of the template are deleted, from the highest ordinal down to the
//! partition, and created again.
//!
//! One pod at a time may be unavailable, or `maxUnavailable` with the gate `MaxUnavailableStatefulSet`. With the gate, a
//! rollout in parallel also deletes every unavailable pod of an old revision. In order and without the gate, an
//! unavailable pod is waited for even if it is of the old revision and can never become available: a rollout that gets
//! stuck with a broken image stays stuck until a person deletes the pod, as upstream, or until `recovery.rs` replaces it.

use std::sync::Arc;

use kcm_framework::api::Rounding;
use kcm_framework::api::views::{Pod, PodManagementPolicy, StatefulSetUpdateStrategy};

use super::identity::pod_name;
use super::status::{is_unavailable, revision_of};
use super::steps::{Deletion, Input, Phase, Plan, Replicas, Step, Wait};

/// How many pods may be unavailable in a rollout; 1 if nothing valid is set.
///
/// # Upstream
/// `getStatefulSetMaxUnavailable`: percentages are rounded down, and at least one pod may be.
pub(super) fn max_unavailable(strategy: &StatefulSetUpdateStrategy, replicas: i32) -> usize {
    let StatefulSetUpdateStrategy::RollingUpdate { max_unavailable: Some(limit), .. } = strategy else { return 1 };
    limit.of(replicas, Rounding::Down).ok().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(1).max(1)
}

/// Adds the phase of the rollout to a plan whose earlier phases wait for nothing.
///
/// # Upstream
/// `updateStatefulSetAfterInvariantEstablished` with the gate `MaxUnavailableStatefulSet`, and the end of
/// `updateStatefulSet` without it.
pub(super) fn plan_rollout(input: Input<'_>, replicas: &Replicas, plan: &mut Plan) {
    let StatefulSetUpdateStrategy::RollingUpdate { partition, .. } = input.set.update_strategy else { return };
    let partition = usize::try_from(partition.unwrap_or(0)).unwrap_or(0);
    let deleted = if input.gates.max_unavailable {
        several(input, replicas, partition, plan)
    } else {
        one(input, replicas, partition, plan).into_iter().collect()
    };
    if let Some(first) = deleted.first() {
        let name = first.metadata.key.name().to_owned();
        plan.wait.get_or_insert(Wait::Deleted { pod: name });
        let step = |pod| vec![Step::Delete { pod, reason: Deletion::Outdated }];
        plan.phases.push(Phase { in_order: true, pods: deleted.into_iter().map(step).collect() });
    }
}

/// Returns the pods that the rollout deletes with the gate `MaxUnavailableStatefulSet`.
///
/// In parallel, an unavailable pod of an old revision is deleted whatever `maxUnavailable` says: its deletion makes no
/// further pod unavailable, and nothing else repairs it. So a rollout does not spend its budget on available pods while
/// the old revision crashes.
fn several(input: Input<'_>, replicas: &Replicas, partition: usize, plan: &mut Plan) -> Vec<Arc<Pod>> {
    let pods = replicas.iter().filter(|(_, pod)| lacks_available(input, pod.as_deref())).count();
    plan.unavailable = Some(pods);
    let allowed = max_unavailable(&input.set.update_strategy, input.set.replicas).saturating_sub(pods);
    let outdated = replicas.iter().skip(partition).rev().filter_map(|(_, pod)| pod.clone());
    let outdated: Vec<_> = outdated.filter(|pod| is_outdated(input, pod)).collect();
    let is_complete = outdated.is_empty();
    let deleted: Vec<_> = match input.set.pod_management_policy {
        PodManagementPolicy::Parallel => {
            let (broken, available): (Vec<_>, Vec<_>) =
                outdated.into_iter().partition(|pod| lacks_available(input, Some(pod)));
            broken.into_iter().chain(available.into_iter().take(allowed)).collect()
        }
        PodManagementPolicy::OrderedReady => outdated.into_iter().take(allowed).collect(),
    };
    if deleted.is_empty() && !is_complete {
        plan.wait.get_or_insert(Wait::Unavailable { pods });
    }
    deleted
}

/// Returns the pod that the rollout deletes without the gate.
fn one(input: Input<'_>, replicas: &Replicas, partition: usize, plan: &mut Plan) -> Option<Arc<Pod>> {
    for (ordinal, pod) in replicas.iter().skip(partition).rev() {
        match pod {
            Some(pod) if is_outdated(input, pod) => return Some(Arc::clone(pod)),
            _ if lacks_available(input, pod.as_deref()) => {
                let pod = pod_name(input.set.metadata.key.name(), *ordinal);
                plan.wait.get_or_insert(Wait::NotAvailable { pod });
                return None;
            }
            _ => {}
        }
    }
    None
}

/// Returns `true` if the rollout has to delete the pod. The first phase has deleted finished pods.
fn is_outdated(input: Input<'_>, pod: &Pod) -> bool {
    !pod.metadata.is_terminating() && !pod.is_finished() && revision_of(pod) != input.revisions.update.name
}

fn lacks_available(input: Input<'_>, pod: Option<&Pod>) -> bool {
    pod.is_none_or(|pod| is_unavailable(pod, input.set.min_ready_seconds, input.now))
}
