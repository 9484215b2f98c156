//! The metrics of this controller.

use std::time::Duration;

use kcm_api::views::{Job, JobStatus, JobView, Pod};
use kcm_framework::prometheus_client::metrics::counter::Counter;
use kcm_framework::prometheus_client::metrics::family::Family;
use kcm_framework::prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use kcm_framework::prometheus_client::registry::Registry;
use kcm_informers::Change;

use super::assess::{Assessment, completion_mode, external_manager};
use super::conditions::{Ending, JobResult};
use super::indexes::Indexes;
use super::job_pod::{is_tracked, replaces_failed_only};
use super::track::Applied;
use crate::shared::stale_syncs;

type Labels<const N: usize> = [(&'static str, String); N];

/// Histograms of a family.
fn sync_durations() -> Histogram {
    Histogram::new(exponential_buckets(0.004, 2.0, 15))
}

/// The metrics, by the names of upstream.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    syncs: Family<Labels<3>, Counter>,
    sync_seconds: Family<Labels<3>, Histogram>,
    jobs_finished: Family<Labels<3>, Counter>,
    external: Family<Labels<1>, Counter>,
    pods_finished: Family<Labels<2>, Counter>,
    policy_actions: Family<Labels<1>, Counter>,
    tracking_finalizers: Family<Labels<1>, Counter>,
    indexes_finished: Family<Labels<2>, Counter>,
    pods_created: Family<Labels<2>, Counter>,
}

impl Metrics {
    /// Registers the metrics.
    pub(super) fn register(manager: &kcm_framework::Metrics) -> Self {
        manager.register(|registry| {
            let metrics = Self {
                syncs: Family::default(),
                sync_seconds: Family::new_with_constructor(sync_durations),
                jobs_finished: Family::default(),
                external: Family::default(),
                pods_finished: Family::default(),
                policy_actions: Family::default(),
                tracking_finalizers: Family::default(),
                indexes_finished: Family::default(),
                pods_created: Family::default(),
            };
            metrics.register_all(registry);
            metrics
        })
    }

    // The text format appends `_total` to the names of counters.
    fn register_all(&self, registry: &mut Registry) {
        registry.register("job_controller_job_syncs", "[STABLE] How often jobs were reconciled", self.syncs.clone());
        registry.register(
            "job_controller_job_sync_duration_seconds",
            "[STABLE] Seconds that a reconcile of a job took",
            self.sync_seconds.clone(),
        );
        registry.register(
            "job_controller_jobs_finished",
            "[STABLE] How many jobs have completed or failed, and why",
            self.jobs_finished.clone(),
        );
        registry.register(
            "job_controller_jobs_by_external_controller",
            "[ALPHA] How many jobs that another controller manages were added",
            self.external.clone(),
        );
        registry.register(
            "job_controller_job_pods_finished",
            "[STABLE] How many finished pods were counted",
            self.pods_finished.clone(),
        );
        registry.register(
            "job_controller_pod_failures_handled_by_failure_policy",
            "[BETA] How many failures of pods a rule of a pod failure policy matched, by its action",
            self.policy_actions.clone(),
        );
        registry.register(
            "job_controller_terminated_pods_tracking_finalizer",
            "[BETA] How many finished pods with the finalizer of jobs came, and how many are gone or lost it",
            self.tracking_finalizers.clone(),
        );
        registry.register(
            "job_controller_job_finished_indexes",
            "[ALPHA] How many indexes have succeeded or failed",
            self.indexes_finished.clone(),
        );
        registry.register(
            "job_controller_job_pods_creation",
            "[ALPHA] How many pods were created, or could not be, and why",
            self.pods_created.clone(),
        );
        stale_syncs::register(registry, "job_controller", &[("", "pods"), ("batch", "jobs")]);
    }

    /// Counts a reconcile.
    pub(super) fn synced(&self, job: &JobView, action: &str, has_failed: bool, took: Duration) {
        let result = if has_failed { "error" } else { "success" };
        let labels = [
            ("completion_mode", completion_mode(job).to_owned()),
            ("result", result.to_owned()),
            ("action", action.to_owned()),
        ];
        self.syncs.get_or_create(&labels).inc();
        self.sync_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts a job that was added and that another controller manages.
    pub(super) fn observe_job(&self, change: &Change<Job>) {
        if let Change::Added(job) = change
            && let Some(name) = external_manager(job)
        {
            self.external.get_or_create(&[("controller_name", name.to_string())]).inc();
        }
    }

    /// Counts a finished pod that came with the finalizer, or that is gone or has lost it.
    pub(super) fn observe_pod(&self, change: &Change<Pod>) {
        let is_waiting = |pod: &Pod| pod.is_finished() && is_tracked(pod);
        let (was, is) = match change {
            Change::Added(pod) => (false, is_waiting(pod)),
            Change::Updated { old, new } => (is_waiting(old), is_waiting(new)),
            Change::Deleted { last, final_state_known: _ } => (is_waiting(last), false),
        };
        if was != is {
            let event = if is { "add" } else { "delete" };
            self.tracking_finalizers.get_or_create(&[("event", event.to_owned())]).inc();
        }
    }

    /// Counts pods that were created, and those that could not be.
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
            self.pods_created
                .get_or_create(&[("reason", reason.to_owned()), ("status", status.to_owned())])
                .inc_by(count);
        }
    }

    /// Counts what one write of the status says about pods and indexes.
    pub(super) fn counted(&self, job: &JobView, before: &JobStatus, after: &JobStatus) {
        let succeeded = if job.is_indexed() {
            let limit = if job.backoff_limit_per_index.is_some() { "perIndex" } else { "global" };
            let total = |text: &str| Indexes::parse(text, job.completions.unwrap_or(0)).total();
            let new = |before: &str, after: &str| count(total(after).saturating_sub(total(before)));
            let of = |status: &JobStatus| status.failed_indexes.as_deref().unwrap_or_default().to_owned();
            let succeeded = new(&before.completed_indexes, &after.completed_indexes);
            for (status, count) in [("succeeded", succeeded), ("failed", new(&of(before), &of(after)))] {
                let labels = [("status", status.to_owned()), ("backoffLimit", limit.to_owned())];
                self.indexes_finished.get_or_create(&labels).inc_by(count);
            }
            succeeded
        } else {
            count(after.succeeded.saturating_sub(before.succeeded))
        };
        let failed = count(after.failed.saturating_sub(before.failed));
        for (result, count) in [("succeeded", succeeded), ("failed", failed)] {
            let labels = [("completion_mode", completion_mode(job).to_owned()), ("result", result.to_owned())];
            self.pods_finished.get_or_create(&labels).inc_by(count);
        }
    }

    /// Counts failures that an action of a pod failure policy handled.
    pub(super) fn handled_by_policy(&self, action: &str, count: u64) {
        self.policy_actions.get_or_create(&[("action", action.to_owned())]).inc_by(count);
    }

    /// Counts a job that has ended.
    pub(super) fn finished(&self, job: &JobView, ending: &Ending) {
        let result = match ending.result {
            JobResult::Complete => "succeeded",
            JobResult::Failed => "failed",
        };
        let labels = [
            ("completion_mode", completion_mode(job).to_owned()),
            ("result", result.to_owned()),
            ("reason", ending.reason.to_string()),
        ];
        self.jobs_finished.get_or_create(&labels).inc();
    }
}

/// A counter never falls: a smaller number counts as none.
fn count(difference: i32) -> u64 {
    u64::try_from(difference).unwrap_or(0)
}
