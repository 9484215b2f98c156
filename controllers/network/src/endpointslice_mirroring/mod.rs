//! Endpoint slice mirroring controller: mirrors endpoints that people or other controllers write, for services without a
//! selector, to endpoint slices.
//!
//! Reads endpoints, services and endpoint slices. Creates, updates and deletes endpoint slices.
//!
//! ```text
//! endpoints: any change                    ──▶┐
//! service: has no selector, or no more     ──▶ endpoint_slice_mirroring ──▶ observe ──▶ plan ──▶ create, update, delete
//! slice: changed by another client         ──▶┘       (queue)               (caches)    (pure)
//! ```
//!
//! # Guarantees
//! - Endpoints of a service without a selector have a slice for each address family and each set of ports that addresses
//!   have in common. Endpoints that the API server of an earlier day stored otherwise are brought to that form first.
//! - Of each subset, `--mirroring-max-endpoints-per-subset` addresses are mirrored, those that are ready first. An event says
//!   how many are not, and another one how many are no IP addresses.
//! - Labels and annotations of the endpoints are those of their slices, but for
//!   `endpoints.kubernetes.io/last-change-trigger-time` and what `kubectl apply` keeps.
//! - Endpoints with the label `endpointslice.kubernetes.io/skip-mirror: "true"`, those that are the record of a leader
//!   election, and those without a service or with one that selects pods, have no mirrored slices: what there was is deleted.
//! - A creation whose response was lost is not made again: endpoints are not processed before the cache shows the writes for
//!   them.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/endpointslicemirroring` of Kubernetes 1.36.3. Everything else is as there.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | endpoints wait until the cache shows the writes for them | they fail with a stale cache and are retried | requests, and no false error |
//! | names of slices are generated here | by the API server | a creation whose response was lost is found by its name |
//! | an update carries the version of the slice, and keeps its finalizers | it replaces the slice, whatever its version | nothing of others is lost |
//! | deletions carry the uid | they carry none | a slice that was recreated is not deleted |
//! | a slice that is terminating is replaced | it is updated | its endpoints are not lost when it is gone |
//! | a deleted slice is used again for one of its family | for any, where several are created at once | no slice of the other family is lost until the next change |

mod event_mapping;
mod events;
mod metrics;
mod plan;
mod reconcile;
mod settings;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_api::Need;
use kcm_api::views::{EndpointSlice, EndpointsView};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Enqueue, Loops, Source};
use kcm_informers::Change;

use crate::shared::slices::{OwnWrites, SlicesOfServices, keys_for_slice};
use event_mapping::{LEADER, keys_for_endpoints, keys_for_service};
use metrics::Metrics;
use reconcile::Reconciler;
use settings::{CONCURRENT_SYNCS, RETRY_LIMITS, ROWS, Section};

/// The value of the label that names the controller of a slice.
const MANAGED_BY: &str = "endpointslicemirroring-controller.k8s.io";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("endpointslice-mirroring-controller", init)
    .aliases(&["endpointslicemirroring"])
    .service_account("endpointslicemirroring-controller")
    .event_component("endpoint-slice-mirroring-controller")
    .needs(&[Need::annotation::<EndpointsView>(LEADER)])
    .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let section: Section = context.settings_of()?;
    let batch_period = section.batch_period.unsigned();
    let own_writes = Arc::new(OwnWrites::default());

    let mut control_loop =
        context.control_loop("endpoint_slice_mirroring").workers_from(CONCURRENT_SYNCS).retry_limits(RETRY_LIMITS);
    let endpoints = control_loop.watches_for(Source::known().resync(), keys_for_endpoints);
    control_loop.keyed_by(&endpoints);
    let services = control_loop.watches(keys_for_service);
    let of_slices = Arc::clone(&own_writes);
    let slices = control_loop.watches(move |change: &Change<EndpointSlice>| {
        let endpoints = keys_for_slice(change, MANAGED_BY, &of_slices);
        endpoints.into_iter().map(move |endpoints| Enqueue::after(endpoints, batch_period))
    });
    let reconciler = Reconciler {
        endpoints,
        services,
        slices: SlicesOfServices::new(&slices),
        own_writes,
        metrics: Metrics::register(context.metrics()),
        max_endpoints: section.max_endpoints(),
    };
    Ok(Loops::new().with(control_loop.reconcile(reconciler)))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
