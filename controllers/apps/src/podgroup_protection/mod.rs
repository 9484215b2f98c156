//! Pod group protection: keeps a `PodGroup` from being deleted while Pods of it are active.
//!
//! Reads `PodGroups` and Pods. Updates the finalizers of `PodGroups`.
//!
//! ```text
//! terminating PodGroup ────────────────────event mapping──▶ key ──▶ plan ──▶ a second look ──▶ finalizer (update)
//! Pod that ended, or was deleted, or recreated ──┘                 (pure)     after a second
//! ```
//!
//! # Guarantees
//! - The finalizer `scheduling.k8s.io/podgroup-protection` of a terminating `PodGroup` is removed once the cache holds no Pod
//!   that names the group and has not ended. A terminating Pod is active until it is deleted or has ended. The finalizer is
//!   never added here: the API server adds it.
//! - The cache must show no active Pod twice, a second apart: a Pod that was created just before the deletion of its group is
//!   seen.
//! - While a Pod of the namespace cannot be decoded, the finalizer stays.
//! - An update carries the resource version: finalizers of other clients are not lost, and a recreated group is not changed.
//!   Fields that this version does not know survive.
//! - At rest nothing is written.
//!
//! # What it does not do
//! It deletes neither Pods nor groups. It lists no Pods: a Pod whose event comes more than a second late is missed, and the
//! group is deleted beneath it, as by upstream. Pods of an earlier group of the same name count, as by upstream.
//!
//! It does not run by default: the gate `GenericWorkload` is off. If the gate is turned off again, groups that are being
//! deleted keep their finalizer until somebody removes it.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/scheduling/podgroupprotection` of Kubernetes 1.37.2. `docs/differences.md` has the differences
//! that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | The finalizer is removed after a second look. | It is removed at once. | The caches of Pods and groups are not in step. |
//! | A Pod that leaves its group enqueues the group. | It does not. | The API server forbids it today. |
//! | A group that does not exist when it is updated is no error. | It is retried. | There is nothing to protect. |

mod event_mapping;
mod first_looks;
mod plan;
mod reconcile;
mod view;

#[cfg(test)]
mod tests;

use kcm_framework::api::views::{Pod, PodGroupMembership};
use kcm_framework::api::{Need, ObjectKey};
use kcm_framework::config::{Gate, GateStage};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use event_mapping::{keys_for_group, keys_for_pod};
use first_looks::FirstLooks;
use plan::group_of_active;
use reconcile::Reconciler;

/// Lets Pods be scheduled in groups.
const GENERIC_WORKLOAD: Gate = Gate { name: "GenericWorkload", default: false, stage: GateStage::Beta, locked: false };

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("podgroup-protection-controller", init)
    .required_gates(&[GENERIC_WORKLOAD])
    .needs(&[Need::part::<PodGroupMembership>()]);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let membership = context.part::<PodGroupMembership>()?;
    let mut control_loop = context.control_loop::<ObjectKey>("podgroupprotection");
    let pods = control_loop.watches::<Pod, _>(move |change| keys_for_pod(change, membership));
    let groups = control_loop.primary_with(Source::known().resync(), keys_for_group);
    let active = pods.index("activepodgroup", move |pod| group_of_active(pod, membership));
    let reconciler = Reconciler { pods, active, first_looks: FirstLooks::default() };
    Ok(control_loop.reconcile_objects(groups, reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
