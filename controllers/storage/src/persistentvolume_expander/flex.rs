//! The pure decision about a flex volume, whose expansion is recorded for the kubelet.

use kcm_framework::api::ResourceQuantity;
use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};
use serde::Deserialize;

use super::plan::{PRE_RESIZE_CAPACITY, allocated, capacity, request, volume_capacity};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The kubelet has finished: the volume forgets the old capacity of the claim.
    Finish,
    /// The kubelet is about to expand the file system.
    Wait,
    /// The kubelet may try again.
    Pend,
    /// The expansion to this size is recorded, from the first step that is missing.
    Expand { to: ResourceQuantity },
}

/// Progress of an expansion: `status.allocatedResourceStatuses.storage` of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub(super) enum ResizeStatus {
    /// No expansion is under way.
    #[default]
    #[serde(rename = "")]
    None,
    ControllerResizeInProgress,
    ControllerResizeInfeasible,
    NodeResizePending,
    NodeResizeInProgress,
    NodeResizeInfeasible,
    #[serde(other)]
    Unknown,
}

/// Decides the next step of a flex volume.
///
/// # Upstream
/// `expandController.expand` and `operationGenerator.expandAndRecoverFunction`.
pub(super) fn step(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Step {
    let (request, volume_capacity) = (request(claim), volume_capacity(volume));
    let is_finished = capacity(claim) >= request && capacity(claim) >= volume_capacity;
    if is_finished && volume.annotation(PRE_RESIZE_CAPACITY).is_some() {
        return Step::Finish;
    }
    // A size that the kubelet may have used already is not lowered.
    let recorded = allocated(claim).unwrap_or(request);
    let is_large_enough = volume_capacity >= request;
    let to = match status(claim) {
        ResizeStatus::NodeResizePending | ResizeStatus::NodeResizeInProgress if is_large_enough => return Step::Wait,
        ResizeStatus::NodeResizeInfeasible if is_large_enough => return Step::Pend,
        ResizeStatus::NodeResizePending
        | ResizeStatus::NodeResizeInProgress
        | ResizeStatus::NodeResizeInfeasible
        | ResizeStatus::ControllerResizeInProgress => recorded,
        ResizeStatus::ControllerResizeInfeasible | ResizeStatus::None if is_large_enough => recorded,
        ResizeStatus::ControllerResizeInfeasible | ResizeStatus::None | ResizeStatus::Unknown => request,
    };
    Step::Expand { to }
}

/// The progress that the status of a claim records.
pub(super) fn status(claim: &PersistentVolumeClaim) -> ResizeStatus {
    let recorded = claim.raw(&["status", "allocatedResourceStatuses", "storage"]);
    recorded.and_then(|status| serde_json::from_str(status.get()).ok()).unwrap_or_default()
}
