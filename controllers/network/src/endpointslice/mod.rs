//! Endpoint slice controller: keeps the endpoint slices of each service with a selector in line with the pods that it
//! selects.
//!
//! Reads services, pods, nodes and endpoint slices. Creates, updates and deletes endpoint slices.
//!
//! ```text
//! service: any change, resync           ──────────────▶┐
//! pod: changes an endpoint, or labels   ──▶ services ──▶ endpoint_slice ──▶ observe ──▶ plan ──▶ create, update, delete
//! slice: changed by another client, 1 s ──────────────▶│    (queue)         (caches)    (pure)
//! node: overloads the hints of services ──────────────▶┘
//! ```
//!
//! # Guarantees
//! - Each address family of a service, and each set of ports that its pods have for it, has slices of its own. A service
//!   without any endpoint has one empty slice for each family.
//! - Slices are filled as upstream fills them: endpoints stay in their slice; new ones go to the slices that are updated
//!   anyway, the fullest first; the rest go to one slice that has room for all of them, or to new slices. No slice is given
//!   more endpoints than `--max-endpoints-per-slice`. A slice that would be deleted is used for one that would be created.
//! - A slice is written with the resource version that it was read with. Annotations, finalizers and fields of the slice
//!   that this version does not know survive an update; fields of its endpoints and ports do not.
//! - Labels of the service are those of its slices, and `endpoints.kubernetes.io/last-change-trigger-time` is the earliest
//!   change that the last reconcile has not seen.
//! - Hints follow `spec.trafficDistribution`, or the annotation `service.kubernetes.io/topology-mode: Auto`, by the CPUs of
//!   the nodes of each zone.
//! - A creation whose response was lost is not made again: a service is not processed before the cache shows its writes.
//! - A service that selects a pod that cannot be decoded is not processed until it can be.
//! - Which services select a pod, and which pods a service selects, is found by indexes, not by a walk through the
//!   namespace. Of each pod, a part of its view is kept for it; of each slice its JSON.
//!
//! # What it does not do
//! Services without a selector, and those of type `ExternalName`, are left alone with their slices. Slices of a deleted
//! service are left to the garbage collector.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/endpointslice` and `k8s.io/endpointslice` of Kubernetes 1.36.3. Everything else is as there.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | a service waits until the cache shows the writes for it | it fails with a stale cache and is retried; the metric counts `stale` | requests, and no false error |
//! | a service is enqueued where a pod that can be an endpoint changes | also for pods that have no address yet | work without effect |
//! | a pod that ends leaves its slices at once | with the next change, where it was not ready before | no traffic to a pod that has ended |
//! | while a service of 50 endpoints or more changes, a reconcile begins at the earliest 0.1 ms per endpoint after the last, at most 80 ms | at once after the last, which takes as long | requests |
//! | names of slices are generated here | by the API server | a creation whose response was lost is found by its name |
//! | a slice that is used again keeps annotations, finalizers and owners, and is written with its version | it is replaced, whatever its version | nothing of others is lost |
//! | deletions carry the uid | they carry none | a slice that was recreated is not deleted |
//! | endpoints, and zones of hints, are placed in the order of names | at random | a reconcile of the same state does the same |
//! | a change of the CPUs of a node counts at once | with the next node that appears, leaves or changes its readiness or zone | |
//! | the metrics of endpoints and slices are the sums over both families | those of the family that was written last | |
//! | the deletion of any slice by another client enqueues its service | not of one that this process has not written | the slice is created again also after a restart |
//! | an empty slice that an earlier service of that name left is replaced | it stays, while the service has no endpoints | the garbage collector deletes it with its owner |
//! | hints by topology are forgotten with their service | they stay, and count for a later service of that name | memory, and no false event |
//! | a change of the nodes during a reconcile is compared with the hints that it sets | not before the next change | |
//! | a slice that hints leave as it is, is not written | it is written where endpoints lack zones | requests |
//! | no queue of pods, and none of nodes | both, without metrics | event mapping finds the services by an index |

mod apply;
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
use std::time::Duration;

use kcm_api::views::{EndpointSlice, Node, Pod, PodAddresses, Service};
use kcm_api::{Need, ObjectKey};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Enqueue, Loops};
use kcm_informers::Change;

use crate::shared::pods::SelectedPods;
use crate::shared::services::SelectingServices;
use crate::shared::slices::{SlicesOfServices, keys_for_slice};
use metrics::Metrics;
use observe::Caches;
use reconcile::{Reconciler, State};
use settings::{CONCURRENT_SYNCS, RETRY_LIMITS, ROWS, Section};

/// The value of the label that names the controller of a slice.
const MANAGED_BY: &str = "endpointslice-controller.k8s.io";

/// How long a change of a slice by another client waits for further ones.
const SLICE_DELAY: Duration = Duration::from_secs(1);

/// The annotation that asks for hints by topology, and the one that it had before, which comes first.
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
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
    .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let section: Section = context.settings_of()?;
    let addresses = context.part::<PodAddresses>()?;
    let batch_period = section.batch_period.unsigned();
    let state = Arc::new(State::new(Metrics::register(context.metrics()), &section));

    let mut control_loop =
        context.control_loop("endpoint_slice").workers_from(CONCURRENT_SYNCS).retry_limits(RETRY_LIMITS);
    let services = control_loop.primary::<Service>();
    let selecting = SelectingServices::new(&services);
    let of_pods = Arc::clone(&state);
    let pods = control_loop.watches(move |change: &Change<Pod>| {
        let services = selecting.concerned(change, addresses).into_iter();
        services.map(|service| of_pods.batching.enqueue(service)).collect::<Vec<_>>()
    });
    let of_slices = Arc::clone(&state);
    let slices = control_loop.watches(move |change: &Change<EndpointSlice>| {
        let services = keys_for_slice(change, MANAGED_BY, &of_slices.own_writes);
        services.into_iter().map(move |service| Enqueue::after(service, batch_period.max(SLICE_DELAY)))
    });
    let of_nodes = Arc::clone(&state);
    let nodes =
        control_loop.watches(move |change: &Change<Node>| -> Vec<ObjectKey> { of_nodes.hinted.node_changed(change) });

    let caches =
        Caches { services, pods: SelectedPods::new(&pods), nodes, slices: SlicesOfServices::new(&slices), addresses };
    Ok(Loops::new().with(control_loop.reconcile(Reconciler { caches, state })))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
