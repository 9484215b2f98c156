//! Deployment controller: rolls the pod template of a Deployment out to pods, with a `ReplicaSet` for each template.
//!
//! Reads Deployments, `ReplicaSets` and Pods. Creates, updates, deletes, adopts and releases `ReplicaSets`. Updates the
//! status and the revision of Deployments, and other fields of a Deployment only for a rollback that an annotation
//! requests.
//!
//! ```text
//! event of a deployment, a replica set or a pod ──event mapping──▶ key
//!                                                                   │
//!   observe ──▶ claim ──▶ adopt, release ──▶ plan ──▶ requeue after ──▶ create, edit, delete ──▶ status
//!   (caches)   (pure)       (framework)     (pure)    the deadline            (apply)           (apply)
//!                                             │
//!           replica_sets: which one is new    rollout: replicas of each
//! ```
//!
//! The plan takes the first action whose condition holds (`plan.rs`): the selector is empty, the Deployment is being
//! deleted, it is paused, a rollback is requested, it is scaled; otherwise the action of its strategy.
//!
//! # Guarantees
//! - A Deployment controls a `ReplicaSet` by the uid of the controller reference, as long as its selector matches. It
//!   adopts a `ReplicaSet` only after a live read in the same reconcile has shown that the Deployment exists and is not
//!   being deleted. If a claim fails, the reconcile ends.
//! - The new `ReplicaSet` is the oldest whose template equals the Deployment's template, as the API server returns
//!   both; see [`same_template`](kcm_framework::api::same_template). There is one `ReplicaSet` for each template: its name depends
//!   on the template, and a name that is taken for another template is counted in `status.collisionCount`.
//! - The replicas of all `ReplicaSets` together are at most `replicas + maxSurge`, and the available replicas do not
//!   fall below `replicas − maxUnavailable` because of this controller; see `rollout/`.
//! - A `ReplicaSet` is not deleted if it has replicas, if its status is of an earlier generation, if it is being
//!   deleted, or if the same reconcile scales it. The resource version that was read is a precondition of the deletion.
//! - Fields of a Deployment, a `ReplicaSet` or a template that this version does not know survive every write.
//! - The status is updated only if it changes, at most once in a reconcile, with the observed generation.
//!
//! # What it does not do
//! The `ReplicaSet` controller creates and deletes Pods. The garbage collector deletes the `ReplicaSets` of a deleted
//! Deployment. Overlapping selectors are not resolved: the first Deployment that adopts a `ReplicaSet` controls it.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/deployment` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share. Messages of events and conditions are the same.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | The status is updated once, at the end of a reconcile. | It is updated up to three times; the later updates conflict and are retried. | Fewer writes. A condition that the same reconcile replaces is not visible. |
//! | A `ReplicaSet` is updated once: annotations, revision and replicas. | It is updated once for each of them, and twice if unavailable and then available replicas of an old `ReplicaSet` are removed. | Fewer writes, and one event for the whole step. |
//! | Names of `ReplicaSets` end in a hash of this project, in upstream's alphabet. | They end in a hash of Go's printed structures. | Templates are compared, not their hashes. |
//! | A taken name is not a collision if the `ReplicaSet` is an orphan with the template. | It is a collision. | The `ReplicaSet` is adopted as soon as the cache shows it. |
//! | While a Deployment is being deleted, only its status is updated. | Its new `ReplicaSet` and its revision are updated too. | The garbage collector deletes them. |
//! | A rollback waits until the present template has its `ReplicaSet`. | Both happen at once, and the second conflicts. | No conflict. |
//! | The event of a rollback is recorded after the update. | It is recorded before, and again after each conflict. | The event is true. |
//! | After a failure to scale an old `ReplicaSet`, the other old ones are scaled, the status is updated, and the reconcile is retried. | The failure is ignored, and the other old ones stay as they are. | No event may follow, and one `ReplicaSet` must not keep the others. |
//! | Available replicas of a `ReplicaSet` beyond its `spec.replicas` do not count as available. | They count in part. | A stale status must not cost availability; see `rollout/rolling.rs`. |
//! | The deletion of a `ReplicaSet` has its resource version as a precondition. | It has no precondition. | A `ReplicaSet` that was just scaled up is kept. |
//! | A complete rollout is not requeued for its deadline. | It is requeued again and again while Pods are missing. | It cannot fail any more. |
//! | A check that is due within a second happens after one second. | It happens at once, with back-off. | Times in conditions are whole seconds. |
//! | With a revision that is not a number, no annotation of the `ReplicaSet` is updated. | Annotations are updated if `minReadySeconds` changes too. | One rule for all annotations. |
//! | In a recreation the last running Pod of each `ReplicaSet` enqueues the Deployment, when it finishes or is deleted. | Every deleted Pod enqueues it. | A recreation waits until no Pod of an old `ReplicaSet` may run. |
//! | An old `ReplicaSet` that a paused Deployment scales up is not deleted in the same reconcile. | It is deleted if it exceeds the history limit. | It has replicas. |
//! | An invalid selector or strategy is not retried until the Deployment changes. | It is retried. | Only a change helps. |

mod annotations;
mod apply;
#[cfg(feature = "bench")]
pub mod bench;
mod conditions;
mod event_mapping;
mod events;
mod explain;
mod gates;
mod observe;
mod plan;
mod reconcile;
mod replica_sets;
mod rollback;
mod rollout;
mod status;
mod status_update;

#[cfg(test)]
mod tests;

use kcm_framework::api::views::{Deployment, Pod, ReplicaSet};
use kcm_framework::config::{Section, Setting, Workers};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};

use event_mapping::{key_for_pod, owners};
use gates::Gates;
use observe::Caches;
use reconcile::Reconciler;

const SECTION: Section = Section::new("Deployment-controller", "DeploymentController");
const SYNCS: Setting<Workers> =
    SECTION.workers("concurrent-deployment-syncs", "ConcurrentDeploymentSyncs", "Deployments", 5);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("deployment-controller", init)
    .aliases(&["deployment"])
    .settings(const { &[SYNCS.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("deployment").workers(&SYNCS);
    let deployments = control_loop.primary::<Deployment>();
    let owners = owners(deployments.clone());
    let of_replica_sets = owners.clone();
    let replica_sets = control_loop.watches::<ReplicaSet, _>(move |change| of_replica_sets.keys(change));
    let caches = Caches::new(replica_sets, &control_loop.reads::<Pod>());
    let sets = caches.cached_replica_sets();
    control_loop.watches::<Pod, _>(move |change| key_for_pod(change, &owners, &sets));
    let reconciler = Reconciler { caches, gates: Gates::read(|gate| context.gate(gate)) };
    Ok(control_loop.reconcile_objects(deployments, reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
