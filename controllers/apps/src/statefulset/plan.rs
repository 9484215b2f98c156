//! The plan of a reconcile: which pods are created, updated and deleted, and in which order.
//!
//! A plan has phases. In the order of the ordinals (`OrderedReady`) each step is the last one if it has to be waited for;
//! in parallel all steps of a phase go on at once, in slow-start batches. A phase starts when no step of those before it
//! failed.
//!
//! | phase | pods | steps |
//! | --- | --- | --- |
//! | 1 | in the range of ordinals, from the lowest | delete finished pods, create missing ones, repair identity and claims; `recovery.rs` |
//! | 2 | surplus, from the highest | repair owner references of claims |
//! | 3 | surplus, from the highest | delete |
//! | 4 | in the range of ordinals, from the highest | delete those of another revision: `rollout.rs` |
//!
//! With the strategy `Recreate` there is another phase before them, and no phase 4: `recreate.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_framework::api::views::{Pod, PodManagementPolicy, PodPhase, StatefulSet, StatefulSetUpdateStrategy};

use super::claim_work::{ClaimWork, PodClaims, claims_of, missing_volumes};
use super::identity::{Ordinals, has_identity, ordinal, pod_name};
use super::recovery;
use super::recreate::plan_recreation;
use super::rollout::plan_rollout;
use super::status::{is_running_and_ready, is_unavailable};
use super::steps::{Deletion, Input, Phase, Plan, Replicas, Step, Wait, Which};

/// The most missing pods that one reconcile considers. More are created by the reconciles that follow.
pub(super) const BURST: usize = 5000;

/// Plans a reconcile.
///
/// # Guarantees
/// - Nothing for a stateful set that is being deleted.
/// - In order, a pod is created only when those of lower ordinals are available, and a surplus pod is deleted only when all
///   pods of the range and those of higher ordinals are; at most one pod is deleted.
/// - A pod is never created beside another of its ordinal: both have the same name.
pub(super) fn plan(input: Input<'_>) -> Plan {
    let mut plan =
        Plan { phases: Vec::new(), counted: input.pods.to_vec(), recreation: None, wait: None, unavailable: None };
    if input.set.metadata.is_terminating() {
        plan.wait = Some(Wait::SetTerminating);
        return plan;
    }
    let Arranged { replicas, condemned, is_complete } = arrange(input);
    let present = replicas.iter().filter_map(|(_, pod)| pod.clone());
    plan.counted = present.chain(condemned.iter().map(|(_, pod)| Arc::clone(pod))).collect();
    let all = replicas.iter().filter_map(|(_, pod)| pod.as_ref()).chain(condemned.iter().map(|(_, pod)| pod));
    if !plan_recreation(input, all, &mut plan) {
        return plan;
    }
    let in_order = input.set.pod_management_policy == PodManagementPolicy::OrderedReady;

    let mut planner = Planner { plan, in_order };
    let first_unavailable = || {
        let unavailable = |pod: &&Arc<Pod>| is_unavailable(pod, input.set.min_ready_seconds, input.now);
        condemned.iter().rev().map(|(_, pod)| pod).find(unavailable)
    };
    let goes_on = planner.phase(&replicas, |(ordinal, pod)| match pod {
        None => plan_missing(input, *ordinal, in_order),
        Some(pod) => plan_replica(input, *ordinal, pod, in_order),
    }) && is_complete
        && planner.phase(&condemned, |(ordinal, pod)| {
            let claims = claims_of(input.set, pod, *ordinal, input.claims).outdated_retention();
            let step = Step::UpdateClaims { pod: Arc::clone(pod), ordinal: *ordinal, claims };
            (if has_claim_work(&step) { vec![step] } else { Vec::new() }, None)
        })
        && {
            let first_unavailable = first_unavailable();
            planner.phase(&condemned, |(_, pod)| plan_condemned(input, pod, first_unavailable, in_order))
        };
    if goes_on {
        plan_rollout(input, &replicas, &mut planner.plan);
    }
    planner.plan
}

fn has_claim_work(step: &Step) -> bool {
    matches!(step, Step::UpdateClaims { claims, .. } if !claims.is_empty())
}

struct Planner {
    plan: Plan,
    in_order: bool,
}

impl Planner {
    /// Adds a phase. Returns whether the next phase is planned: in order, it is not if a pod has to be waited for.
    fn phase<T>(&mut self, pods: &[T], plan: impl Fn(&T) -> (Vec<Step>, Option<Wait>)) -> bool {
        let mut phase = Phase { in_order: self.in_order, pods: Vec::new() };
        let mut goes_on = true;
        for pod in pods {
            let (steps, wait) = plan(pod);
            phase.pods.push(steps);
            let is_first = self.plan.wait.is_none();
            if let Some(wait) = wait {
                if is_first {
                    self.plan.wait = Some(wait);
                }
                if self.in_order {
                    goes_on = false;
                    break;
                }
            }
        }
        if phase.pods.iter().any(|steps| !steps.is_empty()) {
            self.plan.phases.push(phase);
        }
        goes_on
    }
}

/// The pods of a stateful set by ordinal.
struct Arranged {
    replicas: Replicas,
    /// Pods whose ordinal is not in the range, from the highest.
    condemned: Vec<(i64, Arc<Pod>)>,
    /// Whether `replicas` has the whole range.
    is_complete: bool,
}

