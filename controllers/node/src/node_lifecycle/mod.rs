//! Node lifecycle controller: notices Nodes that are silent, and taints Nodes by their conditions.
//!
//! Reads Nodes, Pods, and the Leases in `kube-node-lease`. Updates the status of Nodes and Pods, and taints and labels of
//! Nodes.
//!
//! ```text
//! every 5 s: Nodes, Leases ──▶ silent? ──live read──▶ conditions unknown ──▶ zones ──▶ queue of each zone
//!            (caches)          (pure)                 (status of Nodes)     (pure)        │ at a rate
//!                                                             │                           ▼
//! event of a Node ───────────────────────────────────────────────────▶ taints, labels of the Node (pure) ──▶ patch
//!                                                             └──▶ its Pods are not ready
//! ```
//!
//! | time, by default | event |
//! | --- | --- |
//! | 0 | last sign of life: a renewal of the Lease, or a heartbeat in the status |
//! | 50 to 55 s | `Ready` and the pressures become `Unknown`; the Pods become not ready; taint `unreachable:NoSchedule` |
//! | then, one Node in 10 s in each zone | taint `unreachable:NoExecute`: the taint eviction controller takes over |
//!
//! | state of a zone | condition | Nodes tainted per second |
//! | --- | --- | --- |
//! | normal | else | `--node-eviction-rate` |
//! | partially disrupted | more than two Nodes, and `--unhealthy-zone-threshold` of all, are not ready | `--secondary-node-eviction-rate`; none up to `--large-cluster-size-threshold` Nodes |
//! | fully disrupted | no Node is ready | `--node-eviction-rate`; none if all zones are |
//!
//! # Guarantees
//! - Clocks of kubelets do not count: a Node is alive when its heartbeat or the time in its Lease changes.
//! - A Node that was recreated under the name inherits nothing.
//! - Before a Node is marked, its Lease is read from the API server, once while it is silent. The patch carries the version of the Node,
//!   so that a kubelet wins that has reported meanwhile.
//! - Silence before a start, during an outage of the API server, and while the process was suspended, does not count: each Node
//!   has its whole grace period after it.
//! - Zones are judged only by passes in which all Nodes could be looked at, and no Node is tainted before the first of these.
//! - A Pod that is ready on a lost Node is found again after a restart.
//! - Taints and labels of a Node are one patch, which is retried until it succeeds. Other taints stay.
//!
//! # What it does not do
//! It evicts no Pods and deletes no Nodes.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/nodelifecycle` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | At a start, Nodes that are not ready keep their taints that evict. | All Nodes lose them, and get them again at the rate. | Pending evictions go on. |
//! | A Lease is read live once while a Node is silent, all at once if there are many. | In each pass, for each silent Node, also for days. | 500 dead Nodes cost 500 requests per pass. |
//! | A live read that fails ends the pass without judging zones. | Zones are judged by the other Nodes. | If the others are the dead ones, the cluster looks disrupted, and taints come off dead Nodes. |
//! | Leases are compared by the time of their renewal. | By version, with a saved Lease. | A Lease that somebody touches would keep a dead Node ready for ever. |
//! | A Lease whose time goes back is a sign of life. | It is ignored until the old time has passed. | The kubelet's clock was corrected. |
//! | A Node waits in the queue of its present zone only. | It stays in the queue of the last zone too. | It would be tainted and counted twice. |
//! | A rate of 0 taints no Node, and a zone that was stopped resumes. | It taints one Node; with a rate of 1 a zone never resumes. | That is the meaning of the flags. |
//! | The rate of a zone follows its number of Nodes. | Only changes of its state. | A zone may become large while it is disrupted. |
//! | A change between `not-ready` and `unreachable` keeps `timeAdded`. | It sets a new time. | The Node is unhealthy since then. |
//! | Only Pods of Nodes whose condition is unknown are marked. | Also Pods that are bound to a Node whose kubelet says that it is not ready. | The kubelet owns their readiness. |
//! | Only Leases in `kube-node-lease` are cached. | Those of all namespaces. | Memory. |
//! | A taint or label that cannot be written is retried. | It waits for the next change of the Node. | The Node would stay as it is. |
//! | A ready Node loses taints that evict when it is seen to be ready. | In the next pass. | Sooner. |

mod apply;
mod event_mapping;
mod events;
mod limiter;
mod metrics;
mod monitor;
mod pass;
mod reconcile;
mod settings;
mod shared_state;
mod status;
mod tainting;
mod taints;
mod zone;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kcm_framework::api::views::{Lease, Node, NodeHealth, Pod};
use kcm_framework::api::{Need, ObjectKey, PartReader};
use kcm_framework::config::{Gate, GateStage};
use kcm_framework::informers::{Change, ListOptions};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use crate::shared::PodsByNode;
use apply::LEASES;
use event_mapping::{is_unknown, keys_for_node, keys_for_pod, lost_node};
use metrics::Metrics;
use monitor::Periods;
use pass::Pass;
use reconcile::{NodeReconciler, PodReconciler};
use settings::{
    EVICTION_RATE, LARGE_CLUSTER, MONITOR_GRACE_PERIOD, MONITOR_PERIOD, POD_EVICTION_TIMEOUT, SECONDARY_EVICTION_RATE,
    STARTUP_GRACE_PERIOD, UNHEALTHY_ZONE,
};
use shared_state::Shared;
use zone::Rates;

