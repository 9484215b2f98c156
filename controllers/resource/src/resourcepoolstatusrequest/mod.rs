//! Resource pool status requests: computes the status of the device pools of a driver once for each request, and deletes
//! requests that have expired.
//!
//! Reads `ResourcePoolStatusRequests`, `ResourceSlices`, `ResourceClaims` and `DeviceTaintRules`. Updates the status of
//! requests and deletes them.
//!
//! ```text
//! request ──event mapping──▶ key ──▶ live list of slices ──▶ compute ──▶ status (patch)
//! slice ─────────┘  (pure)                 claims, rules ────┘ (pure)
//!                            └─▶ expiry ──▶ deletion, or requeue when the request expires
//! ```
//!
//! # Guarantees
//! - A request gets one status, from all slices that exist when it is computed. A request with any status is never computed
//!   again.
//! - A request for a pool whose slices are not all published waits until they are, or until it expires.
//! - A request is deleted an hour after its completion, or 24 hours after its creation if it has no status.
//! - The status carries the version of the request, and the deletion its uid.
//!
//! # What it does not do
//! It follows no changes: a new status needs a new request.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/resourcepoolstatusrequest` of Kubernetes 1.37.2. `docs/differences.md` has the differences
//! that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | Slices are listed live for a request. | They are cached. | Memory, and a request that follows its slices at once shows them. |
//! | A request for an incomplete pool is computed again when a slice of the driver changes. | It is dropped after five attempts within 155 ms (kubernetes#141883). | The request gets its status. |
//! | A list that fails is retried. | The condition `Failed` is written if a cache cannot be read, which never happens. | A retry succeeds. |
//! | A request is deleted when it expires. | It is deleted within ten minutes of it. | No request is scanned for. |
//! | A request that expires while the controller waits to compute it is deleted. | It is computed first. | Nobody reads it. |
//! | Costs of partitions are equal by value. | They are compared as text. | `1Gi` and `1024Mi` are one amount. |
//! | The queue has metrics, by the name of the controller. | It has none. | Every queue has. |

mod event_mapping;
mod expiry;
mod metrics;
mod partitions;
mod pool;
mod reconcile;
mod shareable;
mod status;
mod views;

#[cfg(test)]
mod tests;

use kcm_framework::api::views::{ClaimDevices, ResourceClaim};
use kcm_framework::api::{InternedStr, Need, ObjectKey};
use kcm_framework::informers::{Change, Index};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};

use crate::shared::{DEVICE_TAINT_RULES, DeviceTaintRule, POOL_STATUS, ResourceSlice};
use event_mapping::{keys_for_slice, pending_driver};
use metrics::Metrics;
use reconcile::Reconciler;
use views::PoolStatusRequest;

const NAME: &str = "resourcepoolstatusrequest-controller";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new(NAME, init)
    .required_gates(&[POOL_STATUS])
    .needs(const { &[Need::part::<ClaimDevices>()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop(NAME);
    let requests = control_loop.primary::<PoolStatusRequest>();
    let pending: Index<PoolStatusRequest, InternedStr> = requests.index("pending-driver", pending_driver);
    control_loop.watches(move |change: &Change<ResourceSlice>| {
        keys_for_slice(change, |driver| {
            pending.get(driver).iter().map(|request| request.metadata.key.clone()).collect::<Vec<ObjectKey>>()
        })
    });
    let rules = context.gate(&DEVICE_TAINT_RULES).then(|| control_loop.reads::<DeviceTaintRule>());
    let reconciler = Reconciler {
        claims: control_loop.reads::<ResourceClaim>(),
        devices: context.part()?,
        rules,
        metrics: Metrics::register(context.metrics())?,
    };
    Ok(control_loop.reconcile_objects(requests, reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
