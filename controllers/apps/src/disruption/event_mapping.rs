//! Event mapping: the budgets, and the Pods, that a change of a Pod enqueues.

use jiff::Timestamp;
use kcm_framework::Enqueue;
use kcm_framework::api::views::{Pod, PodDisruption, PodDisruptionBudget};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::informers::{Change, Informer};

use super::stale::stale_after;

/// Returns whether a budget selects a Pod of its namespace.
pub(super) fn selects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    budget.selector.as_ref().is_ok_and(|selector| selector.matches(&pod.metadata.labels))
}

/// Looks up the budgets of a namespace.
pub(super) trait BudgetLister {
    /// Calls `each` with the budgets of a namespace.
    fn for_each_in(&self, namespace: &str, each: &mut dyn FnMut(&PodDisruptionBudget));
}

impl BudgetLister for Informer<PodDisruptionBudget> {
    fn for_each_in(&self, namespace: &str, each: &mut dyn FnMut(&PodDisruptionBudget)) {
        self.for_each_in_namespace(namespace, |budget| each(budget));
    }
}

/// Returns the first by name of the budgets that select a Pod, if several of its namespace do.
pub(super) fn first_of_several(budgets: &impl BudgetLister, pod: &Pod) -> Option<ObjectKey> {
    let (mut first, mut selecting): (Option<ObjectKey>, usize) = (None, 0);
    budgets.for_each_in(pod.metadata.key.namespace().unwrap_or_default(), &mut |budget| {
        if selects(budget, pod) {
            selecting += 1;
            let key = &budget.metadata.key;
            if first.as_ref().is_none_or(|first| key < first) {
                first = Some(key.clone());
            }
        }
    });
    first.filter(|_| selecting > 1)
}

/// Enqueues the budgets of the namespace that select a changed Pod before or after the change.
pub(super) fn keys_for_pod(change: &Change<Pod>, budgets: &impl BudgetLister) -> Vec<ObjectKey> {
    let (old, new) = match change {
        Change::Added(pod) | Change::Undecodable { last: pod } | Change::Deleted { last: pod, .. } => (None, pod),
        Change::Updated { old, new } => ((old.metadata.labels != new.metadata.labels).then_some(old), new),
    };
    let mut keys = Vec::new();
    budgets.for_each_in(change.key().namespace().unwrap_or_default(), &mut |budget| {
        if selects(budget, new) || old.is_some_and(|old| selects(budget, old)) {
            keys.push(budget.metadata.key.clone());
        }
    });
    keys
}

/// Enqueues a changed Pod: at once if several budgets of its namespace select it, else when its condition
/// `DisruptionTarget` is stale.
pub(super) fn keys_for_review(
    change: &Change<Pod>,
    budgets: &impl BudgetLister,
    disruptions: PartReader<PodDisruption>,
    now: Timestamp,
) -> Option<Enqueue<ObjectKey>> {
    let pod = match change {
        Change::Added(pod) | Change::Updated { new: pod, .. } => pod,
        Change::Undecodable { .. } | Change::Deleted { .. } => return None,
    };
    let key = pod.metadata.key.clone();
    if first_of_several(budgets, pod).is_some() {
        return Some(key.into());
    }
    stale_after(pod, disruptions.of(pod), now).map(|after| Enqueue::after(key, after))
}
