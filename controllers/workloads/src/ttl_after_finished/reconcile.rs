//! The order of a reconcile: plan, live read, plan, delete.

use kcm_api::views::Job;
use kcm_api::{KnownView as _, ObjectKey};
use kcm_framework::client::{DeleteOptions, Deleted, DeletionPropagation};
use kcm_framework::{Class, Reconcile, ReconcileError, Session, async_trait};
use kcm_informers::Informer;

use super::metrics::Metrics;
use super::plan::{NoFinishTime, Plan, plan};

/// Reconciles finished jobs.
pub(super) struct Reconciler {
    pub(super) jobs: Informer<Job>,
    pub(super) metrics: Metrics,
}

impl From<NoFinishTime> for ReconcileError {
    /// Only a change of the job helps.
    fn from(error: NoFinishTime) -> Self {
        Self::new(Class::Terminal, error)
    }
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(cached) = self.jobs.get(key) else { return Ok(()) };
        let cached = plan(&cached, session.now())?;
        if let Some(outcome) = unless_expired(cached, session) {
            return Ok(outcome);
        }
        // The time to live may have been changed since the cache was filled, and a deletion cannot be undone.
        let live: Job = match session.api().get(const { &Job::RESOURCE }, key).await {
            Ok(live) => live,
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let planned = plan(&live, session.now())?;
        let Plan::Delete { expired_at } = planned else {
            return Ok(unless_expired(planned, session).unwrap_or_else(|| ()));
        };
        session.explain(|| planned.explain());
        let uid = &live.metadata.uid;
        let options =
            DeleteOptions { propagation: Some(DeletionPropagation::Foreground), ..DeleteOptions::of_uid(uid.clone()) };
        match session.raw_delete(const { &Job::RESOURCE }, key, uid, &options).await? {
            Deleted::Accepted => {
                tracing::info!("Deleted job");
                self.metrics.deleted(session.now().duration_since(expired_at));
            }
            Deleted::Gone => {}
        }
        Ok(())
    }
}

/// The outcome of a plan that deletes nothing.
fn unless_expired(plan: Plan, session: &Session) -> Option<Outcome> {
    let outcome = match plan {
        Plan::Delete { .. } => return None,
        Plan::Keep(_) => (),
        Plan::Wait { until } => session.requeue_by(until),
    };
    session.explain(|| plan.explain());
    Some(outcome)
}
