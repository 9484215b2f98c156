//! Persistent volume protection: keeps a `PersistentVolume` that is bound to a claim from being deleted.
//!
//! Reads `PersistentVolumes`. Updates their finalizers.
//!
//! ```text
//! change of a PersistentVolume ──event mapping──▶ key ──▶ plan ──▶ finalizer (update)
//!                                                        (pure)
//! ```
//!
//! # Guarantees
//! - A `PersistentVolume` has the finalizer `kubernetes.io/pv-protection`. The API server adds it to new ones; this
//!   controller adds it to older ones, and to those that lost it.
//! - The finalizer of a terminating `PersistentVolume` is removed once its phase is not `Bound`.
//! - An update carries the resource version: finalizers of other clients are not lost, and a recreated object is not
//!   changed. Fields that this version does not know survive.
//! - At rest nothing is written.
//!
//! # What it does not do
//! It asks for `status.phase` only, not for `spec.claimRef`. A terminating volume whose claim is being bound, and whose
//! phase is not `Bound` yet, loses the finalizer.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/volume/pvprotection` of Kubernetes 1.37.2. `docs/differences.md` has the differences that
//! all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A `PersistentVolume` that does not exist when it is updated is no error. | It is retried. | There is nothing to protect. |

mod event_mapping;
mod plan;
mod reconcile;

#[cfg(test)]
mod tests;

use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use event_mapping::keys_for_volume;
use reconcile::Reconciler;

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("persistentvolume-protection-controller", init)
    .aliases(&["pv-protection"])
    .service_account("pv-protection-controller");

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("pvprotection");
    let volumes = control_loop.primary_with(Source::known().resync(), keys_for_volume);
    Ok(control_loop.reconcile_objects(volumes, Reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
