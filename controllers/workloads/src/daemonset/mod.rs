//! Daemon set controller: keeps one pod of each daemon set on every node that should run it, and rolls its pod template
//! out.
//!
//! Reads daemon sets, nodes, pods and controller revisions. Creates, deletes, adopts, releases and labels pods. Creates,
//! updates, deletes, adopts and releases controller revisions. Updates the status of daemon sets.
//!
//! ```text
//! event of a node ──▶ key of the node ──▶ which daemon sets does it concern? ──┐
//! event of a daemon set, a pod, a revision ──event mapping──▶ key ◀────────────┘
//!                                                              │
//!   observe ──▶ claim ──▶ revisions ──▶ place ──▶ manage, else roll ──▶ create, delete ──▶ status ──▶ requeue
//!   (caches)  (framework)  (history)   (pure)         (pure)              (apply)          (apply)
//! ```
//!
//! | file | decides |
//! | --- | --- |
//! | `placement.rs` | whether a node should run the daemon, and whether a pod that is there may stay |
//! | `manage.rs` | pods that are missing, surplus, finished, or on a node that should not run the daemon |
//! | `rollout/` | old pods that are deleted, and nodes that get a new pod beside the old one |
//! | `history.rs` | which revision is current, and which ones are deleted |
//! | `node_updates.rs` | the daemon sets that a change of a node concerns |
//!
//! # Guarantees
//! - A node should run the daemon if the template names no other node, node selector and required node affinity select it,
//!   and the daemon tolerates its taints of the effects `NoSchedule` and `NoExecute`. With a `NoSchedule` taint that it
//!   does not tolerate, a pod that is there stays. Daemons tolerate that a node is not ready, unreachable, unschedulable or
//!   under pressure; in the network of the node, also that this is unavailable.
//! - A pod is bound by the scheduler to its node: its node affinity selects that node by name.
//! - A node has one pod of a daemon set. With `maxSurge` it has an old and a new one during a rolling update, until the new
//!   one is available or the old one is not ready. Of others the scheduled and oldest one stays.
//! - A rolling update goes on when no pod is missing, surplus or finished. It never deletes an available pod if more than
//!   `maxUnavailable` nodes would be without one; old pods that are not available are always replaced, and count. With
//!   `maxSurge`, at most so many nodes have an old pod that is available and a new one that is not.
//! - A failed pod is deleted and replaced, after 1 s to 15 minutes on the same node; a succeeded pod at once.
//! - The current revision is the last one with the data of the template, equal in bytes to upstream's. Its hash is a label
//!   of its pods, and a rollback gives it the highest number. A name that is taken for other data is counted in
//!   `status.collisionCount`. A revision that a pod has is not deleted.
//! - At most 250 pods are created and 250 deleted in one reconcile. Creations start slowly, and end with the first batch in
//!   which one fails.
//! - No step is repeated because of a stale cache or a lost response: see [`Session`](kcm_framework::Session).
//! - The status is written only if it changes, after a failure too, with the observed generation.
//!
//! # What it does not do
//! Whether a node has room for a pod is for the scheduler to decide. Pods on deleted nodes belong to the pod garbage
//! collector, pods of a deleted daemon set to the garbage collector. Overlapping selectors are not resolved.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/daemon` of Kubernetes 1.36.3. Everything else is as there, messages of events included.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | the framework reads its own writes | expectations, and since 1.36 a comparison of versions | holds for every controller, and has no five-minute time-out; `daemonset_controller_stale_sync_skips_total` stays 0 |
//! | with a quantity that Go keeps as a decimal, such as `100Ti`, the name of a revision ends in a hash of its data | in the hash of the Go types | revisions are found by their data |
//! | names of pods are generated here, in addition to `generateName` | by the API server | a creation whose response was lost can be looked up |
//! | deletions have the uid of the object as a precondition | no precondition | an object that was recreated under the same name is not deleted |
//! | nodes go in the order of their names | in random order | |
//! | of duplicate revisions, the pods of the deleted ones get the hash of the one that is kept, and the reconcile ends | all pods get it, those of old templates too, and the reconcile goes on with the old labels | pods of an old template would never be replaced |
//! | a change of labels of revisions, and a collision, end the reconcile | it goes on | their events enqueue the set |
//! | a failed pod is deleted as soon as its back-off ends | up to twice as late | |
//! | the set is requeued for the time at which the next pod becomes available | a whole `minReadySeconds` after each reconcile | |
//! | a node that is deleted enqueues the sets with a pod on it | nothing | their status counts nodes |
//! | a change of a node concerns a pod that the scheduler has not bound to it yet | bound pods only | a pod that may not stay goes at once |
//! | in a rolling update with surge, pods of a node that does not exist are left alone | the update fails until they are gone | other nodes go on |
//! | the status is written once in a reconcile, and not read back after a conflict | with a second try on the live object | a conflict is retried soon |
//! | a relist that returns the known version enqueues nothing | enqueues the set | nothing changed; a resync still enqueues |
//! | the live read before an adoption returns metadata only | the whole object | |
//! | an invalid selector, template or strategy is not retried until the set changes | retries | only a change helps |
//! | a missing permission is retried after a minute | back-off | design of the framework: only an administrator can grant it |
//! | `--concurrent-daemonset-syncs` below 1 is rejected | accepted, and no worker runs | |

