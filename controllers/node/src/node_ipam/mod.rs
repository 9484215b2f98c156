//! Node IPAM: gives each Node a block of `--cluster-cidr` as its pod CIDR, one of each IP family.
//!
//! Reads Nodes. Writes `spec.podCIDR` and `spec.podCIDRs` of Nodes that have none.
//!
//! ```text
//! event of a Node ──event mapping──▶ key ──▶ state of all Nodes ──▶ has pod CIDRs: occupy their blocks
//!                                             (pure)    │           has none: reserve blocks ──▶ patch
//!                                                       └─ deleted: release ──▶ keys of the Nodes that wait
//! ```
//!
//! It runs with `--allocate-node-cidrs` only.
//!
//! # Guarantees
//! - No block is given to two Nodes, also if a response is lost. A reserved block stays reserved for the uid of its Node until
//!   the cache shows which pod CIDRs the Node has, or that it was deleted. The Node is offered the same block again.
//! - A block is free when the last of its holders goes. A block that a service CIDR touches is never given to a Node.
//! - All blocks of a Node are reserved, or none: if one IP family is exhausted, the other one loses nothing.
//! - Blocks are given in ascending order, and a released block is used again last.
//! - A Node that waits for a block gets the first that is released.
//! - No block is reserved before all Nodes of the cache are known, or while a Node cannot be decoded that was not seen before.
//! - The patch carries the uid of the Node.
//!
//! # What it does not do
//! It changes no pod CIDR that a Node has; the API server allows none. The allocators of clouds are not part of it.
//!
//! # Differences from upstream
//! Upstream is the range allocator in `pkg/controller/nodeipam` of Kubernetes 1.37.2. `docs/differences.md` has the
//! differences that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A block whose patch has an unknown outcome stays reserved. | It is released, and given to the next Node. | Two Nodes would have one pod CIDR. |
//! | If one IP family is exhausted, no block of the other is taken. | Each retry takes one for good. | The other family would be exhausted too. |
//! | Nodes that wait are enqueued when a block is released. | They wait for the end of their back-off, up to 1000 s. | They get their pod CIDRs at once. |
//! | A block with several holders is free when the last one goes. | It is free when the first one goes. | A pod CIDR in use would be given to another Node. |
//! | A Node with a pod CIDR outside of `--cluster-cidr` is reported, and others get theirs. | The process ends at each start. | The other controllers continue. |
//! | A pod CIDR occupies blocks in every cluster CIDR that it touches. | In the one of its position. | The order of `--cluster-cidr` may have been changed. |
//! | A Node that shares its pod CIDR is reported. | It is not noticed. | Its Pods cannot be reached. |
//! | A prefix of a Node that no address has is refused. | It is accepted. | No pod CIDR follows from it. |
//! | A Node whose pod CIDRs did not change is not reconciled at each update. | It is. | There is nothing to do. |
//! | A patch that fails is retried with back-off, and its event is recorded each time. | It is sent three times at once, then the event is recorded. | The framework repeats requests. |

mod allocator;
mod blocks;
mod cidr;
mod configuration;
mod event_mapping;
mod events;
mod metrics;
mod reconcile;
mod settings;
mod state;

#[cfg(test)]
mod tests;

use kcm_framework::api::Need;
use kcm_framework::api::views::{Node, NodePodCidrs};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};
use parking_lot::Mutex;

use allocator::Allocator;
use configuration::{Clusters, MaskSizes};
use event_mapping::keys_for_node;
use metrics::Metrics;
use reconcile::Reconciler;
use settings::{ALLOCATE, CLUSTER_CIDR, MASK_SIZE, MASK_SIZE_IPV4, MASK_SIZE_IPV6, SECOND_SERVICES, SERVICES};
use state::State;

/// Nodes that are reconciled concurrently, as upstream.
const WORKERS: usize = 30;

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("node-ipam-controller", init)
    .aliases(&["nodeipam"])
    .service_account("node-controller")
    .event_component("cidrAllocator")
    .needs(const { &[Need::part::<NodePodCidrs>()] })
    .settings(
        const { &[MASK_SIZE.row(), MASK_SIZE_IPV4.row(), MASK_SIZE_IPV6.row(), SERVICES.row(), SECOND_SERVICES.row()] },
    );

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    if !context.get(&ALLOCATE)? {
        return Ok(Loops::none("--allocate-node-cidrs is off"));
    }
    let clusters = clusters(context)?;
    let mut control_loop = context.control_loop("cidrallocator_node").workers(WORKERS);
    let cidrs = context.part()?;
    let nodes = control_loop.primary_with(Source::<Node>::known().resync(), move |change| keys_for_node(change, cidrs));
    let reconciler = Reconciler {
        nodes: nodes.clone(),
        queue: control_loop.queue(),
        cidrs,
        state: Mutex::new(State::new(Allocator::new(&clusters))),
        clusters,
        metrics: Metrics::register(context.metrics())?,
    };
    Ok(control_loop.reconcile_objects(nodes, reconciler).into())
}

fn clusters(context: &ControllerContext) -> Result<Clusters, BoxError> {
    let sizes = MaskSizes {
        any: context.get(&MASK_SIZE)?,
        ipv4: context.get(&MASK_SIZE_IPV4)?,
        ipv6: context.get(&MASK_SIZE_IPV6)?,
    };
    let (services, second) = (context.get(&SERVICES)?, context.get(&SECOND_SERVICES)?);
    let texts = services.split(',').chain([&*second]);
    let (clusters, unreadable) = Clusters::read(&context.get(&CLUSTER_CIDR)?, sizes, texts)?;
    for text in unreadable {
        tracing::warn!(text, "Cannot read a CIDR of --service-cluster-ip-range; its blocks may be given to nodes");
    }
    Ok(clusters)
}

kcm_framework::inventory::submit! { DESCRIPTOR }
