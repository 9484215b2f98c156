//! Persistent volume claim protection: keeps a `PersistentVolumeClaim` that a Pod uses from being deleted, and records
//! since when no Pod uses it.
//!
//! Reads `PersistentVolumeClaims` and Pods. Updates the finalizers of claims and their condition `Unused`.
//!
//! ```text
//! change of a claim ─────────────event mapping──▶ key ──▶ plan ──▶ live list of Pods ──▶ plan ──▶ finalizer, condition
//! change of a Pod ───claims of its volumes─────┘        (pure)   (only if it matters)  (pure)
//! ```
//!
//! # Guarantees
//! - A claim has the finalizer `kubernetes.io/pvc-protection`. The API server adds it to new ones; this controller adds it
//!   to older ones, and to those that lost it.
//! - The finalizer of a terminating claim is removed only after a live list of the Pods of its Namespace, requested after the
//!   claim was seen to be terminating, has shown none that is assigned to a Node and uses the claim. A finished Pod counts,
//!   until it is deleted.
//! - A bound claim has the condition `Unused`, which is true while no Pod that has not finished uses the claim. It becomes
//!   true only after such a live list. An equal condition is never written again, so its transition time is the time since
//!   when the claim is unused.
//! - A claim of an ephemeral volume is used by its own Pod only, which must control it.
//! - While a Pod of the Namespace cannot be decoded, no finalizer is removed and no claim becomes unused.
//! - An update carries the resource version: finalizers and conditions of other clients are not lost, and a recreated claim
//!   is not changed. Fields that this version does not know survive.
//! - At rest nothing is written.
//!
//! # What it does not do
//! It does not delete claims. Without the gate `PersistentVolumeClaimUnusedSinceTime` it leaves the condition as it is.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/volume/pvcprotection` of Kubernetes 1.37.2. `docs/differences.md` has the differences that
//! all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | Pods are listed live only before a finalizer is removed, and before `Unused` becomes true. | They are also listed for claims that do not change. | Fewer requests; the cache decides that nothing changes. |
//! | Claims of a Namespace share a live list of the last second, if it is younger than their deletion. | They share the list of the batch that one worker has collected. | The workers need no queue of Namespaces. |
//! | One write for each sync. | The condition and the finalizer are written with the same resource version, and the second write conflicts. | No conflict. |
//! | Updates of a Pod that do not concern its use of claims enqueue nothing. | Each update enqueues the claims of the Pod. | Less work. |
//! | A claim that does not exist when it is updated is no error. | It is retried. | There is nothing to protect. |

mod condition;
mod event_mapping;
mod live_pods;
mod plan;
mod reconcile;
mod terminating;
mod usage;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_framework::api::Need;
use kcm_framework::api::views::{Pod, PodDeletion, PodVolumes};
use kcm_framework::config::gates::PERSISTENT_VOLUME_CLAIM_UNUSED_SINCE_TIME;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};
use tokio::time::Instant;

use event_mapping::{keys_for_claim, keys_for_pod};
use live_pods::LivePods;
use reconcile::Reconciler;
use terminating::Terminating;
use usage::{PodReader, claims_of};

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("persistentvolumeclaim-protection-controller", init)
        .aliases(&["pvc-protection"])
        .service_account("pvc-protection-controller")
        .needs(const { &[Need::part::<PodVolumes>(), Need::part::<PodDeletion>()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let records_use = context.gate(&PERSISTENT_VOLUME_CLAIM_UNUSED_SINCE_TIME);
    let reader = PodReader { volumes: context.part()?, deletions: context.part()? };
    let mut control_loop = context.control_loop("pvcprotection");
    let pods = control_loop.watches::<Pod, _>(move |change| keys_for_pod(change, reader));
    let terminating = Arc::new(Terminating::default());
    let noted = Arc::clone(&terminating);
    let claims = control_loop.primary_with(Source::known().resync(), move |change| {
        noted.note(change, Instant::now());
        keys_for_claim(change, records_use)
    });
    let reconciler = Reconciler {
        records_use,
        reader,
        pods_of_claim: pods.index("claim", move |pod| claims_of(reader.use_of(pod))),
        pods,
        live_pods: LivePods::default(),
        terminating,
    };
    Ok(control_loop.reconcile_objects(claims, reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