/// Nodes that are reconciled concurrently, as upstream.
const NODE_WORKERS: usize = 8;
/// Pods that are reconciled concurrently, as upstream.
const POD_WORKERS: usize = 4;
/// Interval at which the queues of zones are looked at, as upstream.
const TAINTING_PERIOD: Duration = Duration::from_millis(100);

const LEASE_CIRCUIT_BREAKER: Gate =
    Gate { name: "NodeControllerLeaseCircuitBreaker", default: true, stage: GateStage::Beta, locked: false };

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("node-lifecycle-controller", init)
    .aliases(&["nodelifecycle"])
    .service_account("node-controller")
    .event_component("node-controller")
    .feature_gates(&[LEASE_CIRCUIT_BREAKER])
    .needs(const { &[Need::part::<NodeHealth>()] })
    .settings(
        const {
            &[
                LARGE_CLUSTER.row(),
                EVICTION_RATE.row(),
                MONITOR_GRACE_PERIOD.row(),
                MONITOR_PERIOD.row(),
                STARTUP_GRACE_PERIOD.row(),
                SECONDARY_EVICTION_RATE.row(),
                UNHEALTHY_ZONE.row(),
                POD_EVICTION_TIMEOUT,
            ]
        },
    );

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let rates = Rates {
        eviction: context.get(&EVICTION_RATE)?,
        secondary: context.get(&SECONDARY_EVICTION_RATE)?,
        large: context.get(&LARGE_CLUSTER)?,
        unhealthy: context.get(&UNHEALTHY_ZONE)?,
    };
    let periods = Periods {
        monitor_grace: context.get(&MONITOR_GRACE_PERIOD)?.unsigned(),
        startup_grace: context.get(&STARTUP_GRACE_PERIOD)?.unsigned(),
    };
    let period = context.get(&MONITOR_PERIOD)?.unsigned();
    let health = context.part()?;
    let shared = Arc::new(Shared::new(rates));
    let metrics = Arc::new(Metrics::register(context.metrics())?);

    let mut taints = context.control_loop("node_lifecycle_controller").workers(NODE_WORKERS);
    let nodes = taints.primary_with(Source::<Node>::known(), move |change| keys_for_node(change, health));
    let queue = taints.queue();
    let reconciler = NodeReconciler { health, shared: Arc::clone(&shared), metrics: Arc::clone(&metrics) };
    let taints = taints.reconcile_objects(nodes, reconciler);

    let mut monitor = context.control_loop::<ObjectKey>("node_health");
    let pass = Arc::new(Pass {
        nodes: monitor.reads(),
        leases: monitor.reads_for(Source::<Lease>::known().list_options(ListOptions::namespace(LEASES))),
        health,
        queue,
        shared,
        metrics,
        periods,
        period,
        rates,
        reads_live: context.gate(&LEASE_CIRCUIT_BREAKER),
    });
    let granting = Arc::clone(&pass);
    let monitor = monitor.periodic(period.max(Duration::from_millis(1)), move |session| {
        let pass = Arc::clone(&pass);
        async move {
            pass.run(&session).await;
            Ok(())
        }
        .boxed()
    });
    let granting = context.control_loop::<ObjectKey>("node_tainting").periodic(TAINTING_PERIOD, move |_| {
        granting.grant();
        async { Ok(()) }.boxed()
    });
    let pods = pods_loop(context, health);
    Ok(Loops::new().with(taints).with(monitor).with(granting).with(pods))
}

fn pods_loop(context: &ControllerContext, health: PartReader<NodeHealth>) -> kcm_framework::Loop {
    let mut pods = context.control_loop("node_lifecycle_controller_pods").workers(POD_WORKERS);
    let all_nodes = pods.reads::<Node>();
    let nodes = all_nodes.clone();
    let is_lost =
        move |name: &str| nodes.get(&ObjectKey::cluster_scoped(name)).is_some_and(|node| is_unknown(health.of(&node)));
    let all = pods.primary_with(Source::<Pod>::known(), move |change| keys_for_pod(change, &is_lost));
    let by_node = PodsByNode::new(&all);
    pods.watches(move |change: &Change<Node>| {
        let of_node = lost_node(change, health).map(|node| by_node.get(node)).unwrap_or_default();
        let ready = of_node.into_iter().filter(|pod| pod.is_ready());
        ready.map(|pod| pod.metadata.key.clone()).collect::<Vec<_>>()
    });
    pods.reconcile_objects(all, PodReconciler { nodes: all_nodes, health })
}

kcm_framework::inventory::submit! { DESCRIPTOR }
