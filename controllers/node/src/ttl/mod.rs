//! TTL controller: tells kubelets for how long they may cache Secrets and `ConfigMaps`, by the size of the cluster.
//!
//! Reads Nodes. Writes their annotation `node.alpha.kubernetes.io/ttl`, in seconds.
//!
//! ```text
//! event of a Node ──event mapping──▶ key ──▶ step of the cluster ──▶ annotation differs? ──▶ patch
//!                                              (pure)    │                (pure)
//!                                                        └─ changed ──▶ keys of all Nodes, at low priority
//! ```
//!
//! | step | Nodes | seconds |
//! | --- | --- | --- |
//! | 0 | 0 to 100 | 0 |
//! | 1 | 90 to 500 | 15 |
//! | 2 | 450 to 1000 | 30 |
//! | 3 | 900 to 2000 | 60 |
//! | 4 | from 1800 | 300 |
//!
//! # Guarantees
//! - The step changes only when the number of Nodes leaves the range of the step, so that it does not change to and fro.
//! - A change of the step reaches all Nodes, after keys of Nodes that change.
//! - A Node that has the right number, in any decimal form, is not written.
//! - A patch carries the uid of the Node: a recreated Node is not changed for its predecessor.
//!
//! # What it does not do
//! It has no state beyond the step, and no settings. No Node is read from the API server: the role does not allow it.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/ttl` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all controllers
//! share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A change of the step enqueues all Nodes. | Nodes follow at their next update, such as a status of the kubelet. | A kubelet that reports seldom follows too. |
//! | If the number of Nodes fits two steps at the start, most Nodes decide by the seconds that they have. | It is the lower step. | At rest, a restart or a change of leader writes nothing. |
//! | The step follows the number of Nodes in the cache when a key is reconciled. | It follows each event. | A Node that is deleted and recreated between two keys does not change the step. |

mod event_mapping;
mod reconcile;
mod step;

#[cfg(test)]
mod tests;

use kcm_framework::api::Need;
use kcm_framework::api::views::Node;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};
use parking_lot::Mutex;

use event_mapping::keys_for_node;
use reconcile::Reconciler;
use step::Step;

/// The annotation that the kubelet reads.
const TTL: &str = "node.alpha.kubernetes.io/ttl";

/// Nodes that are reconciled concurrently, as upstream.
const WORKERS: usize = 5;

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("ttl-controller", init)
    .aliases(&["ttl"])
    .needs(const { &[Need::annotation::<Node>(TTL)] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("ttlcontroller").workers(WORKERS);
    let nodes = control_loop.primary_with(Source::<Node>::known().resync(), keys_for_node);
    let queue = control_loop.queue();
    let reconciler = Reconciler { nodes: nodes.clone(), queue, step: Mutex::new(Step::FIRST) };
    Ok(control_loop.reconcile_objects(nodes, reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
