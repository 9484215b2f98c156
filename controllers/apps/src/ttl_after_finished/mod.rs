//! TTL after finished controller: deletes jobs `spec.ttlSecondsAfterFinished` after they have finished.
//!
//! Reads and deletes jobs.
//!
//! ```text
//! event of a job ──event mapping──▶ key ──▶ plan ──▶ live read ──▶ plan ──▶ delete in the foreground
//!                                          (pure)                 (pure)
//!                                            └──────── not yet ──────┴────▶ requeue at the end of the time to live
//! ```
//!
//! # Guarantees
//! - A Job has finished at the transition time of its first condition `Complete` or `Failed` that is true.
//! - A Job is deleted only after a live read in the same reconcile has shown that its time to live is over, and only in the
//!   version that was read.
//! - The deletion is in the foreground: the pods of the Job are deleted first.
//! - A Job that finished in the future, by a clock that is ahead, is kept for its time to live from then on. A clock that is
//!   set back defers deletions; no Job is deleted twice.
//!
//! # What it does not do
//! It deletes no pods, which the garbage collector does, and no jobs without a time to live.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/ttlafterfinished` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A finished Job without a finish time is not retried until it changes. | It is retried. | Only a change helps. |
//! | A Job that does not exist when it is deleted is no error, and not observed in the metric. | It is an error, and retried. | There is nothing to delete. |
//! | A Job whose time to live is prolonged while its deletion is on its way is kept. | It is deleted. | A deletion cannot be undone. |
//! | A Job that finished in the future is not logged. | It is logged in each sync. | `explain` shows the time until which it is kept. |

mod event_mapping;
mod plan;
mod reconcile;

#[cfg(test)]
mod tests;

use kcm_framework::config::{Section, Setting, Workers};
use kcm_framework::metrics::{Stability, exponential_buckets};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use event_mapping::keys_for_job;
use reconcile::Reconciler;

const SECTION: Section = Section::new("Ttl-after-finished-controller", "TTLAfterFinishedController");
const SYNCS: Setting<Workers> =
    SECTION.workers("concurrent-ttl-after-finished-syncs", "ConcurrentTTLSyncs", "finished Jobs", 5);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("ttl-after-finished-controller", init)
    .aliases(&["ttl-after-finished"])
    .settings(const { &[SYNCS.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("ttl_jobs_to_delete").workers(&SYNCS);
    let jobs = control_loop.primary_with(Source::known().resync(), keys_for_job);
    let deletion_delay = context.metrics().histogram(
        Stability::Alpha,
        "ttl_after_finished_controller_job_deletion_duration_seconds",
        exponential_buckets(0.1, 2.0, 14),
        "Seconds from the end of a Job's time to live to its deletion",
    )?;
    Ok(control_loop.reconcile_objects(jobs, Reconciler { deletion_delay }).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
