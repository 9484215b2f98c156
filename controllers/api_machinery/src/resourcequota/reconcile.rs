//! The order of a reconcile: observe, plan, write.

use std::sync::Arc;

use kcm_framework::api::ResourceList;
use kcm_framework::api::views::ResourceQuota;
use kcm_framework::client::ResponseExt as _;
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::kinds::Kinds;
use super::plan::{Action, Rules, plan};
use super::replenish::Quotas;

/// Reconciles `ResourceQuotas`, in both loops.
#[derive(Clone)]
pub(super) struct Reconciler {
    pub(super) quotas: Arc<Quotas>,
    pub(super) kinds: Arc<Kinds>,
}

#[async_trait]
impl ReconcileObject<ResourceQuota> for Reconciler {
    /// Without it, the first keys would find no kind and write an empty usage.
    async fn prepare(&self, _: &Session) -> Result<(), ReconcileError> {
        self.kinds.started().await;
        Ok(())
    }

    async fn reconcile(&self, quota: &Arc<ResourceQuota>, session: &Session) -> Result<(), ReconcileError> {
        let observed = self.kinds.observe(quota.metadata.key.namespace().unwrap_or_default(), &quota.hard);
        let rules = Rules { gates: self.quotas.gates, pods: self.quotas.pods, now: session.now() };
        let plan = plan(quota, &observed, rules);
        session.explain(|| plan.explain());
        for (evaluator, reason) in &plan.unavailable {
            tracing::info!(kind = %evaluator, reason, "Cannot count objects of this kind; their usage is unchanged");
        }
        match &plan.action {
            // The quota is enqueued when the kind has synced.
            Action::Wait(patience) => session.requeue_after(*patience),
            Action::Keep => {}
            Action::Update(used) => write_status(session, quota, used).await?,
        }
        Ok(())
    }
}

/// Writes the usage, and the limits of the spec for which it was computed, to the version of the quota that was read. The
/// API server rejects it if it has admitted an object meanwhile. A quota that does not exist is no error.
async fn write_status(session: &Session, quota: &ResourceQuota, used: &ResourceList) -> Result<(), ReconcileError> {
    let mut document = quota.document.clone();
    let hard = quota.raw(&["spec", "hard"]);
    document.set(&["status", "hard"], &hard)?;
    document.set(&["status", "used"], used)?;
    session.update_status(quota, &document).await.ignore_not_found()?;
    Ok(())
}
