//! Endpoint slice controller: keeps the `EndpointSlices` of each Service with a selector in line with the Pods that it
//! selects.
//!
//! Reads Services, Pods, Nodes and `EndpointSlices`. Creates, updates and deletes `EndpointSlices`.
//!
//! ```text
//! Service: any change, resync           ──────────────▶┐
//! Pod: changes an endpoint, or labels   ──▶ Services ──▶ endpoint_slice ──▶ observe ──▶ plan ──▶ create, update, delete
//! slice: changed by another client, 1 s ──────────────▶│    (queue)         (caches)    (pure)
//! Node: overloads the hints of Services ──────────────▶┘
//! ```
//!
//! # Guarantees
//! - Each address family of a Service, and each set of ports that its Pods have for it, has slices of its own. A Service
//!   without endpoints has one empty slice for each family.
//! - Slices are filled as upstream does: endpoints stay in their slice. New endpoints go to the slices that are updated
//!   anyway, the fullest first; the rest go to one slice that has room for all of them, or to new slices. No slice gets more
//!   endpoints than `--max-endpoints-per-slice`. A slice that would be deleted is used for a slice that would be created.
//! - An update carries the resource version of the slice in the cache. Annotations, finalizers and fields of the slice that
//!   this version does not know survive it; such fields of its endpoints and ports do not.
//! - A slice has the labels of its Service. `endpoints.kubernetes.io/last-change-trigger-time` is the time of the earliest
//!   change that the last reconcile has not seen.
//! - Hints follow `spec.trafficDistribution`, or, with the annotation `service.kubernetes.io/topology-mode: Auto`, the CPUs
//!   of the Nodes of each zone.
//! - A Service that selects a Pod that cannot be decoded is not reconciled until the Pod can be decoded.
//! - Indexes find the Services that select a Pod, and the Pods that a Service selects, without a walk through the
//!   Namespace.
//!
//! # What it does not do
//! It does not change the slices of Services without a selector or of type `ExternalName`. It does not delete the slices of
//! a deleted Service; the garbage collector does.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/endpointslice` and `k8s.io/endpointslice` of Kubernetes 1.37.2. `docs/differences.md` has the
//! differences that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | The metric of syncs never counts the result `stale`. | It counts syncs with a stale cache. | A Service waits until the cache shows its writes. |
//! | A Pod without an address enqueues no Service. | It enqueues its Services. | It is no endpoint. |
//! | A Pod that ends leaves its slices at once. | It leaves them with the next change, if it was not ready before. | A Pod that has ended gets no traffic. |
//! | While Pods of a Service change, a reconcile begins at the earliest 10 ms, or 0.1 ms per endpoint, after the last one began. The time doubles to 80 ms while changes continue. | It begins when the last one has ended, which takes as long. | Fewer requests. |
//! | A change of a Pod that serves neither before nor after it waits half a second to a second, unless the Service publishes addresses that are not ready. | It does not wait. | Fewer requests: its readiness is mostly written with it. |
//! | A slice that is used again keeps annotations, finalizers and owners, and its update carries its version. | It is replaced, whatever its version. | Changes of other clients are not lost. |
//! | Endpoints, and zones of hints, are placed in the order of names. | They are placed at random. | A reconcile of the same state does the same. |
//! | A change of the CPUs of a Node counts at once. | It counts when the next Node is created or deleted, or changes its readiness or zone. | Hints follow the current CPUs. |
//! | The metrics of endpoints and slices are the sums over both families. | They are the numbers of the family that was written last. | The sums are what the names of the metrics say. |
//! | The deletion of any slice by another client enqueues its Service. | The deletion of a slice that this process has not written does not. | The slice is created again also after a restart. |
//! | An empty slice of an earlier Service of the same name is replaced. | It stays while the Service has no endpoints. | The garbage collector deletes it with its owner. |
//! | Hints by topology are forgotten with their Service. | They stay, and count for a later Service of that name. | Memory, and no false event. |
//! | A change of the Nodes during a reconcile is compared with the hints that it sets. | It is compared with them after the next change. | Hints do not stay outdated. |
//! | The event about a Pod whose Node does not exist is recorded once an hour. | It is recorded with each of 15 attempts. | The attempts go on until the Node exists. |
//! | A slice whose hints are correct is not updated. | It is updated if its endpoints lack zones. | Fewer requests. |

mod apply;
mod event_mapping;
mod events;
mod explain;
mod hinted_services;
mod hints;
mod metrics;
mod observe;
mod placement;
mod plan;
mod reconcile;
mod settings;
mod zones;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_framework::api::Need;
use kcm_framework::api::views::{PodAddresses, Service};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};

use crate::shared::batching::Batching;
use crate::shared::pods::SelectedPods;
use crate::shared::services::{SelectingServices, keys_for_pod};
use crate::shared::slices::SlicesOfServices;
use crate::shared::slices::settings::max_endpoints;
use event_mapping::keys_for_slice;
use metrics::Metrics;
use observe::Caches;
use reconcile::{Reconciler, State};
use settings::{BATCH_PERIOD, MAX_ENDPOINTS, RETRY_LIMITS, SYNCS};

/// The value of the label that names the controller of a slice.
const MANAGED_BY: &str = "endpointslice-controller.k8s.io";

/// The annotation that asks for hints by topology.
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
/// The older annotation, which has precedence over [`TOPOLOGY_MODE`].
const TOPOLOGY_AWARE_HINTS: &str = "service.kubernetes.io/topology-aware-hints";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("endpointslice-controller", init)
    .aliases(&["endpointslice"])
    .event_component("endpoint-slice-controller")
    .needs(&[
        Need::part::<PodAddresses>(),
        Need::annotation::<Service>(TOPOLOGY_MODE),
        Need::annotation::<Service>(TOPOLOGY_AWARE_HINTS),
    ])
    .settings(const { &[SYNCS.row(), BATCH_PERIOD.row(), MAX_ENDPOINTS.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let addresses = context.part::<PodAddresses>()?;
    let batch_period = context.get(&BATCH_PERIOD)?.unsigned();
    let metrics = Metrics::register(context.metrics())?;
    let state = Arc::new(State::new(metrics, Batching::new(batch_period), max_endpoints(context, &MAX_ENDPOINTS)?));

    let mut control_loop = context.control_loop("endpoint_slice").workers(&SYNCS).retry_limits(RETRY_LIMITS);
    let services = control_loop.primary::<Service>();
    let selecting = SelectingServices::new(&services);
    let of_pods = Arc::clone(&state);
    let pods = control_loop.watches(move |change| keys_for_pod(change, &selecting, addresses, &of_pods.batching));
    let of_slices = Arc::clone(&state);
    let slices = control_loop.watches(move |change| keys_for_slice(change, &of_slices.own_writes, batch_period));
    let of_nodes = Arc::clone(&state);
    let nodes = control_loop.watches(move |change| of_nodes.hinted.node_changed(change));

    let caches = Caches { pods: SelectedPods::new(&pods), nodes, slices: SlicesOfServices::new(&slices), addresses };
    Ok(control_loop.reconcile_objects(services, Reconciler { caches, state }).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
