//! Service CIDR controller: keeps ranges of addresses that Services use from being deleted.
//!
//! Reads `ServiceCIDRs` and `IPAddresses`. Patches the finalizers and the status of `ServiceCIDRs`.
//!
//! ```text
//! ServiceCIDR, IPAddress ──event mapping──▶ key ──▶ plan ──▶ finalizer (patch), condition (apply)
//!                                                  (pure)
//! ```
//!
//! # Guarantees
//! - A `ServiceCIDR` has the finalizer `networking.k8s.io/service-cidr-finalizer` and the condition `Ready`.
//! - The finalizer of a terminating `ServiceCIDR` is removed if other `ServiceCIDRs` contain each of its ranges (both
//!   families if it has two), or if no address of a Service is in it alone; and ten seconds after its deletion at the
//!   earliest, so that no API server allocates from it any more. Until then the condition says why it is kept.
//! - The first address of a range, and the last address of an IPv4 range, do not count, because no Service gets them.
//! - Only addresses that the API server has allocated for Services count.
//! - The patch of the finalizer carries the version of the object, so that finalizers of other clients are not lost.
//!
//! # What it does not do
//! It creates no `ServiceCIDR` and no `IPAddress`; the API server does.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/servicecidrs` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | The name of an `IPAddress` tells its family. | A label tells its family. | The API server sets both alike. |
//! | Patches carry the uid, and patches of finalizers the version. | Patches carry neither. | A recreated object is not changed, and gets no event about a condition that could not be written. |
//! | A `ServiceCIDR` that does not exist when its condition is written is no error. | It gets an event, and is retried. | There is nothing to write. |
//! | Only the metadata of `IPAddresses` is cached. | Whole `IPAddresses` are cached. | Memory. |
//! | A key that fails is retried without limit. | It is retried 15 times. | A terminating `ServiceCIDR` must not stay after an outage. |

mod apply;
mod event_mapping;
mod plan;
mod range;
mod reconcile;

#[cfg(test)]
mod tests;

use kcm_framework::api::Resource;
use kcm_framework::api::views::ServiceCidr;
use kcm_framework::config::{Gate, GateStage};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use event_mapping::{keys_for_address, keys_for_cidr};
use reconcile::Reconciler;

/// The canonical name, the component of the events, and the field manager of the condition.
const NAME: &str = "service-cidr-controller";

const IP_ADDRESSES: Resource = Resource::cluster_scoped("networking.k8s.io", "v1", "ipaddresses", "IPAddress");

/// As upstream.
const WORKERS: usize = 5;

const MULTI_CIDR_SERVICE_ALLOCATOR: Gate =
    Gate { name: "MultiCIDRServiceAllocator", default: true, stage: GateStage::Ga, locked: true };

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new(NAME, init)
    .service_account("service-cidrs-controller")
    .required_gates(&[MULTI_CIDR_SERVICE_ALLOCATOR]);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("ipaddresses").workers(WORKERS);
    let all = control_loop.reads::<ServiceCidr>();
    let others = all.clone();
    let cidrs =
        control_loop.primary_with(Source::known().resync(), move |change| keys_for_cidr(change, || others.list()));
    let addresses =
        control_loop.watches_for(Source::of(IP_ADDRESSES), move |change| keys_for_address(change, || all.list()));
    Ok(control_loop.reconcile_objects(cidrs.clone(), Reconciler { cidrs, addresses }).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
