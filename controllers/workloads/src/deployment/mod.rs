//! Deployment controller: rolls the pod template of a deployment out to pods, with a replica set for each template.
//!
//! Reads deployments, replica sets and pods. Creates, updates, deletes, adopts and releases replica sets. Updates the
//! status and the revision of deployments, and the deployment itself only for a rollback that an annotation requests.
//!
//! ```text
//! event of a deployment, a replica set or a pod ──event mapping──▶ key
//!                                                                   │
//!   observe ──▶ claim ──▶ adopt, release ──▶ plan ──▶ create, edit, delete ──▶ status ──▶ requeue after
//!   (caches)   (pure)       (framework)     (pure)          (apply)           (apply)     the deadline
//!                                             │
//!           replica_sets: which one is new    rollout: replicas of each    status: counts and conditions
//! ```
//!
//! The plan takes the first action whose condition holds (`plan.rs`): the selector is empty, the deployment is being
//! deleted, it is paused, a rollback is requested, it is scaled; otherwise the action of its strategy.
//!
//! # Guarantees
//! - A deployment controls a replica set by the uid of the controller reference, as long as its selector matches. It
//!   adopts one only after a live read, in the same reconcile, showed that the deployment exists and is not being deleted.
//!   If a claim fails, the reconcile ends.
//! - The new replica set is the oldest whose template equals that of the deployment, as the API server returns both; see
//!   [`same_template`](kcm_api::same_template). There is one replica set for each template: its name depends on the
//!   template, and a name that is taken for another template is counted in `status.collisionCount`.
//! - The replicas of all replica sets together are at most `replicas + maxSurge`, and the available replicas do not fall
//!   below `replicas − maxUnavailable` because of this controller; see `rollout/`.
//! - No step is repeated because of a stale cache or a lost response: see [`Session`](kcm_framework::Session).
//! - A replica set is not deleted if it has replicas, if its status is of an earlier generation, if it is being deleted,
//!   or if the same reconcile scales it. A deletion has the resource version that was read as a precondition.
//! - Fields of a deployment, a replica set or a template that this version does not know survive every write.
//! - The status is written only if it changes, at most once in a reconcile, with the observed generation.
//!
//! # What it does not do
//! Pods belong to the replica set controller, and replica sets of a deleted deployment to the garbage collector.
//! Overlapping selectors are not resolved: the first deployment to adopt a replica set controls it.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/deployment` of Kubernetes 1.36.3. Everything else is as there, messages of events and
//! conditions included.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | the framework reads its own writes | writes from a stale cache mostly end in a conflict | holds for every controller |
//! | the status is written once, at the end of a reconcile | in up to three writes, of which the later ones conflict and are retried | fewer writes; a condition that the same reconcile replaces is not visible |
//! | a replica set is updated in one write: annotations, revision, replicas | in one write each, and in two if unavailable and then available replicas of an old replica set are removed | fewer writes; one event for the whole step |
//! | names end in a hash of our own, in upstream's alphabet | in a hash of Go's printed structures | templates are compared, not their hashes |
//! | a taken name is not a collision if the replica set is an orphan with the template | a collision | it is adopted as soon as it is in the cache |
//! | while a deployment is being deleted, only its status is updated | its new replica set and its revision too | the garbage collector deletes them |
//! | a rollback waits until the present template has its replica set | both at once, the second of which conflicts | |
//! | the event of a rollback is recorded after the write | before, and again after each conflict | |
//! | a failure to scale an old replica set down ends the reconcile, which is retried | is ignored | |
//! | available replicas beyond `spec.replicas` of a replica set do not count as available | count in part | a stale status must not cost availability; see `rollout/rolling.rs` |
//! | deletions have the uid and the resource version of the replica set as preconditions | no precondition | a replica set that was just scaled up, or recreated under the same name, is not deleted |
//! | a complete rollout is not requeued for its deadline | is requeued again and again while pods are missing | it cannot fail any more |
//! | a check that is due within a second happens after one | at once, with back-off | |
//! | with a revision that is not a number, no annotation of the replica set is updated | unless `minReadySeconds` changes too | |
//! | an owner reference must match kind, name and uid | the uid, in claims | one rule for event mapping and claims |
//! | in a recreation the last running pod of each replica set enqueues the deployment, when it finishes or is deleted | the last pod of the deployment, when it is deleted; replica sets are listed live for that | a recreation waits until no pod of an old replica set may run |
//! | an old replica set that a paused deployment scales up is not deleted by the same reconcile | is deleted if it exceeds the history limit | |
//! | a relist that returns the known version enqueues nothing | enqueues the deployment | nothing changed; a resync still enqueues |
//! | the live read before an adoption returns metadata only | the whole object | |
//! | an invalid selector or strategy is not retried until the deployment changes | retries | only a change helps |
//! | a missing permission is retried after a minute | back-off | design of the framework: only an administrator can grant it |
//! | `--concurrent-deployment-syncs` below 1 is rejected | accepted, and no worker runs | |

mod annotations;
mod apply;
#[cfg(feature = "bench")]
pub mod bench;
mod conditions;
mod event_mapping;
mod events;
mod explain;
mod observe;
mod plan;
mod reconcile;
mod replica_sets;
mod rollback;
mod rollout;
mod settings;
mod status;
mod status_update;

#[cfg(test)]
mod tests;

use kcm_api::views::{Deployment, Pod, ReplicaSet};
use kcm_framework::{ControllerContext, ControllerDescriptor, Loops};

use event_mapping::{key_for_pod, owners};
use observe::Caches;
use reconcile::Reconciler;
use settings::{CONCURRENT_SYNCS, ROWS, Settings};

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("deployment-controller", |context| Ok(init(context)))
        .aliases(&["deployment"])
        .settings(ROWS);

fn init(context: &ControllerContext) -> Loops {
    let mut rollouts = context.control_loop("deployment").workers_from(CONCURRENT_SYNCS);
    let deployments = rollouts.primary::<Deployment>();
    let owners = owners(deployments.clone());
    let of_replica_sets = owners.clone();
    let replica_sets = rollouts.watches::<ReplicaSet, _>(move |change| of_replica_sets.keys(change));
    let caches = Caches::new(deployments, replica_sets, &rollouts.reads::<Pod>());
    let sets = caches.cached_replica_sets();
    rollouts.watches::<Pod, _>(move |change| key_for_pod(change, &owners, &sets));
    let reconciler = Reconciler { caches, settings: Settings::from_gates(|gate| context.gate(gate)) };
    Loops::new().with(rollouts.reconcile(reconciler))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
