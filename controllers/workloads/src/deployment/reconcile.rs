//! The order of a reconcile: observe, claim, plan, apply, status.

use kcm_api::ObjectKey;
use kcm_framework::ownership::{Claims, Owner, adopt_and_release};
use kcm_framework::{Class, Reconcile, ReconcileError, Session, async_trait};

use super::apply::{StepOutcome, Writer};
use super::observe::Caches;
use super::plan::{InvalidDeployment, plan, plan_for_everything};
use super::settings::Settings;

/// Reconciles deployments.
pub(super) struct Reconciler {
    pub(super) caches: Caches,
    pub(super) settings: Settings,
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(observed) = self.caches.observe(key) else { return Ok(()) };
        let deployment = &*observed.deployment;
        let selector = match &deployment.selector {
            Ok(selector) => selector,
            Err(error) => {
                // A selector is immutable: a retry cannot succeed.
                tracing::error!(%error, "Deployment has an invalid selector");
                session.explain(|| "does nothing until the deployment changes, as its selector is invalid");
                return Ok(());
            }
        };

        let plan = if selector.is_everything() {
            plan_for_everything(deployment)
        } else {
            let owner = Owner::of(deployment);
            let claims = Claims::of(owner, selector, &observed.replica_sets);
            let claimed = adopt_and_release(session, owner, claims).await?;
            plan(&observed, claimed, self.settings, session.now())?
        };
        tracing::debug!(action = ?plan.action, steps = plan.steps.len(), "Planned");
        session.explain(|| plan.explain(deployment.replicas));

        let writer = Writer { session, deployment, selector };
        for step in plan.steps {
            if writer.apply(step).await? == StepOutcome::Superseded {
                session.explain(|| "leaves the remaining steps to the reconcile of a later event");
                return Ok(());
            }
        }
        if let Some(update) = &plan.status_update {
            writer.update_status(update).await?;
        }
        Ok(plan.recheck.map_or_else(|| (), |at| session.requeue_by(at)))
    }
}

impl From<InvalidDeployment> for ReconcileError {
    fn from(error: InvalidDeployment) -> Self {
        Self::new(Class::Terminal, error)
    }
}
