//! Event mapping: the budgets, and the Pods, that a change of a Pod enqueues.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::Enqueue;
use kcm_framework::api::views::{Pod, PodDisruption, PodDisruptionBudget};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::informers::Change;

use super::stale::stale_after;

/// Returns whether a budget selects a Pod of its namespace.
pub(super) fn selects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    budget.selector.as_ref().is_ok_and(|selector| selector.matches(&pod.metadata.labels))
}

/// Returns the first by name of the budgets that select a Pod, if several of its namespace do.
pub(super) fn first_of_several<'a>(budgets: &'a [Arc<PodDisruptionBudget>], pod: &Pod) -> Option<&'a ObjectKey> {
    let selecting = || budgets.iter().filter(|budget| selects(budget, pod)).map(|budget| &budget.metadata.key);
    if selecting().nth(1).is_some() { selecting().min() } else { None }
}

/// Enqueues the `budgets` of the namespace that select a changed Pod before or after the change.
pub(super) fn keys_for_pod(change: &Change<Pod>, budgets: &[Arc<PodDisruptionBudget>]) -> Vec<ObjectKey> {
    let (old, new) = match change {
        Change::Added(pod) | Change::Deleted { last: pod, .. } => (None, pod),
        Change::Updated { old, new } => ((old.metadata.labels != new.metadata.labels).then_some(old), new),
    };
    let selecting = budgets.iter().filter(|budget| selects(budget, new) || old.is_some_and(|old| selects(budget, old)));
    selecting.map(|budget| budget.metadata.key.clone()).collect()
}

/// Enqueues a changed Pod: at once if several `budgets` of its namespace select it, else when its condition
/// `DisruptionTarget` is stale.
pub(super) fn keys_for_review(
    change: &Change<Pod>,
    budgets: &[Arc<PodDisruptionBudget>],
    disruptions: PartReader<PodDisruption>,
    now: Timestamp,
) -> Option<Enqueue<ObjectKey>> {
    let pod = match change {
        Change::Added(pod) | Change::Updated { new: pod, .. } => pod,
        Change::Deleted { .. } => return None,
    };
    let key = pod.metadata.key.clone();
    if first_of_several(budgets, pod).is_some() {
        return Some(key.into());
    }
    stale_after(pod, disruptions.of(pod), now).map(|after| Enqueue::after(key, after))
}
