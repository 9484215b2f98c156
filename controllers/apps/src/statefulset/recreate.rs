//! The strategy `Recreate`, with the gate `StatefulSetRecreateStrategy`: a pod of the new revision is created only after
//! all pods of earlier revisions are deleted.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::{Pod, StatefulSet, StatefulSetStatus, StatefulSetUpdateStrategy};
use kcm_framework::api::{Condition, ConditionStatus};

use super::gates::Gates;
use super::status::{is_complete, revision_of};
use super::steps::{Deletion, Input, Phase, Plan, Recreation, Step, Wait};

/// The type of the condition.
const PROGRESSING: &str = "Progressing";

/// An update strategy that the controller does not carry out. No pod is changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnknownStrategy {
    /// The strategy needs a gate. The text is upstream's.
    #[error("statefulset {set} uses Recreate strategy but feature gate StatefulSetRecreateStrategy is disabled")]
    Disabled { set: String },
    /// The strategy is of a later release.
    #[error("statefulset {set} uses strategy {strategy}, which this version does not support")]
    Unsupported { set: String, strategy: String },
}

/// Returns an error if the strategy of the `StatefulSet` is not carried out.
pub(super) fn check_strategy(set: &StatefulSet, gates: Gates) -> Result<(), UnknownStrategy> {
    let name = || set.metadata.key.to_string();
    match &set.update_strategy {
        StatefulSetUpdateStrategy::RollingUpdate { .. } | StatefulSetUpdateStrategy::OnDelete => Ok(()),
        StatefulSetUpdateStrategy::Recreate if gates.recreate => Ok(()),
        StatefulSetUpdateStrategy::Recreate => Err(UnknownStrategy::Disabled { set: name() }),
        StatefulSetUpdateStrategy::Other(strategy) => {
            Err(UnknownStrategy::Unsupported { set: name(), strategy: strategy.as_str().to_owned() })
        }
    }
}

/// Plans the deletion of all pods of earlier revisions, in batches whatever the policy says. Returns `true` if there is
/// none, so that pods can be created.
pub(super) fn plan_recreation<'a>(input: Input<'_>, pods: impl Iterator<Item = &'a Arc<Pod>>, plan: &mut Plan) -> bool {
    if input.set.update_strategy != StatefulSetUpdateStrategy::Recreate {
        return true;
    }
    let earlier: Vec<_> = pods.filter(|pod| revision_of(pod) != input.revisions.update.name).collect();
    if earlier.is_empty() {
        let is_rolled = input.revisions.current.name == input.revisions.update.name;
        plan.recreation = (!is_rolled).then_some(Recreation::Creating);
        return true;
    }
    plan.recreation = Some(Recreation::Deleting);
    plan.wait = Some(Wait::Recreation { pods: earlier.len() });
    let remaining = earlier.into_iter().filter(|pod| !pod.metadata.is_terminating());
    let step = |pod: &Arc<Pod>| vec![Step::Delete { pod: Arc::clone(pod), reason: Deletion::Outdated }];
    let steps: Vec<_> = remaining.map(step).collect();
    if !steps.is_empty() {
        plan.phases.push(Phase { in_order: false, pods: steps });
    }
    false
}

/// Sets the condition `Progressing`: true while pods are recreated, and false when all are ready.
pub(super) fn set_progress(
    set: &StatefulSet,
    status: &mut StatefulSetStatus,
    recreation: Option<Recreation>,
    gates: Gates,
    now: Timestamp,
) {
    let (progress, done) = (ConditionStatus::True, ConditionStatus::False);
    match recreation {
        Some(Recreation::Deleting) => {
            put(status, progress, "RecreateInProgress", "Deleting old revision pods", now);
        }
        Some(Recreation::Creating) => {
            put(status, progress, "RecreateInProgress", "Waiting for new-revision pods to be created", now);
        }
        None => {}
    }
    let is_recreated = set.update_strategy == StatefulSetUpdateStrategy::Recreate && gates.recreate;
    if is_recreated && is_complete(set, status) && status.conditions.iter().any(|one| one.type_ == PROGRESSING) {
        put(status, done, "RecreateCompleted", "All pods recreated successfully", now);
    }
}

/// Sets the first condition of the type, and appends it if there is none.
fn put(status: &mut StatefulSetStatus, value: ConditionStatus, reason: &str, message: &str, now: Timestamp) {
    let condition = Condition {
        type_: PROGRESSING.into(),
        status: value,
        reason: reason.into(),
        message: message.into(),
        ..Condition::default()
    };
    let mut conditions = std::mem::take(&mut status.conditions).into_vec();
    let present = conditions.iter().position(|one| one.type_ == PROGRESSING);
    let made = condition.in_transition(&conditions, now);
    match present {
        None => conditions.push(made),
        Some(at) => {
            let one = &conditions[at];
            if (one.status, &one.reason, &one.message) != (made.status, &made.reason, &made.message) {
                conditions[at] = made;
            }
        }
    }
    status.conditions = conditions.into();
}
