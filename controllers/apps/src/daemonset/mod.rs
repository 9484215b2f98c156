//! `DaemonSet` controller: keeps one pod of each `DaemonSet` on every node that should run it, and rolls its pod
//! template out.
//!
//! Reads `DaemonSets`, Nodes, Pods and `ControllerRevisions`. Creates, deletes, adopts, releases and labels Pods.
//! Creates, updates, deletes, adopts and releases `ControllerRevisions`. Updates the status of `DaemonSets`.
//!
//! ```text
//! event of a node ──▶ key of the node ──▶ which daemon sets does it concern? ──┐
//! event of a daemon set, a pod, a revision ──event mapping──▶ key ◀────────────┘
//!                                                              │
//!   observe ──▶ claim ──▶ revisions ──▶ place ──▶ manage, else roll ──▶ requeue ──▶ create, delete ──▶ status
//!   (caches)  (framework)  (history)   (pure)         (pure)                           (apply)        (apply)
//! ```
//!
//! | file | decides |
//! | --- | --- |
//! | `placement.rs` | if a node should run the daemon, and if an existing pod may stay |
//! | `manage.rs` | which pods are missing, surplus, finished, or on a node that should not run the daemon |
//! | `rollout/` | which old pods are deleted, and which nodes get a new pod beside the old one |
//! | `history.rs` | which revision is current, and which revisions are deleted |
//! | `node_updates.rs` | which `DaemonSets` a change of a node concerns |
//!
//! # Guarantees
//! - A node should run the daemon if the template names no other node, node selector and required node affinity select it,
//!   and the daemon tolerates its taints of the effects `NoSchedule` and `NoExecute`. If the daemon does not tolerate a
//!   `NoSchedule` taint, an existing pod stays. Daemons tolerate that a node is not ready, unreachable, unschedulable or
//!   under pressure. Daemons in the network of the node also tolerate that this network is unavailable.
//! - The scheduler binds a pod to its node: the node affinity of the pod selects the node by name.
//! - A node has one pod of a `DaemonSet`. With `maxSurge` it has an old and a new pod during a rolling update, until
//!   the new pod is available or the old pod is not ready. Of more pods, the scheduled and oldest pod stays.
//! - A rolling update continues if no pod is missing, surplus or finished. It never deletes an available pod if more than
//!   `maxUnavailable` nodes would then be without one. Old pods that are not available are always replaced, and count. With
//!   `maxSurge`, at most that many nodes have an available old pod and a new pod that is not available.
//! - A failed pod is deleted and replaced, after 1 s to 15 minutes on the same node; a succeeded pod is replaced at once.
//! - The current revision is the last revision with the data of the template, in the same bytes as upstream's. Its hash is a
//!   label of its pods, and a rollback gives it the highest number. A name that is taken for other data is counted in
//!   `status.collisionCount`. A revision that a pod has is not deleted.
//! - At most 250 pods are created and 250 deleted in one reconcile. Creations start slowly, and end with the first batch in
//!   which one fails.
//! - The status is updated only if it changes, after a failure too, with the observed generation.
//!
//! # What it does not do
//! The scheduler decides if a node has room for a pod. The pod garbage collector deletes pods on deleted nodes, and the
//! garbage collector deletes the pods of a deleted `DaemonSet`. Overlapping selectors are not resolved.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/daemon` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all controllers
//! share. Messages of events are the same.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | With a quantity that Go keeps as a decimal, such as `100Ti`, the name of a revision ends in a hash of its data. | It ends in the hash of the Go types. | Revisions are found by their data. |
//! | Nodes get their pods in the order of their names. After a failed creation, its node comes last, and the others come in another order each time. | They get them in random order. | Two runs do the same, and a node whose pods are denied keeps no other node waiting. |
//! | The pods of deleted duplicate revisions get the hash of the revision that is kept, and the reconcile ends. | All pods get it, pods of old templates too, and the reconcile continues with the old labels. | Pods of an old template would never be replaced. |
//! | A change of labels of revisions, and a collision, end the reconcile. | The reconcile continues. | Their events enqueue the `DaemonSet`. |
//! | A failed pod is deleted as soon as its back-off ends. | It is deleted up to twice as late. | The key is requeued for that time. |
//! | The `DaemonSet` is requeued for the time at which the next pod becomes available. | It is requeued a whole `minReadySeconds` after each reconcile. | The status is right earlier. |
//! | A node that is deleted enqueues the `DaemonSets` with a pod on it. | It enqueues none. | Their status counts nodes. |
//! | While a node cannot be decoded, a `DaemonSet` with a pod on it is not reconciled. | The list of nodes fails, so no `DaemonSet` sees a change of any node. | Its pods would be deleted as if there was no such node. |
//! | A change of a node concerns a pod that the scheduler has not bound to it yet. | It concerns bound pods only. | A pod that may not stay is deleted at once. |
//! | In a rolling update with surge, pods of a node that does not exist are kept. | The update fails until they are deleted. | Other nodes are updated. |
//! | The status is updated once in a reconcile. | It is updated a second time, from the live object, after a conflict. | A conflict is retried soon. |
//! | An invalid selector, template or limit is not retried until the `DaemonSet` changes. | It is retried. | Only a change helps. |

