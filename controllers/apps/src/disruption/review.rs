//! The reconcile of a Pod: a warning if several budgets select it, and the end of a stale condition.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_framework::api::views::{Pod, PodDisruption};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::{Enqueue, ReconcileError, ReconcileObject, Session, async_trait};
use parking_lot::Mutex;

use super::apply::reset_condition;
use super::event_mapping::{BudgetsByLabel, first_of_several};
use super::events::DisruptionEvent;
use super::stale::stale_after;

/// The Pods that a change has enqueued at once, until they are reconciled. A reconcile for another reason, such as a retry
/// or the end of a delay, records no warning again.
#[derive(Debug, Clone, Default)]
pub(super) struct ChangedPods(Arc<Mutex<BTreeSet<ObjectKey>>>);

impl ChangedPods {
    /// Adds the Pod that a change enqueues, if it is enqueued at once.
    pub(super) fn add(&self, enqueued: &Enqueue<ObjectKey>) {
        if enqueued.after.is_zero() {
            self.0.lock().insert(enqueued.key.clone());
        }
    }

    /// Forgets the Pods whose keys were dropped when the loop stopped.
    fn clear(&self) {
        self.0.lock().clear();
    }

    fn take(&self, key: &ObjectKey) -> bool {
        self.0.lock().remove(key)
    }
}

/// Reconciles Pods.
pub(super) struct Reviewer {
    pub(super) budgets: BudgetsByLabel,
    pub(super) disruptions: PartReader<PodDisruption>,
    pub(super) changed: ChangedPods,
}

#[async_trait]
impl ReconcileObject<Pod> for Reviewer {
    async fn prepare(&self, _: &Session) -> Result<(), ReconcileError> {
        self.changed.clear();
        Ok(())
    }

    async fn reconcile(&self, pod: &Arc<Pod>, session: &Session) -> Result<(), ReconcileError> {
        let key = &pod.metadata.key;
        let has_changed = self.changed.take(key);
        if has_changed && let Some(first) = first_of_several(&self.budgets, pod) {
            let budget = first.name().to_owned();
            session.record(&**pod, &DisruptionEvent::MultiplePodDisruptionBudgets { pod: key.clone(), budget });
        }
        match stale_after(pod, self.disruptions.of(pod), session.now()) {
            None => {}
            Some(wait) if wait.is_zero() => {
                session.explain(
                    || "makes the condition DisruptionTarget false, as the pod was not deleted in two minutes",
                );
                reset_condition(session, pod).await?;
            }
            Some(wait) => session.requeue_after(wait),
        }
        Ok(())
    }

    async fn deleted(&self, key: &ObjectKey, _: &Session) -> Result<(), ReconcileError> {
        self.changed.take(key);
        Ok(())
    }
}
