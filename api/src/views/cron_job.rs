//! The view of a `CronJob`.

use jiff::Timestamp;
use serde::Deserialize;

use crate::documented::Documented;
use crate::intern::InternedStr;
use crate::key::Uid;
use crate::protobuf::{Kind, ProtobufType};
use crate::resource::Resource;

/// A `CronJob` with its JSON. The controller updates its status and copies its template into Jobs.
pub type CronJob = Documented<CronJobView>;

crate::view! {
    /// Fields of a `CronJob` that decisions read.
    pub struct CronJobView {
        resource: Resource::namespaced("batch", "v1", "cronjobs", "CronJob");

        "spec" @ 2 {
            /// `spec.schedule`, empty if it is absent.
            pub schedule: InternedStr = "schedule" @ 1;
            /// `spec.timeZone`, `None` if it is absent.
            pub time_zone: Option<InternedStr> = "timeZone" @ 8;
            /// `spec.startingDeadlineSeconds`, `None` if it is absent.
            pub starting_deadline_seconds: Option<i64> = "startingDeadlineSeconds" @ 2;
            /// `spec.concurrencyPolicy`, `Allow` if it is absent.
            pub concurrency_policy: ConcurrencyPolicy = "concurrencyPolicy" @ 3;
            /// `spec.suspend`, `false` if it is absent.
            pub suspend: bool = "suspend" @ 4;
            /// `spec.successfulJobsHistoryLimit`, `None` if it is absent.
            pub successful_jobs_history_limit: Option<i32> = "successfulJobsHistoryLimit" @ 6;
            /// `spec.failedJobsHistoryLimit`, `None` if it is absent.
            pub failed_jobs_history_limit: Option<i32> = "failedJobsHistoryLimit" @ 7;
        }
        /// Status of the `CronJob`, from `status`.
        pub status: CronJobStatus = "status" @ 3;
    }
}

crate::message! {
    /// The status of a cron job.
    pub struct CronJobStatus {
        /// The jobs that run.
        pub active: Box<[ActiveJob]> = "active" @ 1;
        /// Time for which the last started Job was due.
        pub last_schedule_time: Option<Timestamp> = "lastScheduleTime" @ 4;
        /// Time at which a Job last completed.
        pub last_successful_time: Option<Timestamp> = "lastSuccessfulTime" @ 5;
    }
}

crate::message! {
    /// The reference of a cron job to a job that runs.
    pub struct ActiveJob {
        /// Namespace of the Job.
        pub namespace: InternedStr = "namespace" @ 2;
        /// Name of the Job.
        pub name: Box<str> = "name" @ 3;
        /// Uid of the Job.
        pub uid: Uid = "uid" @ 4;
    }
}

/// Treatment of Jobs that still run when the next Job is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum ConcurrencyPolicy {
    /// The next Job is not started.
    Forbid,
    /// Running Jobs are deleted.
    Replace,
    /// Jobs run beside each other. Unknown policies mean the same.
    #[default]
    #[serde(other)]
    Allow,
}

impl ProtobufType for ConcurrencyPolicy {
    const KIND: Kind = Kind::Text;
}
