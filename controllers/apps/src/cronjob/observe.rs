//! The snapshot of a CronJob and its Jobs, from the caches.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::{CronJob, Job};
use kcm_framework::api::{ConditionStatus, Meta};
use kcm_framework::ownership::{Dependents, Owner};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    pub(super) cron_job: Arc<CronJob>,
    /// The Jobs that it controls, in the order of their names.
    pub(super) jobs: Vec<OwnedJob>,
}

/// A Job of the CronJob.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OwnedJob {
    pub(super) metadata: Meta,
    pub(super) finished: Option<Finished>,
    /// `status.startTime`.
    pub(super) start_time: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finished {
    Complete {
        /// `status.completionTime`.
        at: Option<Timestamp>,
    },
    Failed,
}

impl Finished {
    /// The type of the condition.
    pub(super) const fn condition(self) -> &'static str {
        match self {
            Self::Complete { .. } => "Complete",
            Self::Failed => "Failed",
        }
    }
}

impl OwnedJob {
    pub(super) fn of(job: &Job) -> Self {
        // The first of these conditions that is true counts.
        let mut true_ones = job.status.conditions.iter().filter(|condition| condition.status == ConditionStatus::True);
        let finished = true_ones.find_map(|condition| match condition.type_.as_str() {
            "Complete" => Some(Finished::Complete { at: job.status.completion_time }),
            "Failed" => Some(Finished::Failed),
            _ => None,
        });
        Self { metadata: job.metadata.clone(), finished, start_time: job.status.start_time }
    }

    pub(super) fn name(&self) -> &str {
        self.metadata.key.name()
    }
}

impl Observed {
    /// Whether the status has the Job as active.
    pub(super) fn is_active(&self, job: &OwnedJob) -> bool {
        self.cron_job.status.active.iter().any(|active| active.uid == job.metadata.uid)
    }

    /// The Jobs that have not finished, and that the status does not have.
    pub(super) fn unexpected(&self) -> impl Iterator<Item = &OwnedJob> {
        self.jobs.iter().filter(|job| job.finished.is_none() && !self.is_active(job))
    }
}

/// Observes a CronJob and its Jobs.
pub(super) fn observe(cron_job: &Arc<CronJob>, jobs: &Dependents<Job>) -> Observed {
    let mut jobs: Vec<_> = jobs.owned_by(Owner::of(&**cron_job)).iter().map(|job| OwnedJob::of(job)).collect();
    jobs.sort_by(|a, b| a.name().cmp(b.name()));
    Observed { cron_job: Arc::clone(cron_job), jobs }
}
