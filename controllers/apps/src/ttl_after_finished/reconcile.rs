//! The order of a reconcile: plan, live read, plan, delete.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::Job;
use kcm_framework::client::Deleted;
use kcm_framework::metrics::Histogram;
use kcm_framework::{Delete, ReconcileError, ReconcileObject, Session, async_trait};

use super::plan::{Plan, plan};

/// Reconciles finished Jobs.
pub(super) struct Reconciler {
    pub(super) deletion_delay: Histogram,
}

#[async_trait]
impl ReconcileObject<Job> for Reconciler {
    async fn reconcile(&self, cached: &Arc<Job>, session: &Session) -> Result<(), ReconcileError> {
        if decide(cached, session)?.is_none() {
            return Ok(());
        }
        // The time to live may have been changed since the cache was filled, and a deletion cannot be undone.
        let Some(live) = session.live::<Job>(&cached.metadata.key).await? else { return Ok(()) };
        let Some(expired_at) = decide(&live, session)? else { return Ok(()) };
        // It may still be changed while the deletion is on its way.
        let of_version = Delete::foreground().at_version(&live.metadata.resource_version);
        if session.delete(&live, of_version).await? == Deleted::Accepted {
            tracing::info!("Deleted job");
            self.deletion_delay.observe(session.now().duration_since(expired_at).as_secs_f64());
        }
        Ok(())
    }
}

/// Returns the end of the time to live if the Job is deleted now.
fn decide(job: &Job, session: &Session) -> Result<Option<Timestamp>, ReconcileError> {
    let planned = plan(job, session.now()).map_err(ReconcileError::terminal)?;
    session.explain(|| planned.explain());
    Ok(match planned {
        Plan::Keep(_) => None,
        Plan::Wait { until } => {
            session.requeue_by(until);
            None
        }
        Plan::Delete { expired_at } => Some(expired_at),
    })
}
