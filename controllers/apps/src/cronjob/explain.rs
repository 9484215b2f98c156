//! The explanation of a plan.

use kcm_framework::api::views::CronJobView;

use super::due::NeverReason;
use super::plan::{Decision, Plan, job_name};

impl Plan {
    /// Explains to operators which Job is started, or why none is, and when the next start is due.
    pub(super) fn explain(&self, cron_job: &CronJobView) -> String {
        let decision = self.decision.explain(cron_job);
        match (&self.decision, self.next) {
            (Decision::Never(_), _) => decision,
            (_, Some(next)) => format!("{decision}; the next start is at {next}"),
            (_, None) => format!("{decision}; there is no further start"),
        }
    }
}

impl Decision {
    fn explain(&self, cron_job: &CronJobView) -> String {
        match self {
            Self::Never(reason) => reason.explain(),
            Self::NotYet => "starts no job, as none is due".to_owned(),
            Self::AlreadyStarted { at } => format!("starts no job for {at}, as that was started before"),
            Self::Record { at, job } => {
                format!("adds job {} to the status, which was created for {at} before", job.name())
            }
            Self::StillActive { at } => {
                format!("starts no job for {at}, as another is active and spec.concurrencyPolicy is Forbid")
            }
            Self::Start { at, replaced } => {
                let name = job_name(cron_job, *at);
                if replaced.is_empty() {
                    return format!("starts job {name}, which was due at {at}");
                }
                let replaced: Vec<&str> = replaced.iter().map(|job| &*job.name).collect();
                let replaced = replaced.join(", ");
                format!("starts job {name}, which was due at {at}, in the place of {replaced}")
            }
        }
    }
}

impl NeverReason {
    fn explain(&self) -> String {
        match self {
            Self::Terminating => "starts no job, as the cron job is being deleted".to_owned(),
            Self::Suspended => "starts no job until spec.suspend is removed".to_owned(),
            Self::UnknownTimeZone { name, error } => {
                format!("starts no job until spec.timeZone {name:?} is corrected: {error}")
            }
            Self::Unparseable { schedule, error } => {
                format!("starts no job until spec.schedule {schedule:?} is corrected: {error}")
            }
            Self::NeverStarts { schedule, error: _ } => {
                format!(
                    "starts no job until spec.schedule {schedule:?} is corrected, which has no start within five years"
                )
            }
        }
    }
}
