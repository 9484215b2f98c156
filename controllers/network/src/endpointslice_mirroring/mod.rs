//! Endpoint slice mirroring controller: mirrors Endpoints that users or other controllers write, for Services without a
//! selector, to `EndpointSlices`.
//!
//! Reads Endpoints, Services and `EndpointSlices`. Creates, updates and deletes `EndpointSlices`.
//!
//! ```text
//! Endpoints: any change                    ──▶┐
//! Service: has no selector, or no more     ──▶ endpoint_slice_mirroring ──▶ observe ──▶ plan ──▶ create, update, delete
//! slice: changed by another client         ──▶┘       (queue)               (caches)    (pure)
//! ```
//!
//! # Guarantees
//! - Endpoints of a Service without a selector have a slice for each address family and each set of ports that addresses
//!   have in common. Subsets that an older API server stored in another form are repacked first.
//! - Of each subset, `--mirroring-max-endpoints-per-subset` addresses are mirrored, ready ones first. An event tells the
//!   number of skipped addresses, and another event the number of invalid IP addresses.
//! - Slices have the labels and annotations of the Endpoints, except for `endpoints.kubernetes.io/last-change-trigger-time`
//!   and the annotation of `kubectl apply`.
//! - Some Endpoints have no mirrored slices, and existing ones are deleted: Endpoints with the label
//!   `endpointslice.kubernetes.io/skip-mirror: "true"`, records of leader election, and Endpoints without a Service or with
//!   a Service that selects Pods.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/endpointslicemirroring` of Kubernetes 1.37.2. `docs/differences.md` has the differences that
//! all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | An update carries the version of the slice, and keeps its finalizers. | An update replaces the slice, whatever its version. | Changes of other clients are not lost. |
//! | A terminating slice is replaced. | A terminating slice is updated. | Its endpoints are not lost when it is deleted. |
//! | A key that fails is retried without limit. | It is retried 15 times. | Slices must not stay outdated after an outage. |
//! | Slices are not written if only a reserved label of the Endpoints differs. | They are written at each sync. | Nothing would change. |
//! | A slice that would be deleted is used again for a slice of its family. | It is used for a slice of any family, if several are created at once. | No slice of the other family is lost until the next change. |

mod apply;
mod event_mapping;
mod events;
mod metrics;
mod plan;
mod reconcile;
mod settings;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_framework::api::Need;
use kcm_framework::api::views::EndpointsView;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use crate::shared::slices::settings::max_endpoints;
use crate::shared::slices::{OwnWrites, SlicesOfServices};
use event_mapping::{LEADER, keys_for_endpoints, keys_for_service, keys_for_slice};
use metrics::Metrics;
use reconcile::Reconciler;
use settings::{BATCH_PERIOD, MAX_ENDPOINTS, RETRY_LIMITS, SYNCS};

/// The value of the label that names the controller of a slice.
const MANAGED_BY: &str = "endpointslicemirroring-controller.k8s.io";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("endpointslice-mirroring-controller", init)
    .aliases(&["endpointslicemirroring"])
    .service_account("endpointslicemirroring-controller")
    .event_component("endpoint-slice-mirroring-controller")
    .needs(&[Need::annotation::<EndpointsView>(LEADER)])
    .settings(const { &[SYNCS.row(), BATCH_PERIOD.row(), MAX_ENDPOINTS.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let batch_period = context.get(&BATCH_PERIOD)?.unsigned();
    let own_writes = Arc::new(OwnWrites::default());

    let mut control_loop = context.control_loop("endpoint_slice_mirroring").workers(&SYNCS).retry_limits(RETRY_LIMITS);
    let endpoints = control_loop.primary_with(Source::known().resync(), keys_for_endpoints);
    let services = control_loop.watches(keys_for_service);
    let of_slices = Arc::clone(&own_writes);
    let slices = control_loop.watches(move |change| keys_for_slice(change, &of_slices, batch_period));
    let reconciler = Reconciler {
        services,
        slices: SlicesOfServices::new(&slices),
        own_writes,
        metrics: Metrics::register(context.metrics())?,
        max_endpoints: max_endpoints(context, &MAX_ENDPOINTS)?,
    };
    Ok(control_loop.reconcile_objects(endpoints, reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
