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
//! - A job has finished with its first condition `Complete` or `Failed` that is true, at the transition time of that.
//! - A job is deleted only after a live read, in the same reconcile, showed that its time to live is over. The deletion
//!   carries the uid that was read: a job that was recreated under the same name is left alone.
//! - The deletion is in the foreground: the job goes after its pods.
//! - A job that finished in the future, by a clock that is ahead, is kept its time to live from then on. A clock that is
//!   set back defers deletions, and none happens twice.
//!
//! # What it does not do
//! It deletes no pods, which the garbage collector does, and no jobs without a time to live.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/ttlafterfinished` of Kubernetes 1.36.3. Everything else is as there.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | a finished job without a time of its end is not retried until it changes | retries | only a change helps |
//! | a deletion that finds the job gone is no error, and not observed in the metric | is an error, and retried | |
//! | a job that finished in the future is not logged | is logged in each sync | the explanation of the key has the time until which it is kept |
//! | a missing permission is retried after a minute | back-off | design of the framework: only an administrator can grant it |
//! | `--concurrent-ttl-after-finished-syncs` below 1 is rejected | accepted, and no worker runs | |

mod metrics;
mod plan;
mod reconcile;
mod settings;
mod event_mapping;

#[cfg(test)]
mod tests;

use kcm_framework::{ControllerContext, ControllerDescriptor, Loops, Source};

use metrics::Metrics;
use reconcile::Reconciler;
use settings::{CONCURRENT_SYNCS, ROWS};
use event_mapping::keys_for_job;

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("ttl-after-finished-controller", |context| Ok(init(context)))
        .aliases(&["ttl-after-finished"])
        .settings(ROWS);

fn init(context: &ControllerContext) -> Loops {
    let mut described = context.control_loop("ttl_jobs_to_delete").workers_from(CONCURRENT_SYNCS);
    let jobs = described.watches_for(Source::known().resync(), keys_for_job);
    described.keyed_by(&jobs);
    let metrics = Metrics::register(context.metrics());
    Loops::new().with(described.reconcile(Reconciler { jobs, metrics }))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
