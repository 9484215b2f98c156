//! `SELinux` warnings: reports Pods that use one volume with different `SELinux` labels, which a node cannot mount at once.
//!
//! Reads Pods, `PersistentVolumeClaims`, `PersistentVolumes` and `CSIDrivers`. Records events on Pods, and writes nothing
//! else.
//!
//! ```text
//! Pod ─────────────────────event mapping──▶ key ──▶ storage of its volumes ──▶ uses in memory ──▶ conflicts ──▶ events
//! claim, volume, driver ──┘                        (cached claim and volume)       (pure)            └──▶ metric
//! ```
//!
//! # Guarantees
//! - Two Pods that have not finished conflict if they use the same storage with different policies, or with labels that
//!   differ in the level, or in a user, role or type that both have. Both Pods have an event, and the metric
//!   `selinux_warning_controller_selinux_volume_conflict` has a series for each of them.
//! - A Pod that mounts with no label counts as one that relabels recursively: its policy says so, or its volume is not
//!   mounted with labels. Fibre Channel and iSCSI volumes are, and volumes of a CSI driver with `seLinuxMount: true`.
//! - A conflict is reported once: when the second use becomes known or changes. A restart reports all conflicts again,
//!   because the uses are in memory.
//! - An event about a Pod of another namespace does not name it.
//! - A Pod whose containers mount a volume with different labels has a warning, and the volume is not compared.
//! - At rest nothing is sent.
//!
//! # What it does not do
//! It does not know which nodes have `SELinux`, nor which labels a node completes: all nodes count. It looks neither at the
//! access modes of a volume nor at the nodes of the Pods.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/volume/selinuxwarning` of Kubernetes 1.37.2. `docs/differences.md` has the differences that
//! all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A Pod whose claim is not bound waits for the change of the claim or the volume. | It is retried with back-off, for ever. | Load. |
//! | A Pod with several labels is warned of when it is reconciled. | It is also retried with back-off, for ever. | Its containers do not change. |
//! | CSI volumes of a Pod itself are skipped. | The Pod is retried with back-off, for ever. | No other Pod can use them. |
//! | A Pod that was recreated under its name loses the volumes of its predecessor. | They stay until the Pod ends. | They report conflicts that do not exist. |
//! | An ephemeral container counts when it is added. | It counts at the next reconcile. | Its label may conflict. |
//! | While a CSI driver changes, its Pods are compared after both have seen the change. | They conflict in between. | The conflict does not exist. |
//! | A conflict with a Pod that was deleted meanwhile is not reported, and the other conflicts are. | It is reported on the Pod that is left, and the conflicts behind it are dropped. | It is resolved, and the others are not. |
//! | At most 1,000 conflicts of a volume are kept and reported. | All are. | Their number grows with the square of the Pods. |
//! | A Pod that gets a second label for a volume is no longer compared. | Its first label is. | It has no single label. |
//! | Volumes that are never mounted with labels are not kept. | They are, and never conflict. | Memory. |
//! | Inline volumes of Fibre Channel, iSCSI and migrated plugins are read from the API server. | They are cached. | Memory; such volumes are rare. |

mod conflict;
mod event_mapping;
mod label;
mod live_pod;
mod metrics;
mod reconcile;
mod uses;
mod volume;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim, Pod, PodSelinux};
use kcm_framework::api::{Need, ObjectKey};
use kcm_framework::config::gates::SELINUX_CHANGE_POLICY;
use kcm_framework::informers::{Change, Index};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};
use parking_lot::Mutex;

use event_mapping::{claim_for_claim, claim_for_volume, claims_of, driver_for_driver, key_for_pod};
use reconcile::Reconciler;
use uses::Uses;

use crate::shared::csi_driver::CsiDriver;

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("selinux-warning-controller", init)
    .event_component("selinux_warning")
    .off_by_default()
    .required_gates(&[SELINUX_CHANGE_POLICY])
    .needs(const { &[Need::part::<PodSelinux>()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let selinux = context.part()?;
    let uses = Arc::new(Mutex::new(Uses::default()));
    let mut control_loop = context.control_loop("selinux_warning");
    let pods = control_loop.primary_with(Source::<Pod>::known(), move |change| key_for_pod(change, selinux));
    let by_claim = pods.index("mounted-claim", move |pod| claims_of(pod, selinux.of(pod)));
    let of_claim = by_claim.clone();
    let claims =
        control_loop.watches(move |change: &Change<PersistentVolumeClaim>| pods_of(&of_claim, claim_for_claim(change)));
    let volumes =
        control_loop.watches(move |change: &Change<PersistentVolume>| pods_of(&by_claim, claim_for_volume(change)));
    let of_driver = Arc::clone(&uses);
    let drivers = control_loop.watches(move |change: &Change<CsiDriver>| {
        driver_for_driver(change).map(|driver| of_driver.lock().pods_of_driver(driver)).unwrap_or_default()
    });
    metrics::register(context.metrics(), &uses)?;
    let reconciler = Reconciler { selinux, pods: pods.clone(), claims, volumes, drivers, uses };
    Ok(control_loop.reconcile_objects(pods, reconciler).into())
}

fn pods_of(index: &Index<Pod, ObjectKey>, claim: Option<ObjectKey>) -> Vec<ObjectKey> {
    let pods = claim.map(|claim| index.get(&claim)).unwrap_or_default();
    pods.iter().map(|pod| pod.metadata.key.clone()).collect()
}

kcm_framework::inventory::submit! { DESCRIPTOR }
