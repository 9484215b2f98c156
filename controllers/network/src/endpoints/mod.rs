//! Endpoints controller: writes the addresses of the Pods of each Service into its Endpoints.
//!
//! Reads Services, Pods and Endpoints. Creates, updates and deletes Endpoints.
//!
//! ```text
//! Service, Pod, Endpoints ──event mapping──▶ key ──▶ observe ──▶ addresses ──▶ plan ──▶ create, update, delete
//!                                                   (caches)     (pure)       (pure)
//! ```
//!
//! # Guarantees
//! - The Endpoints of a Service with a selector have the address of each Pod that it selects, of the first IP family of the
//!   Service, until the Pod ends or is deleted. An address is ready if its Pod is ready. If the Service sets
//!   `publishNotReadyAddresses`, the addresses of all its Pods are ready, also of terminating ones.
//! - Subsets are packed and ordered as upstream does: ports that the same addresses have are in one subset. Subsets are
//!   compared after repacking, so that at rest nothing is written, whatever order another client has written.
//! - Endpoints have at most 1,000 addresses, ready ones first. If there are more, they have the annotation
//!   `endpoints.kubernetes.io/over-capacity: truncated`.
//! - `endpoints.kubernetes.io/last-change-trigger-time` is the time of the earliest change that the last reconcile has not
//!   seen.
//! - A change of a Pod waits `--endpoint-updates-batch-period` for further changes; a change of the Service does not wait.
//! - The Endpoints of a deleted Service are deleted, also if it was deleted while no manager ran. Endpoints that another
//!   client deletes are created again.
//! - Endpoints of Services without a selector or of type `ExternalName`, records of leader election, and annotations of
//!   other clients are not changed.
//! - A Service that selects a Pod that cannot be decoded is not reconciled until the Pod can be decoded.
//!
//! # What it does not do
//! It writes no `EndpointSlices`, which kube-proxy reads. These Endpoints are not mirrored to `EndpointSlices` either,
//! because the mirroring controller ignores Services with a selector. As upstream, a change of Endpoints by another
//! client stays until the Service or one of its Pods changes.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/endpoint` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | Truncated Endpoints are updated if their content changes. | They are updated in each sync. | Fewer requests. |
//! | A deletion is sent if the cache has the Endpoints. | A deletion is always sent. | Fewer requests. |
//! | While Pods of a Service change, a reconcile begins at the earliest 10 ms, or 0.1 ms per endpoint, after the last one began. The time doubles to 80 ms while changes continue. | It begins when the last one has ended, which takes as long. | Fewer requests. |
//! | A change of a Pod that serves neither before nor after it waits half a second to a second, unless the Service publishes addresses that are not ready. | It does not wait. | Fewer requests: its readiness is mostly written with it. |
//! | There is no event about a conflict, or about Endpoints to create that exist. | There is an event. | The write is retried at once. |
//! | The event about a failed creation is in the namespace of the Service. | It is in `default`. | Users find it with the Service. |
//! | A Pod without an address enqueues no Service. | It enqueues its Services. | It is no endpoint. |
//! | A Pod that ends leaves the Endpoints at once. | It leaves them with the next change, if it was not ready before. | A Pod that has ended gets no traffic. |

mod addresses;
mod apply;
mod event_mapping;
mod events;
mod order;
mod plan;
mod reconcile;
mod settings;
mod truncate;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_framework::api::Need;
use kcm_framework::api::views::{Endpoints, PodAddresses, Service};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};

use crate::shared::batching::Batching;
use crate::shared::pods::SelectedPods;
use crate::shared::services::{SelectingServices, keys_for_pod};
use crate::shared::trigger_time::TriggerTimes;
use event_mapping::keys_for_endpoints;
use plan::OVER_CAPACITY;
use reconcile::{LEADER, Reconciler};
use settings::{BATCH_PERIOD, SYNCS};

/// The name of the service account, and the component of the events.
const ACCOUNT: &str = "endpoint-controller";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("endpoints-controller", init)
    .aliases(&["endpoint"])
    .service_account(ACCOUNT)
    .event_component(ACCOUNT)
    .needs(&[
        Need::part::<PodAddresses>(),
        Need::annotation::<Endpoints>(LEADER),
        Need::annotation::<Endpoints>(OVER_CAPACITY),
    ])
    .settings(const { &[SYNCS.row(), BATCH_PERIOD.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let addresses = context.part::<PodAddresses>()?;
    let batching = Arc::new(Batching::new(context.get(&BATCH_PERIOD)?.unsigned()));
    let mut control_loop = context.control_loop("endpoint").workers(&SYNCS);
    let services = control_loop.primary::<Service>();
    let selecting = SelectingServices::new(&services);
    let of_pods = Arc::clone(&batching);
    let pods = control_loop.watches(move |change| keys_for_pod(change, &selecting, addresses, &of_pods));
    let endpoints = control_loop.watches(keys_for_endpoints);
    let reconciler = Reconciler {
        pods: SelectedPods::new(&pods),
        endpoints,
        addresses,
        triggers: TriggerTimes::default(),
        batching,
        queue: control_loop.queue(),
    };
    Ok(control_loop.reconcile_objects(services, reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
