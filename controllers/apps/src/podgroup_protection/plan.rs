//! The plan for a group: its finalizer, and the pods that keep it.

use std::time::Duration;

use kcm_framework::api::views::{Pod, PodGroupMembership};
use kcm_framework::api::{Document, EditError, Meta, ObjectKey, PartReader};

pub(super) const FINALIZER: &str = "scheduling.k8s.io/podgroup-protection";

/// The time between the looks at the pods of a group.
pub(super) const SECOND_LOOK: Duration = Duration::from_secs(1);

/// The key of the group that a pod names.
pub(super) fn group_of(pod: &Pod, membership: PartReader<PodGroupMembership>) -> Option<ObjectKey> {
    let group = membership.of(pod).group.clone()?;
    Some(ObjectKey::namespaced(pod.metadata.key.namespace().unwrap_or_default(), &*group))
}

/// The key of the group that a pod keeps: it has not ended.
pub(super) fn group_of_active(pod: &Pod, membership: PartReader<PodGroupMembership>) -> Option<ObjectKey> {
    group_of(pod, membership).filter(|_| !pod.phase.is_final())
}

/// Returns `true` if the finalizer may have to be removed.
///
/// # Upstream
/// `IsDeletionCandidate` of `pkg/controller/volume/protectionutil`.
pub(super) fn is_candidate(group: &Meta) -> bool {
    group.is_terminating() && group.finalizers.iter().any(|name| **name == *FINALIZER)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// The group is not being deleted, or lacks the finalizer.
    Leave,
    /// So many pods are active.
    InUse { pods: usize },
    /// No pod is active at the first look.
    LookAgain { after: Duration },
    /// No pod was active at both looks.
    Remove,
}

/// Plans for a group with so many active pods. `idle_for` is the time since the first look without any; `None` if there was
/// none.
pub(super) fn plan(group: &Meta, active: impl FnOnce() -> usize, idle_for: Option<Duration>) -> Plan {
    if !is_candidate(group) {
        return Plan::Leave;
    }
    let pods = active();
    let remaining = SECOND_LOOK.saturating_sub(idle_for.unwrap_or_default());
    if pods > 0 {
        Plan::InUse { pods }
    } else if remaining.is_zero() {
        Plan::Remove
    } else {
        Plan::LookAgain { after: remaining }
    }
}

/// Returns the document without the finalizer.
pub(super) fn released(document: &Document, group: &Meta) -> Result<Document, EditError> {
    let kept: Vec<&str> = group.finalizers.iter().map(|name| &**name).filter(|name| *name != FINALIZER).collect();
    let mut changed = document.clone();
    changed.set(&["metadata", "finalizers"], &kept)?;
    Ok(changed)
}

impl Plan {
    /// Explains the plan to operators.
    pub(super) fn explain(self) -> String {
        match self {
            Self::Leave => "leaves the group, which is not being deleted or lacks the finalizer".to_owned(),
            Self::InUse { pods } => {
                format!("keeps the finalizer of the terminating group: {pods} of its pods are active")
            }
            Self::LookAgain { .. } => "looks again before it removes the finalizer: no pod is active".to_owned(),
            Self::Remove => "removes the finalizer of the terminating group, of which no pod is active".to_owned(),
        }
    }
}
