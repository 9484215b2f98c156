//! The order of a reconcile: observe, due, delete old jobs, plan, start, status.

use std::sync::Arc;

use kcm_api::ObjectKey;
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};

use super::apply::{StartOutcome, Writer, live, missing_jobs, reference};
use super::due::{Due, due};
use super::history::jobs_to_delete;
use super::metrics::Metrics;
use super::observe::Caches;
use super::plan::{Decision, job_name, plan, reconciled_at};
use super::schedule::TimeZones;
use super::status::StatusUpdate;

/// Reconciles cron jobs.
pub(super) struct Reconciler {
    pub(super) caches: Caches,
    pub(super) zones: Arc<TimeZones>,
    pub(super) metrics: Metrics,
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(mut observed) = self.caches.observe(key) else { return Ok(()) };
        // The cache of jobs may be ahead of that of cron jobs: a status written by another manager may have the job.
        if observed.unexpected().next().is_some() {
            let Some(live) = live(session, &observed.cron_job).await? else { return Ok(()) };
            observed.cron_job = Arc::new(live);
        }
        let missing = missing_jobs(session, &observed).await?;
        let due = due(&observed.cron_job, &self.zones, session.now());
        let due_job = match &due {
            Due::Now { at, timing: _ } => Some(job_name(&observed.cron_job, *at)),
            Due::Never(_) | Due::NotYet(_) => None,
        };
        let cron_job = &*observed.cron_job;
        let writer = Writer { session, cron_job, zones: &self.zones, metrics: &self.metrics };
        let surplus = jobs_to_delete(&observed, due_job.as_deref());
        let (deleted, deletions) = writer.delete_all(&surplus).await;

        let plan = plan(&observed, due, &deleted, &missing);
        tracing::debug!(decision = ?plan.decision, "Planned");
        session.explain(|| plan.explain(cron_job));
        let mut status = plan.status;
        let started = carry_out(&writer, &plan.decision, &mut status).await;
        // What was seen of other jobs is written also where the start fails.
        writer.update_status(&status).await?;
        for event in &plan.events {
            session.record(cron_job, event);
        }
        started?;
        deletions?;
        Ok(plan.next.map_or_else(|| (), |next| session.requeue_by(reconciled_at(next))))
    }
}

/// Carries a decision out, and adds the job to the status.
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
