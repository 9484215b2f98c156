//! The plan for a claim: the reservations that end, and what follows. Pure.

use kcm_framework::api::Uid;
use kcm_framework::api::views::ResourceClaim;

/// The finalizer that the scheduler sets before it allocates a claim.
pub(super) const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// The Pod that controls a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// No Pod controls the claim.
    None,
    /// The cache does not show the Pod. The garbage collector deletes the claim if the Pod was deleted.
    Unknown,
    /// The Pod may run.
    Active,
    /// The Pod will not run any more, or was recreated under the same name.
    Done,
}

/// The writes to a claim, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Plan {
    /// The consumers whose reservations end.
    pub(super) removed: Vec<Uid>,
    /// Deallocates the claim, in the same write.
    pub(super) deallocates: bool,
    /// Removes the finalizer.
    pub(super) removes_finalizer: bool,
    /// Deletes the claim.
    pub(super) deletes: bool,
}

/// The state beside the claim itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around<'a> {
    /// Consumers of `status.reservedFor` that do not use the claim any more.
    pub(super) ended: &'a [Uid],
    pub(super) owner: Owner,
    /// `true` if this process has deallocated the claim and did not see that the finalizer was removed.
    pub(super) is_releasing: bool,
}

/// Plans for a claim.
///
/// A claim that nobody uses any more is deallocated when its last reservation ends, so that it can be allocated again
/// for a consumer on another node. A claim that was never reserved stays allocated, unless it is terminating.
pub(super) fn plan(claim: &ResourceClaim, around: Around<'_>) -> Plan {
    let is_ended = |uid: &Uid| around.ended.contains(uid);
    let removed: Vec<Uid> = claim.reserved_for.iter().map(|consumer| consumer.uid.clone()).filter(is_ended).collect();
    let is_unused = removed.len() == claim.reserved_for.len();
    let has_finalizer = claim.metadata.finalizers.iter().any(|finalizer| &**finalizer == FINALIZER);
    let is_terminating = claim.metadata.is_terminating();
    let ends_use = is_unused && (!removed.is_empty() || is_terminating);
    // Without the finalizer, the scheduler has not allocated the claim.
    let deallocates = ends_use && has_finalizer && claim.is_allocated;
    let is_free = deallocates || !claim.is_allocated;
    // The scheduler sets the finalizer before it allocates: a claim with the finalizer alone may be about to be allocated.
    let was_in_use = ends_use || around.is_releasing && is_unused;
    Plan {
        deallocates,
        removes_finalizer: has_finalizer && is_free && was_in_use,
        deletes: is_unused && around.owner == Owner::Done && !is_terminating,
        removed,
    }
}

impl Plan {
    pub(super) const fn writes_status(&self) -> bool {
        !self.removed.is_empty() || self.deallocates
    }

    /// Explains the plan to operators.
    pub(super) fn explain(&self) -> String {
        let mut steps = Vec::new();
        match self.removed.len() {
            0 => {}
            1 => steps.push("removes the reservation of a consumer that does not use it any more".to_owned()),
            number => steps.push(format!("removes the reservations of {number} consumers that do not use it any more")),
        }
        let rest = [
            (self.deallocates, "deallocates the claim, which has no consumer"),
            (self.removes_finalizer, "removes the finalizer, as the claim is not allocated"),
            (self.deletes, "deletes the claim, whose pod will not run any more"),
        ];
        steps.extend(rest.into_iter().filter(|(happens, _)| *happens).map(|(_, step)| step.to_owned()));
        if steps.is_empty() { "keeps the claim and its reservations".to_owned() } else { steps.join(", ") }
    }
}
