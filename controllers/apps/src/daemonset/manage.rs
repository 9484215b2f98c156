//! The pods that nodes lack, and those that are too many or finished, whatever their template.

use std::sync::Arc;

use kcm_framework::api::views::{Pod, PodPhase};

use super::backoff::{FailedPodBackoff, FailureKey};
use super::changes::{CreateReason, DeleteReason, PodChanges};
use super::rollout::Limits;
use super::snapshot::Snapshot;

/// Plans that every node which should run the daemon has one pod, and two during a surge.
///
/// # Upstream
/// `podsShouldBeOnNode` and `getUnscheduledPodsWithoutNode`.
pub(super) fn plan(snapshot: &Snapshot<'_>, limits: Limits, backoff: &FailedPodBackoff) -> PodChanges {
    let mut changes = PodChanges::default();
    for (node, placement) in &snapshot.placements {
        let pods = snapshot.pods.on(node);
        if placement.should_run() && pods.is_empty() {
            changes.create(node, CreateReason::Missing);
        } else if placement.may_stay() {
            let running = delete_finished(snapshot, node, backoff, &mut changes);
            if limits.allows_surge {
                if running.is_empty() && placement.should_run() {
                    changes.create(node, CreateReason::Missing);
                }
                delete_surplus_of_surge(snapshot, &running, &mut changes);
            } else {
                for pod in running.iter().skip(1) {
                    changes.delete(pod, DeleteReason::Surplus);
                }
            }
        } else {
            for pod in pods.iter().filter(|pod| !pod.metadata.is_terminating()) {
                changes.delete(pod, DeleteReason::NotPlaced);
            }
        }
    }
    for (_, pods) in snapshot.pods.iter().filter(|(node, _)| !snapshot.placements.contains_key(node)) {
        for pod in pods.iter().filter(|pod| pod.node_name.is_none()) {
            changes.delete(pod, DeleteReason::NodeMissing);
        }
    }
    changes.bounded(&snapshot.failures)
}

/// Deletes finished pods of a node, and returns the others that are not being deleted.
///
/// Their node gets another pod when the deletion is seen. A kubelet that rejects every pod would get one after the other,
/// so that failed pods wait for a back-off.
fn delete_finished<'a>(
    snapshot: &Snapshot<'a>,
    node: &str,
    backoff: &FailedPodBackoff,
    changes: &mut PodChanges,
) -> Vec<&'a Arc<Pod>> {
    let mut running = Vec::new();
    for pod in snapshot.pods.on(node).iter().filter(|pod| !pod.metadata.is_terminating()) {
        if pod.phase == PodPhase::Succeeded {
            changes.delete(pod, DeleteReason::Succeeded(node.into()));
        } else if pod.phase == PodPhase::Failed {
            let key = FailureKey {
                set: snapshot.set.metadata.uid.clone(),
                observed_generation: snapshot.set.status.observed_generation,
                node: node.into(),
            };
            match backoff.blocked_until(&key, snapshot.now) {
                Some(until) => {
                    changes.recheck = Some(changes.recheck.map_or(until, |earliest| earliest.min(until)));
                }
                None => changes.delete(pod, DeleteReason::Failed(key)),
            }
        } else {
            running.push(*pod);
        }
    }
    running
}

/// Deletes all pods of a node but an old and a new one. Of these the old one goes as soon as it is not ready, or the new
/// one is available.
fn delete_surplus_of_surge(snapshot: &Snapshot<'_>, running: &[&Arc<Pod>], changes: &mut PodChanges) {
    if running.len() <= 1 {
        return;
    }
    let (mut new, mut old) = (None, None);
    for pod in running {
        let place = if snapshot.revision.has_hash(pod) { &mut new } else { &mut old };
        if place.is_none() {
            *place = Some(*pod);
        } else {
            changes.delete(pod, DeleteReason::Surplus);
        }
    }
    if let (Some(new), Some(old)) = (new, old) {
        if !old.is_ready() {
            changes.delete(old, DeleteReason::OldNotReady);
        } else if snapshot.is_available(new) {
            changes.delete(old, DeleteReason::Replaced);
        }
    }
}
