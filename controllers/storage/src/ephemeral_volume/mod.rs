//! Ephemeral volumes: creates the `PersistentVolumeClaims` of the generic ephemeral volumes of Pods.
//!
//! Reads Pods and `PersistentVolumeClaims`. Creates claims.
//!
//! ```text
//! new Pod ──────────event mapping──▶ key ──▶ plan ──▶ live read of the Pod ──▶ claim (create)
//! deleted claim ──────────┘                (pure)   (only if a claim is missing)
//! ```
//!
//! # Guarantees
//! - A Pod that is not terminating has a claim for each of its ephemeral volumes, which the Pod controls. The name of the
//!   claim joins the names of Pod and volume by a dash.
//! - The claim has labels, annotations and the whole spec of the template, with fields that this version does not know.
//! - A claim of that name that the Pod does not control is never used, changed or deleted. The Pod has an event instead.
//! - A name belongs to one claim, so a claim is never created twice: not after a lost response, a kill or a change of the
//!   leader.
//!
//! # What it does not do
//! It does not delete claims: the garbage collector does, once the Pod is deleted.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/volume/ephemeral` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A claim whose deletion a watch missed is created again. | It is not. | The Pod waits for it. |
//! | If the name is taken, the claim is read live: a claim of the Pod is no error. | It is an error until the cache shows the claim. | The claim is there. |
//! | The template is read from the API server when a claim is missing. | Templates are cached. | Memory. |

mod claim;
mod event_mapping;
mod events;
mod metrics;
mod plan;
mod reconcile;

#[cfg(test)]
mod tests;

use kcm_framework::api::Need;
use kcm_framework::api::views::{PersistentVolumeClaim, Pod, PodVolumes};
use kcm_framework::config::{Section, Setting, Workers};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use event_mapping::{claims_of, key_for_pod};
use metrics::Metrics;
use reconcile::Reconciler;

const SECTION: Section = Section::new("Ephemeral-volume-controller", "EphemeralVolumeController");
const SYNCS: Setting<Workers> = SECTION.workers(
    "concurrent-ephemeralvolume-syncs",
    "ConcurrentEphemeralVolumeSyncs",
    "Pods with ephemeral volumes",
    5,
);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("ephemeral-volume-controller", init)
    .aliases(&["ephemeral-volume"])
    .event_component("ephemeral_volume")
    .needs(const { &[Need::part::<PodVolumes>()] })
    .settings(const { &[SYNCS.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let volumes = context.part()?;
    let mut control_loop = context.control_loop("ephemeral_volume").workers(&SYNCS);
    let pods = control_loop.primary_with(Source::<Pod>::known(), move |change| key_for_pod(change, volumes));
    let pods_of_claim = pods.index("ephemeral-claim", move |pod| claims_of(pod, volumes));
    let claims = control_loop.watches::<PersistentVolumeClaim, _>(move |change| {
        event_mapping::keys_for_claim(change, |claim| pods_of_claim.get(claim))
    });
    let reconciler = Reconciler { volumes, claims, metrics: Metrics::register(context.metrics())? };
    Ok(control_loop.reconcile_objects(pods, reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
