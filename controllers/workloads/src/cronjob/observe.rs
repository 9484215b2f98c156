//! The snapshot of a cron job and its jobs, from the caches.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_api::views::{CronJob, Job};
use kcm_api::{ConditionStatus, Meta, ObjectKey};
use kcm_framework::ownership::{Dependents, Owner};
use kcm_informers::Informer;

/// The snapshot of one cron job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    /// The cron job.
    pub(super) cron_job: Arc<CronJob>,
    /// The jobs that it controls, in the order of their names.
    pub(super) jobs: Vec<OwnedJob>,
}

/// A job of a cron job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OwnedJob {
    /// Its metadata.
    pub(super) metadata: Meta,
    /// How it finished, if it has.
    pub(super) finished: Option<Finished>,
    /// `status.startTime`.
    pub(super) start_time: Option<Timestamp>,
}

/// How a job finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finished {
    /// It is complete.
    Complete {
        /// `status.completionTime`.
        at: Option<Timestamp>,
    },
    /// It has failed.
    Failed,
}

impl Finished {
    /// The type of its condition.
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

    /// Its name.
    pub(super) fn name(&self) -> &str {
        self.metadata.key.name()
    }
}

impl Observed {
    /// Whether the status has the job as one that runs.
    pub(super) fn is_active(&self, job: &OwnedJob) -> bool {
        self.cron_job.status.active.iter().any(|active| active.uid == job.metadata.uid)
    }

    /// The jobs that have not finished, and that the status does not have.
    pub(super) fn unexpected(&self) -> impl Iterator<Item = &OwnedJob> {
        self.jobs.iter().filter(|job| job.finished.is_none() && !self.is_active(job))
    }
}

/// The caches that the controller reads.
pub(super) struct Caches {
    cron_jobs: Informer<CronJob>,
    jobs: Dependents<Job>,
}

impl Caches {
    pub(super) fn new(cron_jobs: Informer<CronJob>, jobs: &Informer<Job>) -> Self {
        Self { cron_jobs, jobs: Dependents::of(jobs) }
    }

    /// The snapshot of one cron job; absent if it does not exist.
    pub(super) fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let cron_job = self.cron_jobs.get(key)?;
        let mut jobs: Vec<OwnedJob> =
            self.jobs.owned_by(Owner::of(&*cron_job)).iter().map(|job| OwnedJob::of(job)).collect();
        jobs.sort_by(|a, b| a.name().cmp(b.name()));
        Some(Observed { cron_job, jobs })
    }
}
