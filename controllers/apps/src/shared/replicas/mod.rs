//! Keeps the number of pods of an object at `spec.replicas`, for each kind of [`ReplicaOwner`].
//!
//! The page of the `ReplicaSet` controller has the guarantees and the differences from upstream.

mod apply;
#[cfg(feature = "bench")]
pub mod bench;
mod claim;
mod error;
mod event_mapping;
mod explain;
mod gates;
mod metrics;
mod observe;
mod owner;
mod plan;
mod rank;
mod reconcile;
mod status;

#[cfg(test)]
mod tests;

use kcm_framework::api::views::Pod;
use kcm_framework::config::{Setting, Workers};
use kcm_framework::{BoxError, ControllerContext, Loops};

use event_mapping::{keys_for_pod, owners};
use gates::Gates;
use metrics::Metrics;
use observe::Caches;
use reconcile::Reconciler;

pub(crate) use owner::{ReplicaOwner, replica_owner};

/// Initializes the controller of a kind, whose loop has this name.
pub(crate) fn init<V: ReplicaOwner>(
    context: &ControllerContext,
    name: &'static str,
    syncs: &Setting<Workers>,
) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop(name).workers(syncs);
    let objects = control_loop.primary::<V>();
    let owners = owners(objects.clone());
    let pods = control_loop.watches::<Pod, _>(move |change| keys_for_pod(change, &owners));
    let reconciler = Reconciler {
        caches: Caches::new(&objects, pods),
        gates: Gates::read::<V>(|gate| context.gate(gate)),
        metrics: Metrics::register(context.metrics())?,
    };
    Ok(control_loop.reconcile_objects(objects, reconciler).into())
}
