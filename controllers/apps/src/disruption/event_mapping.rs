//! Event mapping: the budgets, and the Pods, that a change of a Pod enqueues.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kcm_framework::Enqueue;
use kcm_framework::api::views::{Pod, PodDisruption, PodDisruptionBudget};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::informers::{Change, Index, Informer, label_key};

use super::stale::stale_after;

/// Returns whether a budget selects a Pod of its namespace.
pub(super) fn selects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    budget.selector.as_ref().is_ok_and(|selector| selector.matches(&pod.metadata.labels))
}

/// Looks up the budgets that may select a Pod.
pub(super) trait BudgetLister {
    /// Calls `each` once with each budget that may select a Pod, and with few others.
    fn for_each_candidate(&self, pod: &Pod, each: &mut dyn FnMut(&PodDisruptionBudget));
}

/// The budgets of the cluster by a label that they require, so that a change of a Pod reads few of its namespace.
#[derive(Clone)]
pub(super) struct BudgetsByLabel(Index<PodDisruptionBudget, u64>);

impl BudgetsByLabel {
    /// All users share the index.
    pub(super) fn new(budgets: &Informer<PodDisruptionBudget>) -> Self {
        Self(budgets.index("selector", selector_key))
    }
}

impl BudgetLister for BudgetsByLabel {
    fn for_each_candidate(&self, pod: &Pod, each: &mut dyn FnMut(&PodDisruptionBudget)) {
        let namespace = pod.metadata.key.namespace();
        for key in label_keys(pod) {
            let budgets = self.0.get(&key);
            // Two labels may have the same key.
            let of_namespace = budgets.iter().filter(|budget| budget.metadata.key.namespace() == namespace);
            of_namespace.for_each(|budget| each(budget));
        }
    }
}

/// Returns the key under which a budget is indexed: its first label with one value, or its namespace if it requires no such
/// label. `None` if it selects no Pod.
pub(super) fn selector_key(budget: &PodDisruptionBudget) -> Option<u64> {
    let selector = budget.selector.as_ref().ok().filter(|selector| !selector.is_nothing())?;
    let namespace = budget.metadata.key.namespace().unwrap_or_default();
    let label = selector.required_labels().next().map(|(name, value)| (&**name, &**value));
    Some(label_key(namespace, label.unwrap_or_default()))
}

/// Returns the keys of the budgets that may select a Pod.
pub(super) fn label_keys(pod: &Pod) -> BTreeSet<u64> {
    let namespace = pod.metadata.key.namespace().unwrap_or_default();
    let without_label = [("", "")];
    let labels = pod.metadata.labels.iter().chain(without_label);
    labels.map(|label| label_key(namespace, label)).collect()
}

/// Returns the first by name of the budgets that select a Pod, if several of its namespace do.
pub(super) fn first_of_several(budgets: &impl BudgetLister, pod: &Pod) -> Option<ObjectKey> {
    let (mut first, mut selecting): (Option<ObjectKey>, usize) = (None, 0);
    budgets.for_each_candidate(pod, &mut |budget| {
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
pub(super) fn keys_for_pod(change: &Change<Pod>, budgets: &impl BudgetLister) -> BTreeSet<ObjectKey> {
    let (old, new) = match change {
        Change::Added(pod) | Change::Undecodable { last: pod } | Change::Deleted { last: pod, .. } => (None, pod),
        Change::Updated { old, new } => ((old.metadata.labels != new.metadata.labels).then_some(old), new),
    };
    let mut keys = BTreeSet::new();
    for pod in [Some(new), old].into_iter().flatten() {
        budgets.for_each_candidate(pod, &mut |budget| {
            if selects(budget, pod) {
                keys.insert(budget.metadata.key.clone());
            }
        });
    }
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
