//! Service CIDR controller: keeps ranges of addresses that services use from being deleted.
//!
//! Reads service CIDRs and IP addresses. Patches the finalizers and the status of service CIDRs.
//!
//! ```text
//! service CIDR, IP address ──event mapping──▶ key ──▶ plan ──▶ finalizer (PATCH), condition (apply)
//!                                                    (pure)
//! ```
//!
//! # Guarantees
//! - A service CIDR has the finalizer `networking.k8s.io/service-cidr-finalizer` and the condition `Ready`.
//! - A service CIDR that is being deleted goes when other ones have each of its ranges, of both families where it has two,
//!   or when no address of a service is in it alone; and ten seconds after its deletion at the earliest, so that every API
//!   server has stopped to take addresses of it. Until then the condition says why it stays.
//! - The first address of a range, and the last one of IPv4, are in no range, as they are given to no service.
//! - Only addresses that the API server has made for services are counted.
//! - The finalizer is patched with the version of the object, so that finalizers of others are not lost.
//!
//! # What it does not do
//! It makes no service CIDR and no address, which the API server does.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/servicecidrs` of Kubernetes 1.36.3. Everything else is as there.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | the family of an address is that of its name | that of a label | the API server sets both alike |
//! | patches have the uid, and those of finalizers the version | neither | an object that was recreated under the same name is left alone, and no event says that its condition could not be written |
//! | a service CIDR that is gone when its condition is written is no error | an event, and retries | nothing is left to do |
//! | the metadata of IP addresses is read, and no more | whole objects | memory |
//! | a key that fails is never dropped | after 15 retries | guarantee of the framework |

mod event_mapping;
mod events;
mod plan;
mod range;
mod reconcile;

#[cfg(test)]
mod tests;

use kcm_api::views::ServiceCidr;
use kcm_api::{ObjectKey, PartialObjectMeta, Resource};
use kcm_config::{Gate, GateStage};
use kcm_framework::{ControllerContext, ControllerDescriptor, Loops, Source};
use kcm_informers::Change;

use event_mapping::{keys_for_address, keys_for_cidr};
use reconcile::Reconciler;

const IP_ADDRESSES: Resource = Resource::cluster_scoped("networking.k8s.io", "v1", "ipaddresses", "IPAddress");

/// How many keys are reconciled at once, which upstream does not let be set.
const WORKERS: usize = 5;

const MULTI_CIDR_SERVICE_ALLOCATOR: Gate =
    Gate { name: "MultiCIDRServiceAllocator", default: true, stage: GateStage::Ga, locked: true };

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("service-cidr-controller", |context| Ok(init(context)))
        .service_account("service-cidrs-controller")
        .event_component("service-cidr-controller")
        .required_gates(&[MULTI_CIDR_SERVICE_ALLOCATOR]);

fn init(context: &ControllerContext) -> Loops {
    let mut described = context.control_loop::<ObjectKey>("ipaddresses").workers(WORKERS);
    let informer = context.informers().informer::<ServiceCidr>(kcm_informers::ListOptions::default());
    let all = informer.clone();
    let cidrs = described.watches_for(Source::known().resync(), move |change: &Change<ServiceCidr>| {
        // The list is needed for an addition alone, and an update is frequent.
        let all = if matches!(change, Change::Added(_)) { all.list() } else { Vec::new() };
        keys_for_cidr(change, &all)
    });
    described.keyed_by(&cidrs);
    let all = informer;
    let addresses = described.watches_for(Source::of(IP_ADDRESSES), move |change: &Change<PartialObjectMeta>| {
        keys_for_address(change, &all.list())
    });
    Loops::new().with(described.reconcile(Reconciler { cidrs, addresses }))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
