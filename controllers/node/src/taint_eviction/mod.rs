//! Taint eviction: deletes Pods that do not tolerate the taints of their Node with the effect `NoExecute`.
//!
//! Reads Pods and Nodes. Updates the status of Pods and deletes Pods.
//!
//! ```text
//! event of a Pod ────────▶ key of the Pod ──▶ plan ──▶ live read of the Node ──▶ plan ──▶ condition, deletion
//! taints of a Node ──▶ keys of its Pods     (pure)                            (pure)
//!                                             └─ tolerated for a time ──▶ requeue when the time ends
//! ```
//!
//! # Guarantees
//! - For each taint the first toleration that tolerates it counts, and the shortest time of these.
//! - A Pod is deleted only after a live read of its Node within the same second has shown the taint. All Pods of the Node
//!   share the read.
//! - The deletion carries the uid, so that an eviction never reaches a Pod that was recreated under the name.
//! - A Pod has the condition `DisruptionTarget` before it is deleted. The deletion has the grace period of the Pod.
//! - An eviction that fails is retried with back-off until it succeeds, or until the taint is tolerated or removed.
//! - A change between `not-ready` and `unreachable` does not start the tolerated time again.
//! - After a restart or a change of the leader, the time of `not-ready` and `unreachable` goes on from their `timeAdded`.
//! - After a start, and after an outage of the API server, these two taints evict nothing for
//!   `--node-monitor-grace-period`: nobody knows yet if the Node is dead, or was cut off with the rest.
//! - Jumps of the wall clock move no pending eviction.
//!
//! # What it does not do
//! It asks no disruption budget. It sets no taints; the node lifecycle controller sets `not-ready` and `unreachable`. Pods of
//! a deleted Node are left to the Pod garbage collector.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/tainteviction` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A restart continues the time of `not-ready` and `unreachable`. Taints without `timeAdded` and taints of users start again. | Every tolerated time starts again (kubernetes#108268). | Restarts do not defer evictions. Only the node lifecycle controller's times are known to be times of the cluster. |
//! | These two taints wait for the grace period after a start and after an outage. | They evict at once. | No Pod of a healthy Node is evicted because of an outage of the control plane. |
//! | A toleration that is lengthened, and the removal of the taint with the shortest time, defer a pending eviction. | A pending eviction does not move. | The Pod asks for it. |
//! | The deletion carries the uid. | It is by name. | A timer of an old Pod deletes a new one. |
//! | A failed eviction is retried. | It is dropped after five attempts within 50 ms (kubernetes#140639). | The Pod would stay. |
//! | A deleted Node cancels evictions. | They take place. | The Pod garbage collector deletes the Pods. |
//! | A Pod that is terminating already is left alone. | It gets condition and deletion again. | It is being deleted. |
//! | 16 Pods are evicted at the same time. | All at the same time. | The API server is not flooded. |
//! | Events carry the uid of the Pod. | They have none. | `kubectl describe` finds them. |
//! | A Pod that is deleted, or evicted at once while an eviction is pending, gets no event that the pending one is cancelled. | It gets one. | It is not kept. |
//! | `pod_deletion_duration_seconds` has seconds. | It has nanoseconds, multiplied by 10⁹ (kubernetes#141311). | The buckets are seconds. |
//! | The queue is `noexec_taint_pod`; there is no `noexec_taint_node`. | A queue of Nodes feeds the queue of Pods. | A change of a Node enqueues its Pods. |

mod apply;
mod event_mapping;
mod events;
mod metrics;
mod pending;
mod plan;
mod reconcile;

#[cfg(test)]
mod tests;

use kcm_framework::api::scheduling::ComparisonOperators;
use kcm_framework::api::views::{Node, Pod, PodDisruption, PodTolerations};
use kcm_framework::api::{Need, ObjectKey};
use kcm_framework::config::gates::TAINT_TOLERATION_COMPARISON_OPERATORS;
use kcm_framework::config::{Gate, GateStage};
use kcm_framework::informers::Change;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, SharedReads, Source};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::shared::{MONITOR_GRACE_PERIOD, PodsByNode, Watching};
use event_mapping::{is_tainted, keys_for_pod, node_with_other_taints};
use metrics::Metrics;
use pending::PendingEvictions;
use reconcile::Reconciler;

/// Pods that are evicted at the same time.
const WORKERS: usize = 16;

const SEPARATE_TAINT_EVICTION_CONTROLLER: Gate =
    Gate { name: "SeparateTaintEvictionController", default: true, stage: GateStage::Ga, locked: true };

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("taint-eviction-controller", init)
    .service_account("node-controller")
    .required_gates(&[SEPARATE_TAINT_EVICTION_CONTROLLER])
    .needs(const { &[Need::part::<PodTolerations>(), Need::part::<PodDisruption>()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("noexec_taint_pod").workers(WORKERS);
    let tolerations = context.part()?;
    let all_nodes = control_loop.reads::<Node>();
    let nodes = all_nodes.clone();
    let is_tainted_node =
        move |name: &str| nodes.get(&ObjectKey::cluster_scoped(name)).is_some_and(|node| is_tainted(&node));
    let pods = control_loop
        .primary_with(Source::<Pod>::known(), move |change| keys_for_pod(change, tolerations, &is_tainted_node));
    let by_node = PodsByNode::new(&pods);
    let of_node = by_node.clone();
    control_loop.watches(move |change: &Change<Node>| {
        node_with_other_taints(change).map(|node| of_node.keys(node)).unwrap_or_default()
    });
    let comparison = if context.gate(&TAINT_TOLERATION_COMPARISON_OPERATORS) {
        ComparisonOperators::Enabled
    } else {
        ComparisonOperators::Disabled
    };
    let reconciler = Reconciler {
        nodes: all_nodes,
        pods: by_node,
        tolerations,
        disruptions: context.part()?,
        comparison,
        grace: context.get(&MONITOR_GRACE_PERIOD)?.unsigned(),
        pending: Mutex::new(PendingEvictions::default()),
        watching: Mutex::new(Watching::new(Instant::now())),
        live_nodes: SharedReads::default(),
        metrics: Metrics::register(context.metrics())?,
    };
    Ok(control_loop.reconcile_objects(pods, reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
