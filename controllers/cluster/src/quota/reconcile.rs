//! The order of a reconcile: observe, plan, write.

use std::sync::Arc;

use kcm_api::ObjectKey;
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};

use super::apply::write_status;
use super::kinds::Kinds;
use super::plan::{Action, Plan, Rules, plan};
use super::replenish::Quotas;

/// Reconciles quotas, in both loops.
#[derive(Clone)]
pub(super) struct Reconciler {
    pub(super) quotas: Arc<Quotas>,
    pub(super) kinds: Arc<Kinds>,
}

#[async_trait]
impl Reconcile for Reconciler {
    /// Without it, the first keys would find no kind and write an empty usage.
    async fn prepare(&self, _: &Session) -> Result<(), ReconcileError> {
        self.kinds.started().await;
        Ok(())
    }

    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(quota) = self.quotas.informer.get(key) else { return Ok(()) };
        let observed = self.kinds.observe(key.namespace().unwrap_or_default(), &quota.hard);
        let rules = Rules { gates: self.quotas.gates, pods: self.quotas.pods, now: session.now() };
        let plan = plan(&quota, &observed, rules);
        session.explain(|| plan.explain());
        for (evaluator, reason) in &plan.unavailable {
            tracing::info!(kind = %evaluator, reason, "Cannot count objects of this kind; their usage is unchanged");
        }
        match &plan.action {
            // The quota is enqueued when the kind has synced.
            Action::Wait(patience) => return Ok(session.requeue_after(*patience)),
            Action::Keep => {}
            Action::Update(used) => write_status(session, &quota, used).await?,
        }
        Ok(())
    }
}

impl Plan {
    /// What is planned, and why: a sentence.
    fn explain(&self) -> String {
        let unavailable: Vec<String> =
            self.unavailable.iter().map(|(evaluator, reason)| format!("{evaluator}: {reason}")).collect();
        let action = match &self.action {
            Action::Wait(_) => "waits for the first list of a kind that it counts",
            Action::Keep => "leaves the status, which is up to date",
            Action::Update(_) => "updates the status, as limits or usage have changed",
        };
        if unavailable.is_empty() {
            action.to_owned()
        } else {
            format!("{action}; not counted now: {}", unavailable.join(", "))
        }
    }
}
