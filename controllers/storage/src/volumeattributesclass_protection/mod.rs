//! Volume attributes class protection: keeps a `VolumeAttributesClass` that is in use from being deleted.
//!
//! Reads `VolumeAttributesClasses`, `PersistentVolumeClaims` and `PersistentVolumes`. Updates the finalizers of the classes.
//!
//! ```text
//! change of a class ──────────────────event mapping──▶ key ──▶ plan ──▶ finalizer (update)
//! claim or volume that gives up a class ─────┘               (pure)
//! ```
//!
//! # Guarantees
//! - A class has the finalizer `kubernetes.io/vac-protection`. The API server adds it to new ones; this controller adds it
//!   to older ones, and to those that lost it.
//! - The finalizer of a terminating class is removed once the caches hold no claim and no volume that names the class. A
//!   claim names the class that it asks for, the class that it has, and the class that it is on its way to.
//! - While a claim or a volume cannot be decoded, the finalizer of a terminating class stays.
//! - An update carries the resource version: finalizers of other clients are not lost, and a recreated object is not
//!   changed. Fields that this version does not know survive.
//! - At rest nothing is written.
//!
//! # What it does not do
//! It reads no claims from the API server before it removes a finalizer: a claim that is created at the same moment is
//! missed, as by upstream. Its class can be created again.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/volume/vacprotection` of Kubernetes 1.37.2. `docs/differences.md` has the differences that
//! all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A claim or a volume whose deletion a watch missed enqueues its classes. | It does not: a terminating class stays for ever. | Only another change of the class would remove the finalizer. |
//! | A class that does not exist when it is updated is no error. | It is retried. | There is nothing to protect. |

mod event_mapping;
mod plan;
mod reconcile;
mod view;

#[cfg(test)]
mod tests;

use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};
use kcm_framework::config::gates::VOLUME_ATTRIBUTES_CLASS;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use event_mapping::{keys_for_claim, keys_for_class, keys_for_volume};
use plan::{classes_of_claim, classes_of_volume};
use reconcile::Reconciler;

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("volumeattributesclass-protection-controller", init)
        .required_gates(&[VOLUME_ATTRIBUTES_CLASS]);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("vacprotection");
    let claims = control_loop.watches::<PersistentVolumeClaim, _>(keys_for_claim);
    let volumes = control_loop.watches::<PersistentVolume, _>(keys_for_volume);
    let classes = control_loop.primary_with(Source::known().resync(), keys_for_class);
    let reconciler = Reconciler {
        claims_of_class: claims.index("volumeattributesclass", classes_of_claim),
        volumes_of_class: volumes.index("volumeattributesclass", classes_of_volume),
        claims,
        volumes,
    };
    Ok(control_loop.reconcile_objects(classes, reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