/// Pods whose name has no ordinal are ignored.
fn arrange(input: Input<'_>) -> Arranged {
    let (name, range) = (input.set.metadata.key.name(), Ordinals::of(input.set));
    let by_ordinal: BTreeMap<i64, &Arc<Pod>> =
        input.pods.iter().filter_map(|pod| Some((ordinal(name, pod.metadata.key.name())?, pod))).collect();
    let (mut replicas, mut missing) = (Vec::new(), 0);
    let mut next = range.start;
    while next < range.end && missing < BURST {
        let pod = by_ordinal.get(&next).map(|pod| Arc::clone(pod));
        missing += usize::from(pod.is_none());
        replicas.push((next, pod));
        next += 1;
    }
    let condemned = by_ordinal.iter().rev().filter(|(ordinal, _)| !range.contain(**ordinal));
    let condemned = condemned.map(|(ordinal, pod)| (*ordinal, Arc::clone(pod))).collect();
    Arranged { replicas, condemned, is_complete: next == range.end }
}

/// Creates a missing pod, unless one of its claims belongs to an earlier pod of its name.
fn plan_missing(input: Input<'_>, ordinal: i64, in_order: bool) -> (Vec<Step>, Option<Wait>) {
    let pod = pod_name(input.set.metadata.key.name(), ordinal);
    let of_pod = PodClaims::of(input.set, &pod, ordinal, None, input.claims);
    if of_pod.is_stale() {
        return (Vec::new(), Some(Wait::StaleClaim { pod }));
    }
    let mut claims = ClaimWork::default();
    of_pod.creation(&mut claims);
    of_pod.retention(&mut claims);
    let step = Step::Create { ordinal, revision: revision_of_new(input.set, ordinal), claims };
    (vec![step], in_order.then_some(Wait::Created { pod }))
}

/// The revision of a new pod: the current one below the partition.
///
/// Without a partition, which the API server sets, the first pods have the current revision: as many as the status
/// counts.
fn revision_of_new(set: &StatefulSet, ordinal: i64) -> Which {
    let current = match set.update_strategy {
        StatefulSetUpdateStrategy::RollingUpdate { partition, .. } => partition.unwrap_or(set.status.current_replicas),
        StatefulSetUpdateStrategy::OnDelete
        | StatefulSetUpdateStrategy::Recreate
        | StatefulSetUpdateStrategy::Other(_) => 0,
    };
    if ordinal < Ordinals::of(set).start + i64::from(current) { Which::Current } else { Which::Update }
}

fn plan_replica(input: Input<'_>, ordinal: i64, pod: &Arc<Pod>, in_order: bool) -> (Vec<Step>, Option<Wait>) {
    let name = || pod.metadata.key.name().to_owned();
    let is_terminating = pod.metadata.is_terminating();
    if pod.is_finished() {
        let delete = Step::Delete { pod: Arc::clone(pod), reason: Deletion::Finished };
        let steps = if is_terminating { Vec::new() } else { vec![delete] };
        return (steps, Some(Wait::Terminating { pod: name() }));
    }
    let mut steps = Vec::new();
    let of_pod = claims_of(input.set, pod, ordinal, input.claims);
    if pod.phase == PodPhase::Pending {
        let mut claims = ClaimWork::default();
        of_pod.creation(&mut claims);
        of_pod.retention(&mut claims);
        if !claims.is_empty() {
            steps.push(Step::CreateClaims { pod: Arc::clone(pod), ordinal, claims });
        }
    }
    if in_order {
        let wait = if is_terminating {
            Some(Wait::Terminating { pod: name() })
        } else if !is_running_and_ready(pod) {
            Some(Wait::NotReady { pod: name() })
        } else if !pod.is_available_at(input.set.min_ready_seconds, input.now) {
            Some(Wait::NotAvailable { pod: name() })
        } else {
            None
        };
        if matches!(wait, Some(Wait::NotReady { .. })) {
            let next = match revision_of_new(input.set, ordinal) {
                Which::Current => &input.revisions.current,
                Which::Update => &input.revisions.update,
            };
            if recovery::replaces(input, pod, &next.name) {
                let delete = Step::Delete { pod: Arc::clone(pod), reason: Deletion::Outdated };
                return (vec![delete], Some(Wait::Deleted { pod: name() }));
            }
        }
        if wait.is_some() {
            return (steps, wait);
        }
    }
    let labels = !has_identity(pod);
    let volumes = missing_volumes(input.set, ordinal, input.volumes.of(pod));
    // A pending pod has its owners repaired by the step before.
    let mut claims = if steps.is_empty() { of_pod.outdated_retention() } else { ClaimWork::default() };
    if !volumes.is_empty() && steps.is_empty() {
        of_pod.creation(&mut claims);
    }
    if labels || !volumes.is_empty() || !claims.is_empty() {
        steps.push(Step::Update { pod: Arc::clone(pod), ordinal, labels, volumes, claims });
    }
    (steps, None)
}

/// In order, surplus pods are deleted from the highest ordinal, one at a time, and only while those that stay are
/// available: an unavailable pod is deleted only if it is the lowest of them.
fn plan_condemned(
    input: Input<'_>,
    pod: &Arc<Pod>,
    first_unavailable: Option<&Arc<Pod>>,
    in_order: bool,
) -> (Vec<Step>, Option<Wait>) {
    let name = || pod.metadata.key.name().to_owned();
    if pod.metadata.is_terminating() {
        return (Vec::new(), Some(Wait::Terminating { pod: name() }));
    }
    let is_first = first_unavailable.is_some_and(|first| Arc::ptr_eq(first, pod));
    if in_order && !is_first {
        let first = first_unavailable.map_or_else(name, |first| first.metadata.key.name().to_owned());
        if !is_running_and_ready(pod) {
            return (Vec::new(), Some(Wait::NotReady { pod: first }));
        }
        if !pod.is_available_at(input.set.min_ready_seconds, input.now) {
            return (Vec::new(), Some(Wait::NotAvailable { pod: first }));
        }
    }
    let step = Step::Delete { pod: Arc::clone(pod), reason: Deletion::Surplus };
    (vec![step], Some(Wait::Deleted { pod: name() }))
}
