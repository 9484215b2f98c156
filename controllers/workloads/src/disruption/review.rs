//! The reconcile of a pod: a warning where several budgets select it, and the end of a stale condition.

use kcm_api::views::{Pod, PodDisruption, PodDisruptionBudget};
use kcm_api::{ObjectKey, PartReader};
use kcm_framework::{Outcome, Reconcile, ReconcileError, Session, async_trait};
use kcm_informers::Informer;

use super::apply::reset_condition;
use super::events::EventReason;
use super::stale::stale_after;
use super::wiring::first_of_several;

/// Reconciles pods.
pub(super) struct Reviewer {
    pub(super) budgets: Informer<PodDisruptionBudget>,
    pub(super) pods: Informer<Pod>,
    pub(super) disruptions: PartReader<PodDisruption>,
}

#[async_trait]
impl Reconcile for Reviewer {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<Outcome, ReconcileError> {
        let Some(pod) = self.pods.get(key) else { return Ok(Outcome::done()) };
        let budgets = self.budgets.in_namespace(key.namespace().unwrap_or_default());
        if let Some(first) = first_of_several(&budgets, &pod) {
            let budget = first.name().to_owned();
            session.record(&*pod, &EventReason::MultiplePodDisruptionBudgets { pod: key.clone(), budget });
        }
        match stale_after(&pod, self.disruptions.of(&pod), session.now()) {
            None => Ok(Outcome::done()),
            Some(wait) if wait.is_zero() => {
                session.explain(
                    || "makes the condition DisruptionTarget false, as the pod was not deleted in two minutes",
                );
                reset_condition(session, &pod).await?;
                Ok(Outcome::done())
            }
            Some(wait) => Ok(Outcome::requeue_after(wait)),
        }
    }
}
