//! The order of a reconcile: observe, due, delete old Jobs, plan, start, status.

use std::sync::Arc;

use kcm_framework::api::views::{CronJob, CronJobView, Job};
use kcm_framework::metrics::Histogram;
use kcm_framework::ownership::Dependents;
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::apply::{StartOutcome, Writer, missing_jobs, reference};
use super::due::{Due, due};
use super::history::jobs_to_delete;
use super::observe::observe;
use super::plan::{Decision, job_name, plan, reconciled_at};
use super::schedule::TimeZones;
use super::status::StatusUpdate;

/// Reconciles CronJobs.
pub(super) struct Reconciler {
    pub(super) jobs: Dependents<Job>,
    pub(super) zones: Arc<TimeZones>,
    pub(super) creation_skew: Histogram,
}

#[async_trait]
impl ReconcileObject<CronJob> for Reconciler {
    async fn reconcile(&self, cached: &Arc<CronJob>, session: &Session) -> Result<(), ReconcileError> {
        let mut observed = observe(cached, &self.jobs);
        let mut due = self.due(&observed.cron_job, session);
        // The cache of Jobs may be ahead of the cache of CronJobs: a status written by another manager may have the Job.
        if observed.unexpected().next().is_some() {
            let Some(live) = session.live_as(&*observed.cron_job).await? else { return Ok(()) };
            observed.cron_job = Arc::new(live);
            due = self.due(&observed.cron_job, session);
        }
        let missing = missing_jobs(session, &observed).await?;
        let due_job = match &due {
            Due::Now { at, timing: _ } => Some(job_name(&observed.cron_job, *at)),
            Due::Never(_) | Due::NotYet(_) => None,
        };
        let cron_job = &*observed.cron_job;
        let writer = Writer { session, cron_job, zones: &self.zones, creation_skew: &self.creation_skew };
        let surplus = jobs_to_delete(&observed, due_job.as_deref());
        let (deleted, deletions) = writer.delete_all(&surplus).await;

        let plan = plan(&observed, due, &deleted, &missing);
        tracing::debug!(decision = ?plan.decision, "Planned");
        session.explain(|| plan.explain(cron_job));
        let mut status = plan.status;
        let started = carry_out(&writer, &plan.decision, &mut status).await;
        // The changes of other Jobs are written also if the start fails.
        writer.update_status(&status).await?;
        for event in &plan.events {
            session.record(cron_job, event);
        }
        started?;
        deletions?;
        Ok(())
    }
}

impl Reconciler {
    /// Returns whether a start is due. The key is reconciled at the next start, whatever fails before.
    fn due(&self, cron_job: &CronJobView, session: &Session) -> Due {
        let due = due(cron_job, &self.zones, session.now());
        session.requeue_by(due.next().map(reconciled_at));
        due
    }
}

/// Carries a decision out, and adds the Job to the status.
async fn carry_out(writer: &Writer<'_>, decision: &Decision, status: &mut StatusUpdate) -> Result<(), ReconcileError> {
    match decision {
        Decision::Never(_) | Decision::NotYet | Decision::AlreadyStarted { .. } | Decision::StillActive { .. } => {}
        Decision::Record { at, job } if job.finished.is_some() => status.last_schedule_time = Some(*at),
        Decision::Record { at, job } => status.start(reference(&job.metadata), *at),
        Decision::Start { at, replaced } => {
            for job in replaced {
                writer.replace(job).await?;
                status.active.retain(|active| active.uid != job.uid);
            }
            match writer.start(*at).await? {
                StartOutcome::Started(job) => status.start(job, *at),
                StartOutcome::NameTaken => {
                    writer.session.explain(|| "starts nothing, as a job of another owner has the name");
                }
                StartOutcome::NamespaceTerminating => {
                    writer.session.explain(|| "starts nothing, as the namespace is being deleted");
                }
            }
        }
    }
    Ok(())
}