mod apply;
mod backoff;
mod changes;
mod event_mapping;
mod events;
mod explain;
mod history;
mod manage;
mod metrics;
mod node_updates;
mod observe;
mod placement;
mod plan;
mod pod_spec;
mod pods_by_node;
mod reconcile;
mod revision;
mod rollout;
mod settings;
mod snapshot;
mod status;
mod template_hash;
mod tolerations;

#[cfg(test)]
mod tests;

use kcm_api::views::{ControllerRevision, DaemonSet, Node, Pod, PodTargetNode};
use kcm_api::{Need, ObjectKey};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};
use parking_lot::Mutex;

use backoff::FailedPodBackoff;
use event_mapping::owners;
use node_updates::{DaemonPods, NodeReconciler, key_for_node};
use observe::Caches;
use reconcile::Reconciler;
use settings::{CONCURRENT_SYNCS, ROWS, Settings};

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("daemonset-controller", init)
    .aliases(&["daemonset"])
    .service_account("daemon-set-controller")
    .needs(&[Need::part::<PodTargetNode>()])
    .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    metrics::register(context.metrics());
    let targets = context.part::<PodTargetNode>()?;
    let settings = Settings::from_gates(|gate| context.gate(gate));

    let mut sets = context.control_loop::<ObjectKey>("daemonset").workers_from(CONCURRENT_SYNCS);
    let daemon_sets = sets.primary::<DaemonSet>();
    let owners = owners(daemon_sets.clone());
    let of_revisions = owners.clone();
    let revisions = sets.watches::<ControllerRevision, _>(move |change| of_revisions.keys(change));
    let pods = sets.watches::<Pod, _>(move |change| owners.keys(change));
    let nodes = sets.reads::<Node>();
    let caches = Caches::new(daemon_sets, nodes, &pods, &revisions);
    let queue = sets.queue();
    let sets =
        sets.reconcile(Reconciler { caches, targets, settings, backoff: Mutex::new(FailedPodBackoff::default()) });

    let mut updates = context.control_loop::<ObjectKey>("daemonset-node-updates").workers_from(CONCURRENT_SYNCS);
    let nodes = updates.watches::<Node, _>(key_for_node);
    let pods = DaemonPods::of(&updates.reads::<Pod>(), targets);
    let reconciler = NodeReconciler { sets: updates.reads::<DaemonSet>(), nodes, pods, settings, queue };
    Ok(Loops::new().with(sets).with(updates.reconcile(reconciler)))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
