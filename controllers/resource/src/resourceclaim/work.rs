//! The Pods and groups that a reconcile has something to do for. Pure.

use kcm_framework::api::Meta;
use kcm_framework::api::views::{Pod, PodClaims, PodGroup, ResourceClaim};
use kcm_framework::informers::Lookup;

use crate::shared::{Entry, EntryClaim, is_for_pod, is_reserved_for};

/// The feature gates of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "gates are on or off")]
pub(super) struct Features {
    pub(super) admin_access: bool,
    pub(super) prioritized_list: bool,
    /// Pods may be members of groups.
    pub(super) groups: bool,
    /// Groups may have claims.
    pub(super) group_claims: bool,
}

impl Features {
    /// The group of the Pod, if claims may belong to it.
    pub(super) fn group_of(self, claims: &PodClaims) -> Option<&str> {
        claims.group.as_deref().filter(|_| self.group_claims)
    }
}

/// Returns `true` if no container of the Pod runs or will run.
pub(super) fn is_done(pod: &Pod) -> bool {
    pod.is_finished() || pod.metadata.is_terminating() && pod.node_name.is_none()
}

/// Returns `true` if the entry of the Pod is an entry of its group too, so that the claim is the claim of the group.
///
/// # Upstream
/// `BindTo` of `k8s.io/dynamic-resource-allocation/resourceclaim`.
pub(super) fn is_of_group(entry: Entry<'_>, group: &PodGroup) -> bool {
    group.claims.iter().any(|of_group| Entry::from(of_group) == entry)
}

/// Returns `true` if the claims of the Pod need something: a claim is not created or is missing, or is not reserved for
/// the Pod, which is scheduled.
///
/// A Pod that has finished needs no claim. Upstream reserves an allocated claim for it, and removes the reservation again.
pub(super) fn pod_has_work(
    pod: &Pod,
    claims: &PodClaims,
    features: Features,
    claim_of: impl Fn(&str) -> Lookup<ResourceClaim>,
    group_of: impl Fn(&str) -> Lookup<PodGroup>,
) -> bool {
    if pod.metadata.is_terminating() || pod.is_finished() {
        return false;
    }
    claims.entries.iter().any(|entry| {
        let entry = Entry::from(entry);
        let (name, is_generated) = match EntryClaim::of(entry, &claims.statuses) {
            EntryClaim::NotCreated | EntryClaim::Unsupported => return true,
            EntryClaim::NotNeeded => return false,
            EntryClaim::OfUser(name) => (name, false),
            EntryClaim::Generated(name) => (name, true),
        };
        match claim_of(name) {
            Lookup::Found(claim) => {
                let group = features.group_of(claims);
                let is_own = !is_generated || is_for_pod(&claim.metadata, pod, group);
                is_own && pod.node_name.is_some() && claim.is_allocated && !is_reserved_for(&claim, pod, group)
            }
            // The user creates it, or its group.
            Lookup::Absent => is_generated && !is_created_by_group(entry, claims, features, &group_of),
            // Its change examines the pod again.
            Lookup::Undecodable(_) => false,
        }
    })
}

fn is_created_by_group(
    entry: Entry<'_>,
    claims: &PodClaims,
    features: Features,
    group_of: impl Fn(&str) -> Lookup<PodGroup>,
) -> bool {
    let Some(group) = claims.group.as_deref().filter(|_| features.groups) else { return false };
    match group_of(group) {
        Lookup::Found(group) => is_of_group(entry, &group),
        // The reconcile reports it.
        Lookup::Absent => false,
        Lookup::Undecodable(_) => true,
    }
}

/// Returns `true` if a claim of the group is not created or is missing.
pub(super) fn group_has_work(group: &PodGroup, claim_of: impl Fn(&str) -> Lookup<ResourceClaim>) -> bool {
    if group.metadata.is_terminating() {
        return false;
    }
    group.claims.iter().any(|entry| match EntryClaim::of(entry.into(), &group.claim_statuses) {
        EntryClaim::NotCreated | EntryClaim::Unsupported => true,
        EntryClaim::NotNeeded | EntryClaim::OfUser(_) => false,
        EntryClaim::Generated(name) => match claim_of(name) {
            Lookup::Absent => true,
            Lookup::Found(_) | Lookup::Undecodable(_) => false,
        },
    })
}

/// Returns `true` if the claim was created for the group.
pub(super) fn is_for_group(claim: &Meta, group: &PodGroup) -> bool {
    claim.is_controlled_by(&group.metadata.uid)
}