mod apply;
mod backoff;
mod changes;
mod creation_order;
mod event_mapping;
mod events;
mod explain;
mod gates;
mod history;
mod manage;
mod node_updates;
mod observe;
mod placement;
mod plan;
mod pod_spec;
mod pods_by_node;
mod reconcile;
mod revision;
mod rollout;
mod snapshot;
mod status;
mod template_hash;
mod tolerations;

#[cfg(test)]
mod tests;

use kcm_framework::api::views::{ControllerRevision, DaemonSet, Node, Pod, PodTargetNode};
use kcm_framework::api::{Need, ObjectKey};
use kcm_framework::config::{Section, Setting, Workers};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};
use parking_lot::Mutex;

use crate::shared::stale_syncs;
use event_mapping::{key_for_node, keys_for_pod, owners};
use gates::Gates;
use node_updates::{DaemonPods, NodeReconciler};
use observe::Caches;
use reconcile::Reconciler;

const SECTION: Section = Section::new("Daemonset-controller", "DaemonSetController");
const SYNCS: Setting<Workers> =
    SECTION.workers("concurrent-daemonset-syncs", "ConcurrentDaemonSetSyncs", "DaemonSets", 2);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("daemonset-controller", init)
    .aliases(&["daemonset"])
    .service_account("daemon-set-controller")
    .needs(&[Need::part::<PodTargetNode>()])
    .settings(const { &[SYNCS.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let resources = [("", "pods"), ("apps", "daemonsets")];
    stale_syncs::register(context.metrics(), "daemonset_controller_stale_sync_skips_total", &resources)?;
    let targets = context.part::<PodTargetNode>()?;
    let gates = Gates::read(|gate| context.gate(gate));

    let mut sets = context.control_loop::<ObjectKey>("daemonset").workers(&SYNCS);
    let daemon_sets = sets.primary::<DaemonSet>();
    let owners = owners(daemon_sets.clone());
    let of_revisions = owners.clone();
    let revisions = sets.watches::<ControllerRevision, _>(move |change| of_revisions.keys(change));
    let pods = sets.watches::<Pod, _>(move |change| keys_for_pod(change, &owners));
    let caches = Caches::new(sets.reads::<Node>(), &pods, &revisions);
    let queue = sets.queue();
    let reconciler =
        Reconciler { caches, targets, gates, backoff: Mutex::default(), failed_creations: Mutex::default() };
    let sets = sets.reconcile_objects(daemon_sets, reconciler);

    let mut updates = context.control_loop::<ObjectKey>("daemonset-node-updates").workers(&SYNCS);
    let nodes = updates.watches::<Node, _>(key_for_node);
    let pods = DaemonPods::of(&updates.reads::<Pod>(), targets);
    let reconciler = NodeReconciler { sets: updates.reads::<DaemonSet>(), nodes, pods, gates, queue };
    Ok(Loops::new().with(sets).with(updates.reconcile(reconciler)))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
