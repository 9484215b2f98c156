//! Persistent volume expander: prepares the expansion of the volumes of claims that request more storage.
//!
//! Reads `PersistentVolumeClaims` and `PersistentVolumes`. Updates the status of claims, and patches volumes.
//!
//! ```text
//! claim that grows ──event mapping──▶ key ──▶ volume ──▶ plan ──▶ annotation for the CSI resizer (PATCH)
//!                                           (cache)   (pure)  └─▶ steps of a flex volume (PATCH)
//! ```
//!
//! # Guarantees
//! - A claim whose volume a CSI driver serves in place of an in-tree plugin names the driver in the annotation
//!   `volume.kubernetes.io/storage-resizer`, so that the external resizer of the driver expands it.
//! - Of every other volume, an event says that an external controller expands it; flex volumes are the exception.
//! - The expansion of a flex volume is recorded in claim and volume, and the kubelet expands the file system. A recorded
//!   size is never lowered before the kubelet has finished. The steps can be repeated after a kill: each is found in the
//!   objects.
//! - Each write to a claim carries its resource version, and each patch of a volume its uid.
//!
//! # What it does not do
//! It expands no storage itself: CSI drivers do. Only requests that exceed the capacity in the status are considered.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/volume/expand` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | The volume is read from a cache; live only if the cache does not show it bound to the claim. | It is read live for each bound claim at each start. | Requests. |
//! | A claim that has the annotation already is not patched. | It is patched without a change. | Requests. |
//! | A claim that is not bound any more is left alone. | Its volume is read, and the claim retried. | Nothing can be expanded. |
//! | New capacity and old capacity of a flex volume are written in one patch, before the claim waits for the kubelet. | The old capacity is written last, and is lost if the manager is killed before. | The binder needs it to restore the size of the claim. |
//! | A claim whose status says already that its flex volume is being expanded is not written again. | It is. | Requests. |

mod apply;
mod event_mapping;
mod events;
mod flex;
mod plan;
mod reconcile;
mod status;

#[cfg(test)]
mod tests;

use kcm_framework::api::views::PersistentVolume;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use event_mapping::key_for_claim;
use reconcile::Reconciler;

use crate::shared::metrics::storage_seconds;

/// Number of concurrent syncs, as upstream.
const WORKERS: usize = 10;

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("persistentvolume-expander-controller", init)
    .aliases(&["persistentvolume-expander"])
    .service_account("expand-controller")
    .event_component("volume_expand");

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("volume_expand").workers(WORKERS);
    let claims = control_loop.primary_with(Source::known(), key_for_claim);
    let volumes = control_loop.reads::<PersistentVolume>();
    let reconciler = Reconciler { volumes, storage_seconds: storage_seconds(context.metrics())? };
    Ok(control_loop.reconcile_objects(claims, reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
