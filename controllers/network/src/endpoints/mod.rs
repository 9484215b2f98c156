//! Endpoints controller: writes the addresses of the pods of each service into its `Endpoints`.
//!
//! Reads services, pods and endpoints. Creates, updates and deletes endpoints.
//!
//! ```text
//! service, pod, endpoints ──event mapping──▶ key ──▶ observe ──▶ addresses ──▶ plan ──▶ POST, PUT, DELETE
//!                                                   (caches)     (pure)       (pure)
//! ```
//!
//! # Guarantees
//! - The endpoints of a service with a selector have the address of each pod that it selects, of the first IP family of the
//!   service, until the pod ends or is being deleted. The address is among the ready ones where the pod is ready. A service
//!   with `publishNotReadyAddresses` has the addresses of all its pods among the ready ones, those being deleted too.
//! - Subsets are packed and ordered as upstream's: ports that the same addresses have are in one subset. They are compared
//!   after repacking, so that at rest nothing is written, whatever order another client has written.
//! - Endpoints have at most 1,000 addresses, ready ones first. Where there are more, they have the annotation
//!   `endpoints.kubernetes.io/over-capacity: truncated`.
//! - `endpoints.kubernetes.io/last-change-trigger-time` is the earliest change that the last reconcile has not seen.
//! - A change of a pod waits `--endpoint-updates-batch-period` for further ones; a change of the service does not wait.
//! - The endpoints of a deleted service are deleted, also where it was deleted while no manager ran. Endpoints that another
//!   client deletes are created again.
//! - Endpoints of services without a selector or of type `ExternalName`, records of leader election, and annotations of
//!   others are left alone.
//! - A creation whose response was lost is not made again: a service is not processed before the cache shows its writes.
//! - A service that selects a pod that cannot be decoded is not processed until it can be.
//!
//! # What it does not do
//! It writes no endpoint slices, which are what kube-proxy reads. Nor are these endpoints mirrored to slices: the
//! mirroring controller leaves services with a selector alone. What another client changes in endpoints stays, as upstream,
//! until the service or one of its pods changes.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/endpoint` of Kubernetes 1.36.3. Everything else is as there.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | truncated endpoints are written when what is written differs | in each sync | requests |
//! | deletions carry the uid, and are sent where the cache has the endpoints | they carry none, and are always sent | endpoints that were recreated are not deleted |
//! | a service waits until the cache shows the writes for it | it fails with a stale cache and is retried | requests, and no false error |
//! | while a service of 50 endpoints or more changes, a reconcile begins at the earliest 0.1 ms per endpoint after the last, at most 80 ms | at once after the last, which takes as long | requests |
//! | no event for a conflict, nor where the endpoints to create exist already | an event | it is retried at once |
//! | the event of a creation that failed is in the namespace of the service | in `default` | it is found with the service |
//! | a service is enqueued where a pod that can be an endpoint changes | also for pods that have no address yet | work without effect |
//! | a pod that ends leaves the endpoints at once | with the next change, where it was not ready before | no traffic to a pod that has ended |
//! | no queue of pods | one, without metrics | event mapping finds the services by an index |
//! | `--concurrent-endpoint-syncs` below 1 is refused | accepted, and no worker runs | |

mod addresses;
mod events;
mod order;
mod plan;
mod reconcile;
mod settings;
mod truncate;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_api::views::{Endpoints, Pod, PodAddresses, Service};
use kcm_api::{Need, ObjectKey};
use kcm_config::GoDuration;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};
use kcm_informers::Change;

use crate::shared::batching::Batching;
use crate::shared::pods::SelectedPods;
use crate::shared::services::SelectingServices;
use crate::shared::trigger_time::TriggerTimes;
use plan::OVER_CAPACITY;
use reconcile::{LEADER, Reconciler};
use settings::{BATCH_PERIOD, CONCURRENT_SYNCS, ROWS};

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
    .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let addresses = context.part::<PodAddresses>()?;
    let batching = Arc::new(Batching::new(context.setting::<GoDuration>(BATCH_PERIOD)?.unsigned()));
    let mut control_loop = context.control_loop::<ObjectKey>("endpoint").workers_from(CONCURRENT_SYNCS);
    let services = control_loop.primary::<Service>();
    let selecting = SelectingServices::new(&services);
    let of_pods = Arc::clone(&batching);
    let pods = control_loop.watches::<Pod, _>(move |change| {
        let services = selecting.concerned(change, addresses).into_iter();
        services.map(|service| of_pods.enqueue(service)).collect::<Vec<_>>()
    });
    let endpoints = control_loop.watches::<Endpoints, _>(key_of_deleted);
    let reconciler = Reconciler {
        services,
        pods: SelectedPods::new(&pods),
        endpoints,
        addresses,
        triggers: TriggerTimes::default(),
        batching,
        queue: control_loop.queue(),
    };
    Ok(Loops::new().with(control_loop.reconcile(reconciler)))
}

/// Endpoints that are deleted, whose service creates them again. Other changes enqueue nothing, as upstream.
fn key_of_deleted(change: &Change<Endpoints>) -> Option<ObjectKey> {
    match change {
        Change::Deleted { last, .. } => Some(last.metadata.key.clone()),
        Change::Added(_) | Change::Updated { .. } => None,
    }
}

kcm_framework::inventory::submit! { DESCRIPTOR }
