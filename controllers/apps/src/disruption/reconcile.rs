//! The order of a reconcile of a PodDisruptionBudget: observe, plan, write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::views::{Pod, PodDisruptionBudget, PodDisruptionBudgetStatus};
use kcm_framework::api::{EditError, InvalidPercent, InvalidSelector};
use kcm_framework::client::ApiError;
use kcm_framework::informers::LabelIndex;
use kcm_framework::{Class, ReconcileError, ReconcileObject, Session, async_trait};

use super::apply::update_status;
use super::controllers::{Controllers, Scales, ScalesError};
use super::events::DisruptionEvent;
use super::plan::{Wanted, counts_replicas, plan, wanted};
use super::selector_text::selector_text;
use super::status::{AllowedReason, fail_safe, is_written, with_status};

/// Reconciles PodDisruptionBudgets.
pub(super) struct Reconciler {
    pub(super) pods_by_label: LabelIndex<Pod>,
    pub(super) scales: Scales,
}

/// The status of a budget could not be computed or written. The message is also written into the status.
#[derive(Debug, thiserror::Error)]
enum SyncError {
    #[error("{0}")]
    Selector(InvalidSelector),
    #[error(transparent)]
    Scales(#[from] ScalesError),
    #[error(transparent)]
    Percent(#[from] InvalidPercent),
    #[error("cannot edit the status of the pod disruption budget")]
    Edit(#[from] EditError),
    #[error("{}", .0.message())]
    Status(#[from] ApiError),
}

impl SyncError {
    /// Returns whether the budget is written to once more, so that it allows no disruption.
    ///
    /// A budget that has changed is computed again, and a write that may have taken effect is not overwritten.
    fn fails_safe(&self) -> bool {
        match self {
            Self::Selector(_) | Self::Scales(_) | Self::Percent(_) => true,
            Self::Edit(_) => false,
            Self::Status(error) => error.status().is_some() && !error.is_conflict() && !error.response_lost(),
        }
    }

    /// Returns whether a retry soon is likely to fail in the same way, although no change of the budget is needed.
    const fn lasts(&self) -> bool {
        match self {
            Self::Scales(error) => error.lasts(),
            Self::Selector(_) | Self::Percent(_) | Self::Edit(_) | Self::Status(_) => false,
        }
    }
}

impl From<SyncError> for ReconcileError {
    fn from(error: SyncError) -> Self {
        match error {
            // Only a change of the budget helps.
            SyncError::Selector(_) | SyncError::Percent(_) | SyncError::Edit(_) => Self::terminal(error),
            // The key is requeued after a fixed time.
            SyncError::Scales(ref scales) if scales.lasts() => Self::terminal(error),
            SyncError::Scales(ScalesError::Scale(error)) => error.into(),
            SyncError::Scales(ScalesError::NoController { .. }) => Self::new(Class::Transient, error),
            SyncError::Status(error) => error.into(),
        }
    }
}

#[async_trait]
impl ReconcileObject<PodDisruptionBudget> for Reconciler {
    async fn reconcile(&self, budget: &Arc<PodDisruptionBudget>, session: &Session) -> Result<(), ReconcileError> {
        let Err(error) = self.sync(budget, session).await else { return Ok(()) };
        if error.fails_safe() {
            session.explain(|| format!("allows no disruption, as the status could not be computed: {error}"));
            let reason = AllowedReason::SyncFailed { message: error.to_string() };
            let status = fail_safe(&budget.status);
            if error.lasts() {
                session.requeue_after(look_again(is_written(budget, &status, &reason)));
            }
            if let Err(failed) = write(budget, &status, &reason, session).await {
                return Err(retried(error.into(), failed.into()));
            }
        }
        Err(error.into())
    }
}

/// The time after which a budget is computed again whose Pods have no controller with a scale. For a budget over Pods of
/// Jobs this is the normal state, and each look is a request. At first, the kind may be installed just now.
const fn look_again(is_known: bool) -> Duration {
    Duration::from_mins(if is_known { 10 } else { 1 })
}

/// Returns the error that decides the retry if the status could not be computed because of `cause`, and the status that
/// allows nothing could not be written: the cause only if the write is not retried.
pub(super) fn retried(cause: ReconcileError, write: ReconcileError) -> ReconcileError {
    match write.class() {
        Class::Terminal => cause,
        Class::Transient | Class::Unavailable | Class::Conflict | Class::Forbidden => write,
    }
}

impl Reconciler {
    async fn sync(&self, budget: &PodDisruptionBudget, session: &Session) -> Result<(), SyncError> {
        let record = |event: &DisruptionEvent| session.record(budget, event);
        let selector = budget.selector.as_ref().map_err(|error| {
            record(&DisruptionEvent::InvalidSelector { message: error.to_string() });
            SyncError::Selector(error.clone())
        })?;
        let namespace = budget.metadata.key.namespace().unwrap_or_default();
        let pods = self.pods_by_label.selected(namespace, selector);
        if pods.is_empty() {
            record(&DisruptionEvent::NoPods);
        }

        let wanted = self.wanted(budget, &pods, session).await.inspect_err(|error| {
            record(&DisruptionEvent::CalculateExpectedPodCountFailed { message: error.to_string() });
        })?;
        let plan = plan(&budget.status, budget.metadata.generation, &pods, wanted, session.now());
        session.requeue_by(plan.recheck_at);
        session.explain(|| plan.explain());
        for pod in &plan.not_deleted {
            tracing::info!(v = 1, pod = %pod.metadata.key, "Pod was expected to be deleted but it was not");
            session.record(&**pod, &DisruptionEvent::NotDeleted { budget: budget.metadata.key.clone() });
        }
        write(budget, &plan.status, &AllowedReason::of(&plan.status), session).await
    }

    async fn wanted(
        &self,
        budget: &PodDisruptionBudget,
        pods: &[Arc<Pod>],
        session: &Session,
    ) -> Result<Wanted, SyncError> {
        if !counts_replicas(budget) {
            return Ok(wanted(budget, pods.len(), &BTreeMap::new())?);
        }
        let controllers = Controllers::of(pods);
        let replicas = self.scales.of(&controllers).await?;
        let wanted = wanted(budget, pods.len(), &replicas)?;
        if controllers.has_unmanaged_pods {
            let selector = selector_text(budget.document.get(&["spec", "selector"]));
            session.record(budget, &DisruptionEvent::UnmanagedPods { selector });
        }
        Ok(wanted)
    }
}

async fn write(
    budget: &PodDisruptionBudget,
    status: &PodDisruptionBudgetStatus,
    reason: &AllowedReason,
    session: &Session,
) -> Result<(), SyncError> {
    if !is_written(budget, status, reason) {
        let document = with_status(budget, status, reason, session.now())?;
        update_status(session, budget, &document).await?;
    }
    Ok(())
}
