//! `ReplicaSet` controller: keeps the number of pods of each `ReplicaSet` at `spec.replicas`.
//!
//! Reads `ReplicaSets` and Pods. Creates, deletes, adopts and releases Pods. Updates the status of `ReplicaSets`.
//!
//! ```text
//! event of a pod or a replica set ──event mapping──▶ key
//!                                                     │
//!   observe ──▶ claim ──▶ requeue after  ──▶ adopt, release ──▶ plan ──▶ create, delete ──▶ status
//!   (caches)   (pure)     minReadySeconds     (framework)      (pure)       (apply)         (apply)
//! ```
//!
//! # Guarantees
//! - A Pod counts if it is active (neither finished nor terminating), if the `ReplicaSet` controls it, by uid, and if
//!   the selector matches it. Finished and terminating Pods are replaced at once, and are neither adopted nor released.
//! - A Pod is adopted only after a live read in the same reconcile has shown that the `ReplicaSet` exists and is not
//!   being deleted. If a claim fails, no Pod is created or deleted and the status is not updated.
//! - At most 500 Pods are created or deleted in one reconcile. Creations start slowly, and end with the first batch in
//!   which one fails. For a `ReplicaSet` that is being deleted, only the status is updated.
//! - Fields of a `ReplicaSet` and its template that this version does not know survive every write.
//! - The status is updated only if it changes, with the observed generation.
//!
//! # What it does not do
//! A change of the template replaces no Pod: the Deployment controller rolls templates out. The garbage collector deletes
//! the Pods of a deleted `ReplicaSet`. Overlapping selectors are not resolved: the first `ReplicaSet` that adopts a Pod
//! controls it.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/replicaset` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share. Messages of events and conditions are the same.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | The status is not updated while the caches do not show created or deleted Pods. | It is updated with expectations. | A key waits for its own writes. |
//! | The deletion of a Pod that was recreated under the same name records no event, and is retried soon. | It deletes the recreated Pod. | Only the cache is behind. |
//! | In a terminating namespace each reconcile tries to create one Pod. | It tries a whole burst, and then none for five minutes. | Without expectations each deleted Pod would cost a burst. |
//! | The order of deletion is total; the uid decides last. | It consists of rules for pairs, which can be circular. | The result does not depend on the order of the cache; see `shared/replicas/rank.rs`. |
//! | If the youngest Pod is less than a millisecond old, the metric of age ratios is not observed. | It divides by zero. | A ratio to zero has no value. |
//! | A terminating Pod that changes its owner enqueues both owners. | It enqueues the new owner only. | The old owner would wait for its next event. |
//! | The status is updated again, from the live object, only after a conflict. | It is after any error. | After another error the second try would fail too. |
//! | The second try to update the status checks the uid. | It does not. | A recreated `ReplicaSet` has a status of its own. |
//! | A condition that does not change keeps its unknown fields. | It is written again. | Other clients may have set them. |
//! | A template without labels is not retried until the `ReplicaSet` changes. | It is retried. | Only a change helps. |

#[cfg(test)]
mod tests;

use kcm_framework::ControllerDescriptor;
use kcm_framework::api::views::ReplicaSet;
use kcm_framework::config::{Section, Setting, Workers};

#[cfg(feature = "bench")]
pub use crate::shared::replicas::bench;
use crate::shared::replicas::{init, replica_owner};

const SECTION: Section = Section::new("Replicaset-controller", "ReplicaSetController");
const SYNCS: Setting<Workers> = SECTION.workers("concurrent-replicaset-syncs", "ConcurrentRSSyncs", "ReplicaSets", 5);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("replicaset-controller", |context| init::<ReplicaSet>(context, "replicaset", &SYNCS))
        .aliases(&["replicaset"])
        .settings(const { &[SYNCS.row()] });

replica_owner!(ReplicaSet, "replica set", counts_terminating: true);

kcm_framework::inventory::submit! { DESCRIPTOR }
