//! The order of a reconcile of a budget: observe, plan, write.

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_api::views::{Pod, PodDisruptionBudget, PodDisruptionBudgetStatus};
use kcm_api::{InvalidPercent, InvalidSelector, ObjectKey};
use kcm_framework::{Class, Reconcile, ReconcileError, Session, async_trait};
use kcm_informers::Informer;

use super::apply::{StatusError, write_status};
use super::controllers::{Controllers, Scales, ScalesError};
use super::event_mapping::selects;
use super::events::EventReason;
use super::plan::{counts_replicas, plan, wanted};
use super::selector_text::selector_text;
use super::status::{AllowedReason, fail_safe, is_written};

/// Reconciles budgets.
pub(super) struct Reconciler {
    pub(super) budgets: Informer<PodDisruptionBudget>,
    pub(super) pods: Informer<Pod>,
    pub(super) scales: Scales,
}

/// The status of a budget could not be computed or written.
#[derive(Debug, thiserror::Error)]
enum SyncError {
    #[error("{0}")]
    Selector(InvalidSelector),
    #[error(transparent)]
    Scales(#[from] ScalesError),
    #[error(transparent)]
    Percent(#[from] InvalidPercent),
    #[error(transparent)]
    Status(#[from] StatusError),
}

impl SyncError {
    /// Whether the budget may be written to once more, so that it allows no disruption.
    ///
    /// A budget that has changed is computed again, and one whose write may have taken effect is not written over.
    fn fails_safe(&self) -> bool {
        match self {
            Self::Selector(_) | Self::Scales(_) | Self::Percent(_) => true,
            Self::Status(error) => error.is_refused(),
        }
    }
}

impl From<SyncError> for ReconcileError {
    fn from(error: SyncError) -> Self {
        match error {
            // Only a change of the budget helps.
            SyncError::Selector(_) | SyncError::Percent(_) => Self::new(Class::Terminal, error),
            SyncError::Scales(ScalesError::Scale(error)) => error.into(),
            SyncError::Scales(ScalesError::NoController { .. }) => Self::new(Class::Transient, error),
            SyncError::Status(error) => error.into(),
        }
    }
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(budget) = self.budgets.get(key) else { return Ok(()) };
        match self.sync(&budget, session).await {
            Ok(outcome) => Ok(outcome),
            Err(error) if error.fails_safe() => {
                session.explain(|| format!("allows no disruption, as the status could not be computed: {error}"));
                let reason = AllowedReason::SyncFailed { message: error.to_string() };
                write(&budget, &fail_safe(&budget.status), &reason, session).await?;
                Err(error.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Reconciler {
    async fn sync(&self, budget: &PodDisruptionBudget, session: &Session) -> Result<Outcome, SyncError> {
        let record = |event: &EventReason| session.record(budget, event);
        if let Err(error) = &budget.selector {
            record(&EventReason::InvalidSelector { message: error.to_string() });
            return Err(SyncError::Selector(error.clone()));
        }
        let mut pods = self.pods.in_namespace(budget.metadata.key.namespace().unwrap_or_default());
        pods.retain(|pod| selects(budget, pod));
        pods.sort_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
        if pods.is_empty() {
            record(&EventReason::NoPods);
        }

        let wanted = self.wanted(budget, &pods, session).await.inspect_err(|error| {
            record(&EventReason::CalculateExpectedPodCountFailed { message: error.to_string() });
        })?;
        let now = session.now();
        let plan = plan(&budget.status, budget.metadata.generation, &pods, wanted, now);
        session.explain(|| plan.explain());
        for pod in &plan.not_deleted {
            tracing::info!(v = 1, pod = %pod.metadata.key, "Pod was expected to be deleted but it was not");
            session.record(&**pod, &EventReason::NotDeleted { budget: budget.metadata.key.clone() });
        }
        write(budget, &plan.status, &AllowedReason::of(&plan.status), session).await?;
        Ok(plan.recheck_at.map_or_else(|| (), |at| session.requeue_by(at)))
    }

    async fn wanted(
        &self,
        budget: &PodDisruptionBudget,
        pods: &[Arc<Pod>],
        session: &Session,
    ) -> Result<super::plan::Wanted, SyncError> {
        if !counts_replicas(budget) {
            return Ok(wanted(budget, pods.len(), &BTreeMap::new())?);
        }
        let controllers = Controllers::of(pods);
        let replicas = self.scales.of(&controllers).await?;
        let wanted = wanted(budget, pods.len(), &replicas)?;
        if controllers.has_unmanaged_pods {
            let selector = selector_text(budget.document.get(&["spec", "selector"]));
            session.record(budget, &EventReason::UnmanagedPods { selector });
        }
        Ok(wanted)
    }
}

async fn write(
    budget: &PodDisruptionBudget,
    status: &PodDisruptionBudgetStatus,
    reason: &AllowedReason,
    session: &Session,
) -> Result<(), StatusError> {
    if is_written(budget, status, reason) {
        return Ok(());
    }
    write_status(session, budget, status, reason).await
}
