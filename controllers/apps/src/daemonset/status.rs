//! The status of a daemon set.

use kcm_framework::api::views::{DaemonSet, DaemonSetStatus};
use kcm_framework::api::{Document, EditError};

use super::snapshot::Snapshot;

/// The status of a snapshot, to be written if it differs from the present one.
///
/// Of several pods of a node the first counts: the scheduled and oldest one.
///
/// # Upstream
/// `updateDaemonSetStatus`.
pub(super) fn status(snapshot: &Snapshot<'_>) -> DaemonSetStatus {
    let (mut desired, mut current, mut misscheduled) = (0, 0, 0);
    let (mut ready, mut available, mut updated) = (0, 0, 0);
    for (node, placement) in &snapshot.placements {
        let first = snapshot.pods.on(node).first();
        if !placement.should_run() {
            misscheduled += i32::from(first.is_some());
            continue;
        }
        desired += 1;
        let Some(pod) = first else { continue };
        current += 1;
        ready += i32::from(pod.is_ready());
        available += i32::from(snapshot.is_available(pod));
        updated += i32::from(snapshot.revision.is_of(pod));
    }
    let mut status = snapshot.set.status.clone();
    status.desired_number_scheduled = desired;
    status.current_number_scheduled = current;
    status.number_misscheduled = misscheduled;
    status.number_ready = ready;
    status.number_available = available;
    status.number_unavailable = desired - available;
    status.updated_number_scheduled = updated;
    status.observed_generation = status.observed_generation.max(snapshot.set.metadata.generation);
    status
}

/// The whole object with the status; unknown fields stay.
pub(super) fn with_status(set: &DaemonSet, status: &DaemonSetStatus) -> Result<Document, EditError> {
    let mut document = set.document.clone();
    for (name, count) in [
        ("currentNumberScheduled", status.current_number_scheduled),
        ("numberMisscheduled", status.number_misscheduled),
        ("desiredNumberScheduled", status.desired_number_scheduled),
        ("numberReady", status.number_ready),
        ("updatedNumberScheduled", status.updated_number_scheduled),
        ("numberAvailable", status.number_available),
        ("numberUnavailable", status.number_unavailable),
    ] {
        document.set(&["status", name], &count)?;
    }
    document.set(&["status", "observedGeneration"], &status.observed_generation)?;
    if let Some(count) = status.collision_count {
        document.set(&["status", "collisionCount"], &count)?;
    }
    Ok(document)
}
