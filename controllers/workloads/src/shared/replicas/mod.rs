//! What keeps the number of pods of an object at `spec.replicas`, for each kind of [`ReplicaOwner`].
//!
//! The page of the replica set controller says what is guaranteed, and what differs from upstream.

mod apply;
#[cfg(feature = "bench")]
pub mod bench;
mod claim;
mod error;
mod event_mapping;
mod explain;
mod metrics;
mod observe;
mod owner;
mod plan;
mod rank;
mod reconcile;
mod settings;
mod status;

#[cfg(test)]
mod tests;

use kcm_api::views::Pod;
use kcm_framework::{ControlLoopBuilder, ControllerContext, Loop};

use event_mapping::{keys_for_pod, owners};
use metrics::Metrics;
use observe::Caches;
use reconcile::Reconciler;
use settings::Settings;

pub(crate) use owner::ReplicaOwner;

/// The loop that reconciles the objects of a kind.
pub(crate) fn control_loop<V: ReplicaOwner>(context: &ControllerContext, mut described: ControlLoopBuilder) -> Loop {
    let objects = described.primary::<V>();
    let owners = owners(objects.clone());
    let pods = described.watches::<Pod, _>(move |change| keys_for_pod(change, &owners));
    described.reconcile(Reconciler {
        caches: Caches::new(objects, pods),
        settings: Settings::of::<V>(|gate| context.gate(gate)),
        metrics: Metrics::register(context.metrics()),
    })
}
