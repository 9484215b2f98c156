//! Cron job controller: starts a job for each time of the schedule of a cron job, and deletes old ones.
//!
//! Reads cron jobs and jobs. Creates and deletes jobs. Updates the status of cron jobs.
//!
//! ```text
//! event of a cron job or a job ──event mapping──▶ key ◀──────────── requeue at the next start + 100 ms
//!                                                  │                              ▲
//!   observe ──▶ due ──▶ delete old jobs ──▶ plan ──▶ replace, create ──▶ status ──┘
//!   (caches)   (pure)   (history: pure)    (pure)        (apply)         (apply)
//!                │
//!   schedule: fields and time zone    missed: starts since the last one
//! ```
//!
//! # Guarantees
//! - The starts are those of `robfig/cron` v3: five fields or a descriptor, in the time zone `spec.timeZone` or that of the
//!   manager, also where the offset of the time zone changes.
//! - Of the starts since the last one, only the most recent is started; those before `spec.startingDeadlineSeconds` do not
//!   count. Their number is estimated; more than 100 are a warning.
//! - The name of a job depends on the cron job and the minute in which it is due: a job is not created twice for a minute,
//!   whatever response is lost, whenever the manager is killed, and also if the clock is set back.
//! - A finished job is not deleted before the status has the time at which it was due.
//! - With the policy `Forbid` no job is created while the status has an active one; with `Replace` the active ones are
//!   deleted first.
//! - Deletions carry the uid of the job, so that a job that was recreated under the same name is left alone.
//! - The status is written only if it changes, at most once in a reconcile. Fields that this version does not know survive.
//! - Time zones come from a database in the program, so that an image without files has them.
//!
//! # What it does not do
//! Pods belong to the job controller, and jobs of a deleted cron job to the garbage collector. A job that people create from
//! the template is in the history, and never in `status.active`.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/cronjob` of Kubernetes 1.36.3. Everything else is as there, messages of events included.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | the framework reads its own writes | may see an old status, and finds the name of the job taken | holds for every controller |
//! | jobs are those whose controller reference has kind, name and uid of the cron job | the name | jobs of an earlier cron job of that name belong to the garbage collector |
//! | a job that was created and is not in the status is added to it without a request, also if it has finished | is created again, which finds the name taken; one that has finished and exceeds the history limit is deleted before, and then created a second time | at most one job for a minute |
//! | such a job is not reported as unexpected | event `UnexpectedJob` | it is expected |
//! | of several starts in a minute (`@every 10s`) one is started | the name is taken as long as the job exists | |
//! | with a live cron job that was read because of an unexpected job, the whole reconcile goes on | changes of the status are lost | |
//! | a job of another owner under the name of a job: the next start is waited for | until something changes | a cron job must not stop |
//! | deletions have the uid as a precondition; no live read before those of the policy `Replace` | a live read, no precondition | |
//! | an active job that was recreated with another uid is missing | is active | |
//! | a deletion that finds the job gone is no error | event `FailedDelete` | |
//! | a deletion beyond the history limit that fails is retried with back-off | with the next reconcile | |
//! | a terminating job is not deleted again | is, in each reconcile | |
//! | no event `MissSchedule` | cannot be reached, as starts before the deadline do not count | |
//! | a change to a schedule that cannot be read: event `UnparseableSchedule` | `UnParseableCronJobSchedule` | the reconcile records it |
//! | events about the status are recorded after its update | before, and again after each conflict | |
//! | a creation in a terminating namespace is not retried before the next start | with back-off | the namespace takes all with it |
//! | a schedule with a gap of more than five years never starts | may search for ever | |
//! | of a duration that cannot be read the message says no more than that | what is wrong with it | the API server rejects it |
//! | a missing permission is retried after a minute | back-off | design of the framework: only an administrator can grant it |
//! | `--concurrent-cron-job-syncs` below 1 is rejected | accepted, and no worker runs | |

mod apply;
mod due;
mod event_mapping;
mod events;
mod explain;
mod history;
mod job;
mod metrics;
mod missed;
mod observe;
mod plan;
mod reconcile;
mod schedule;
mod settings;
mod status;

#[cfg(test)]
mod tests;

use std::future::ready;
use std::sync::Arc;

use futures::FutureExt as _;
use kcm_api::views::Job;
use kcm_framework::{ControllerContext, ControllerDescriptor, Loops, Source};

use event_mapping::key_for_cron_job;
use metrics::Metrics;
use observe::Caches;
use reconcile::Reconciler;
use schedule::{TimeZones, local_time_zone};
use settings::{CONCURRENT_SYNCS, ROWS};

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new_async("cronjob-controller", |context| {
    ready(Ok(Some(init(context, TimeZones::new(local_time_zone()))))).boxed()
})
.aliases(&["cronjob"])
.settings(ROWS);

fn init(context: &ControllerContext, zones: TimeZones) -> Loops {
    let mut described = context.control_loop("cronjob").workers_from(CONCURRENT_SYNCS);
    let zones = Arc::new(zones);
    let (of_changes, clock) = (Arc::clone(&zones), Arc::clone(context.clock()));
    let cron_jobs = described
        .watches_for(Source::known().resync(), move |change| key_for_cron_job(change, &of_changes, clock.now()));
    described.keyed_by(&cron_jobs);
    let jobs = described.owns::<Job>();
    let caches = Caches::new(cron_jobs, &jobs);
    let metrics = Metrics::register(context.metrics());
    Loops::new().with(described.reconcile(Reconciler { caches, zones, metrics }))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
