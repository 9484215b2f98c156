//! Replica set controller: keeps the number of pods of each replica set at `spec.replicas`.
//!
//! Reads replica sets and pods. Creates, deletes, adopts and releases pods. Updates the status of replica sets.
//!
//! ```text
//! event of a pod or a replica set ──event mapping──▶ key
//!                                                     │
//!   observe ──▶ claim ──▶ adopt, release ──▶ plan ──▶ create, delete ──▶ status ──▶ requeue after
//!   (caches)   (pure)      (framework)      (pure)       (apply)         (apply)     minReadySeconds
//! ```
//!
//! # Guarantees
//! - A pod counts if it is active (neither finished nor terminating), controlled by the replica set, by uid, and selected
//!   by it. Finished and terminating pods are replaced at once, and are neither adopted nor released.
//! - A pod is adopted only after a live read, in the same reconcile, showed that the replica set exists and is not being
//!   deleted. If a claim fails, no pod is created or deleted and the status is not written.
//! - At most 500 pods are created or deleted in one reconcile. Creations start slowly, and end with the first batch in
//!   which one fails. For a replica set that is being deleted, only the status is updated.
//! - No step is repeated because of a stale cache: the framework does not reconcile a key before it has read its own
//!   writes (see [`Session`](kcm_framework::Session)). There are no expectations.
//! - Fields of a replica set, its template included, that this version does not know survive every write.
//! - The status is written only if it changes, with the observed generation.
//!
//! # What it does not do
//! A change of the template replaces no pod: rollouts belong to the deployment controller. Pods of a deleted replica set
//! belong to the garbage collector. Overlapping selectors are not resolved: the first replica set to adopt a pod controls
//! it.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/replicaset` of Kubernetes 1.36.3. Everything else is as there, messages of events and
//! conditions included.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | the framework reads its own writes | expectations, and since 1.36 a comparison of versions | holds for every controller, and has no five-minute time-out; so the status is not written while pods are awaited, and `replicaset_controller_stale_sync_skips_total` stays 0 |
//! | names of pods are generated here, in addition to `generateName` | by the API server | a creation whose response was lost can be looked up |
//! | deletions have the uid of the pod as a precondition | no precondition | a pod that was recreated under the same name is not deleted; a 409 records no event, is not a failure, and is retried soon |
//! | in a terminating namespace each reconcile tries one creation | a whole burst, then none for five minutes | without expectations each deleted pod would cost a burst |
//! | the ranking for deletion is a total order, uid last | pairwise rules that can be circular | the result does not depend on the order of the cache; see `shared/replicas/rank.rs` |
//! | an age ratio to a pod without age is left out | division by zero | |
//! | a relist that returns the known version enqueues nothing | enqueues the replica set | nothing changed; a resync still enqueues |
//! | a terminating pod that changes its owner enqueues both | only the new owner | the old owner would be enqueued by its next event only |
//! | a status is not written to a replica set that was recreated under the same name | the second try does not check the uid | |
//! | a condition that does not change is left as the API server has it, unknown fields included | is written again | |
//! | the live read before an adoption returns metadata only | the whole object | |
//! | a template without labels is not retried until the replica set changes | retries | only a change helps |
//! | a missing permission is retried after a minute | back-off | design of the framework: only an administrator can grant it |
//! | `--concurrent-replicaset-syncs` below 1 is rejected | accepted, and no worker runs | |

mod settings;

#[cfg(test)]
mod tests;

use kcm_api::views::{ReplicaSet, ReplicaSetStatus};
use kcm_api::{Document, InvalidSelector, Labels, Selector};
use kcm_framework::{ControllerContext, ControllerDescriptor, Loops};

#[cfg(feature = "bench")]
pub use crate::shared::replicas::bench;
use crate::shared::replicas::{ReplicaOwner, control_loop};
use settings::{CONCURRENT_SYNCS, ROWS};

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("replicaset-controller", |context| Ok(init(context)))
        .aliases(&["replicaset"])
        .settings(ROWS);

fn init(context: &ControllerContext) -> Loops {
    let sets = context.control_loop("replicaset").workers_from(CONCURRENT_SYNCS);
    Loops::new().with(control_loop::<ReplicaSet>(context, sets))
}

impl ReplicaOwner for ReplicaSet {
    const NOUN: &'static str = "replica set";
    const COUNTS_TERMINATING: bool = true;

    fn replicas(&self) -> i32 {
        self.view.replicas
    }

    fn min_ready_seconds(&self) -> i32 {
        self.view.min_ready_seconds
    }

    fn selector(&self) -> &Result<Selector, InvalidSelector> {
        &self.view.selector
    }

    fn template_labels(&self) -> &Labels {
        &self.view.template_labels
    }

    fn status(&self) -> &ReplicaSetStatus {
        &self.view.status
    }

    fn document(&self) -> &Document {
        &self.document
    }
}

kcm_framework::inventory::submit! { DESCRIPTOR }
