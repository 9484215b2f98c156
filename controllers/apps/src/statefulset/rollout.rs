//! The rollout: pods of another revision than that of the template are deleted, from the highest ordinal down to the
//! partition, and created again.
//!
//! One pod at a time may be unavailable, or `maxUnavailable` with the gate `MaxUnavailableStatefulSet`. Without the gate
//! an unavailable pod is waited for even if it is of the old revision and can never become available: a rollout that gets
//! stuck with a broken image stays stuck until a person deletes the pod, as upstream, or until `recovery.rs` replaces it.

use std::sync::Arc;

use kcm_framework::api::Rounding;
use kcm_framework::api::views::{Pod, StatefulSetUpdateStrategy};

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
pub(super) fn plan_rollout(input: Input<'_>, replicas: &Replicas, plan: &mut Plan) {
    let partition = match input.set.update_strategy {
        StatefulSetUpdateStrategy::RollingUpdate { partition, .. } => {
            usize::try_from(partition.unwrap_or(0)).unwrap_or(0)
        }
        StatefulSetUpdateStrategy::OnDelete => return,
    };
    let targets = replicas.iter().skip(partition).rev();
    let is_outdated = |pod: &Pod| !pod.metadata.is_terminating() && revision_of(pod) != input.revisions.update.name;
    let unavailable = |pod: &Option<Arc<Pod>>| {
        pod.as_ref().is_none_or(|pod| is_unavailable(pod, input.set.min_ready_seconds, input.now))
    };
    let mut deleted: Vec<Arc<Pod>> = Vec::new();
    if input.gates.max_unavailable {
        let pods = replicas.iter().filter(|(_, pod)| unavailable(pod)).count();
        plan.unavailable = Some(pods);
        let allowed = max_unavailable(&input.set.update_strategy, input.set.replicas).saturating_sub(pods);
        let outdated = targets.filter_map(|(_, pod)| pod.as_ref()).filter(|pod| is_outdated(pod));
        let mut outdated = outdated.peekable();
        if allowed == 0 && outdated.peek().is_some() {
            plan.wait.get_or_insert(Wait::Unavailable { pods });
        }
        deleted.extend(outdated.take(allowed).cloned());
    } else {
        for (ordinal, pod) in targets {
            match pod {
                Some(pod) if is_outdated(pod) => {
                    deleted.push(Arc::clone(pod));
                    break;
                }
                _ if unavailable(pod) => {
                    let name = super::identity::pod_name(input.set.metadata.key.name(), *ordinal);
                    plan.wait.get_or_insert(Wait::NotAvailable { pod: name });
                    break;
                }
                _ => {}
            }
        }
    }
    if let Some(first) = deleted.first() {
        let name = first.metadata.key.name().to_owned();
        plan.wait.get_or_insert(Wait::Deleted { pod: name });
        let step = |pod| vec![Step::Delete { pod, reason: Deletion::Outdated }];
        plan.phases.push(Phase { in_order: true, pods: deleted.into_iter().map(step).collect() });
    }
}
