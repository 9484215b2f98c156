//! The order of a reconcile: observe, claim, plan, apply, status.

use std::sync::Arc;

use kcm_framework::api::views::Deployment;
use kcm_framework::ownership::{Claims, Owner, adopt_and_release};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::apply::{StepOutcome, Writer};
use super::gates::Gates;
use super::observe::Caches;
use super::plan::{plan, plan_for_everything};

/// Reconciles Deployments.
pub(super) struct Reconciler {
    pub(super) caches: Caches,
    pub(super) gates: Gates,
}

#[async_trait]
impl ReconcileObject<Deployment> for Reconciler {
    async fn reconcile(&self, deployment: &Arc<Deployment>, session: &Session) -> Result<(), ReconcileError> {
        let selector = match &deployment.selector {
            Ok(selector) => selector,
            Err(error) => {
                session.wait_for_change("its selector is invalid", error);
                return Ok(());
            }
        };

        let plan = if selector.is_everything() {
            plan_for_everything(deployment)
        } else {
            let (observed, owner) = (self.caches.observe(deployment), Owner::of(&**deployment));
            self.caches.requeue_when_decodable(&observed, session);
            let claims = Claims::of(owner, selector, &observed.replica_sets);
            let claimed = adopt_and_release(session, owner, claims).await?;
            plan(&observed, claimed, self.gates, session.now()).map_err(ReconcileError::terminal)?
        };
        session.requeue_by(plan.recheck);
        tracing::debug!(action = ?plan.action, steps = plan.steps.len(), "Planned");
        session.explain(|| plan.explain(deployment.replicas));

        let writer = Writer { session, deployment, selector };
        let mut of_old_sets = Ok(());
        for step in plan.steps {
            let is_of_old_set = step.is_of_old_set();
            match writer.apply(step).await {
                Ok(StepOutcome::Done) => {}
                Ok(StepOutcome::Superseded) => {
                    session.explain(|| "leaves the remaining steps to the reconcile of a later event");
                    return of_old_sets;
                }
                Err(error) if is_of_old_set => of_old_sets = of_old_sets.and(Err(error)),
                Err(error) => return Err(error),
            }
        }
        if let Some(update) = &plan.status_update {
            writer.update_status(update).await?;
        }
        of_old_sets
    }
}
