//! The metrics of this controller.

use std::borrow::Cow;
use std::time::Duration;

use kcm_framework::api::views::{Job, JobStatus, JobView, Pod};
use kcm_framework::informers::Change;
use kcm_framework::metrics::Stability::{Alpha, Beta, Stable};
use kcm_framework::metrics::{Counters, Histograms, MetricError, exponential_buckets};

use super::assess::{Assessment, completion_mode, external_manager};
use super::conditions::{Ending, JobResult};
use super::indexes::Indexes;
use super::job_pod::{is_tracked, replaces_failed_only};
use super::track::Applied;
use crate::shared::stale_syncs;

#[derive(Debug, Clone)]
pub(super) struct Metrics {
    syncs: Counters<3>,
    sync_seconds: Histograms<3>,
    jobs_finished: Counters<3>,
    external: Counters<1>,
    pods_finished: Counters<2>,
    policy_actions: Counters<1>,
    tracking_finalizers: Counters<1>,
    indexes_finished: Counters<2>,
    pods_created: Counters<2>,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        const SYNC: [&str; 3] = ["completion_mode", "result", "action"];
        let stale = [("", "pods"), ("batch", "jobs")];
        stale_syncs::register(metrics, "job_controller_stale_sync_skips_total", &stale)?;
        Ok(Self {
            syncs: metrics.counters(Stable, "job_controller_job_syncs_total", SYNC, "Reconciles of Jobs")?,
            sync_seconds: metrics.histograms(
                Stable,
                "job_controller_job_sync_duration_seconds",
                SYNC,
                exponential_buckets(0.004, 2.0, 15),
                "Seconds that a reconcile of a Job took",
            )?,
            jobs_finished: metrics.counters(
                Stable,
                "job_controller_jobs_finished_total",
                ["completion_mode", "result", "reason"],
                "Jobs that have completed or failed, by reason",
            )?,
            external: metrics.counters(
                Alpha,
                "job_controller_jobs_by_external_controller_total",
                ["controller_name"],
                "Created Jobs that another controller manages",
            )?,
            pods_finished: metrics.counters(
                Stable,
                "job_controller_job_pods_finished_total",
                ["completion_mode", "result"],
                "Finished Pods that were counted",
            )?,
            policy_actions: metrics.counters(
                Beta,
                "job_controller_pod_failures_handled_by_failure_policy_total",
                ["action"],
                "Failures of Pods that a rule of a pod failure policy matched, by the action of the rule",
            )?,
            tracking_finalizers: metrics.counters(
                Beta,
                "job_controller_terminated_pods_tracking_finalizer_total",
                ["event"],
                "Finished Pods that have the finalizer of Jobs (add), and that were deleted or lost it (delete)",
            )?,
            indexes_finished: metrics.counters(
                Alpha,
                "job_controller_job_finished_indexes_total",
                ["status", "backoffLimit"],
                "Indexes that have succeeded or failed",
            )?,
            pods_created: metrics.counters(
                Alpha,
                "job_controller_job_pods_creation_total",
                ["reason", "status"],
                "Pods that were created or could not be created, by reason",
            )?,
        })
    }

    pub(super) fn synced(&self, job: &JobView, action: &'static str, has_failed: bool, took: Duration) {
        let labels = [completion_mode(job), if has_failed { "error" } else { "success" }, action];
        self.syncs.of(labels).inc();
        self.sync_seconds.of(labels).observe(took.as_secs_f64());
    }

    /// Counts a Job that was created and that another controller manages.
    pub(super) fn observe_job(&self, change: &Change<Job>) {
        if let Change::Added(job) = change
            && let Some(name) = external_manager(job)
        {
            self.external.of([name.to_string()]).inc();
        }
    }

    /// Counts a finished Pod that has the finalizer from now on, or that was deleted or has lost it.
    pub(super) fn observe_pod(&self, change: &Change<Pod>) {
        let is_waiting = |pod: &Pod| pod.is_finished() && is_tracked(pod);
        let (was, is) = match change {
            Change::Added(pod) => (false, is_waiting(pod)),
            Change::Updated { old, new } => (is_waiting(old), is_waiting(new)),
            // It still waits for the removal of its finalizer.
            Change::Undecodable { .. } => return,
            Change::Deleted { last, final_state_known: _ } => (is_waiting(last), false),
        };
        if was != is {
            self.tracking_finalizers.of([if is { "add" } else { "delete" }]).inc();
        }
    }

    /// Counts Pods that were created, and Pods that could not be created.
    pub(super) fn created(&self, assessment: &Assessment<'_>, applied: Applied, failures: u64) {
        let is_first = assessment.failed == 0 && assessment.terminating == 0;
        let reason = if is_first {
            "new"
        } else if assessment.failed > 0 && replaces_failed_only(assessment.job) {
            "recreate_failed"
        } else {
            "recreate_terminating_or_failed"
        };
        let created = u64::try_from(applied.created).unwrap_or(0);
        for (status, count) in
            [("succeeded", created), ("failed", failures)].into_iter().filter(|(_, count)| *count > 0)
        {
            self.pods_created.of([reason, status]).inc_by(count);
        }
    }

    /// Counts the Pods and indexes that one update of the status counts.
    pub(super) fn counted(&self, job: &JobView, before: &JobStatus, after: &JobStatus) {
        let succeeded = if job.is_indexed() {
            let limit = if job.backoff_limit_per_index.is_some() { "perIndex" } else { "global" };
            let total = |text: &str| Indexes::parse(text, job.completions.unwrap_or(0)).total();
            let new = |before: &str, after: &str| count(total(after).saturating_sub(total(before)));
            let of = |status: &JobStatus| status.failed_indexes.as_deref().unwrap_or_default().to_owned();
            let succeeded = new(&before.completed_indexes, &after.completed_indexes);
            for (status, count) in [("succeeded", succeeded), ("failed", new(&of(before), &of(after)))] {
                self.indexes_finished.of([status, limit]).inc_by(count);
            }
            succeeded
        } else {
            count(after.succeeded.saturating_sub(before.succeeded))
        };
        let failed = count(after.failed.saturating_sub(before.failed));
        for (result, count) in [("succeeded", succeeded), ("failed", failed)] {
            self.pods_finished.of([completion_mode(job), result]).inc_by(count);
        }
    }

    /// Counts failures that an action of a pod failure policy handled.
    pub(super) fn handled_by_policy(&self, action: &'static str, count: u64) {
        self.policy_actions.of([action]).inc_by(count);
    }

    pub(super) fn finished(&self, job: &JobView, ending: &Ending) {
        let result = match ending.result {
            JobResult::Complete => "succeeded",
            JobResult::Failed => "failed",
        };
        let reason = Cow::from(ending.reason.to_string());
        self.jobs_finished.of([completion_mode(job).into(), result.into(), reason]).inc();
    }
}

/// A counter never falls: a smaller number counts as none.
fn count(difference: i32) -> u64 {
    u64::try_from(difference).unwrap_or(0)
}
