//! The claims that a Pod or a group of Pods uses. Pure.

use kcm_framework::api::views::{ClaimEntry, ClaimEntryStatus, GroupClaimEntry, Pod, PodClaims, ResourceClaim};
use kcm_framework::api::{InternedStr, Meta, ObjectKey, OwnerReference};

/// The API group of groups of Pods.
pub(crate) const SCHEDULING: &str = "scheduling.k8s.io";

/// An entry of `spec.resourceClaims` of a Pod or a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a InternedStr,
    /// The claim that the user creates.
    pub(crate) claim: Option<&'a InternedStr>,
    /// The template of a claim that is created for the Pod or the group.
    pub(crate) template: Option<&'a InternedStr>,
}

impl<'a> From<&'a ClaimEntry> for Entry<'a> {
    fn from(entry: &'a ClaimEntry) -> Self {
        Self { name: &entry.name, claim: entry.claim.as_ref(), template: entry.template.as_ref() }
    }
}

impl<'a> From<&'a GroupClaimEntry> for Entry<'a> {
    fn from(entry: &'a GroupClaimEntry) -> Self {
        Self { name: &entry.name, claim: entry.claim.as_ref(), template: entry.template.as_ref() }
    }
}

/// The claim of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryClaim<'a> {
    /// The user creates the claim of that name.
    OfUser(&'a str),
    /// The claim of that name was created from the template.
    Generated(&'a str),
    /// The status does not name a claim yet.
    NotCreated,
    /// The status says that no claim is needed.
    NotNeeded,
    /// The entry has neither a claim nor a template: a field of a later version.
    Unsupported,
}

impl<'a> EntryClaim<'a> {
    /// # Upstream
    /// `Name` of `k8s.io/dynamic-resource-allocation/resourceclaim`.
    pub(crate) fn of(entry: Entry<'a>, statuses: &'a [ClaimEntryStatus]) -> Self {
        if let Some(claim) = entry.claim {
            return Self::OfUser(claim);
        }
        if entry.template.is_none() {
            return Self::Unsupported;
        }
        match statuses.iter().find(|status| status.name == *entry.name) {
            None => Self::NotCreated,
            Some(status) => match status.claim.as_deref() {
                None => Self::NotNeeded,
                Some("") => Self::NotCreated,
                Some(claim) => Self::Generated(claim),
            },
        }
    }

    /// Returns the name of the claim, and `true` if the claim was created for the Pod or the group.
    pub(crate) const fn named(self) -> Option<(&'a str, bool)> {
        match self {
            Self::OfUser(claim) => Some((claim, false)),
            Self::Generated(claim) => Some((claim, true)),
            Self::NotCreated | Self::NotNeeded | Self::Unsupported => None,
        }
    }
}

/// Returns the names of the claims that a Pod uses, each with `true` if the claim was created for the Pod. The claim of
/// its extended resources is the last.
///
/// # Upstream
/// `PodClaims` of `k8s.io/dynamic-resource-allocation/resourceclaim`.
pub(crate) fn used_claims(claims: &PodClaims) -> impl Iterator<Item = (&str, bool)> {
    let named = claims.entries.iter().filter_map(|entry| EntryClaim::of(entry.into(), &claims.statuses).named());
    named.chain(claims.extended.as_deref().map(|extended| (extended, true)))
}

/// Returns the owner reference of the group that controls the claim.
fn controlling_group(claim: &Meta) -> Option<&OwnerReference> {
    // The version may change.
    let is_group = |owner: &&OwnerReference| {
        &*owner.kind == "PodGroup" && owner.api_version.split_once('/').is_some_and(|(group, _)| group == SCHEDULING)
    };
    claim.controller().filter(is_group)
}

/// Returns `true` if the claim was created for the Pod, or for its group if `group` names one.
///
/// A Pod does not know the uid of its group.
///
/// # Upstream
/// `IsForPod` of `k8s.io/dynamic-resource-allocation/resourceclaim`.
pub(crate) fn is_for_pod(claim: &Meta, pod: &Pod, group: Option<&str>) -> bool {
    let is_of_group = |group: &str| controlling_group(claim).is_some_and(|owner| &*owner.name == group);
    claim.is_controlled_by(&pod.metadata.uid) || group.is_some_and(is_of_group)
}

/// Returns `true` if the claim is reserved for the Pod, or for its group if `group` names one.
///
/// # Upstream
/// `IsReservedForPod` of `k8s.io/dynamic-resource-allocation/resourceclaim`.
pub(crate) fn is_reserved_for(claim: &ResourceClaim, pod: &Pod, group: Option<&str>) -> bool {
    claim.reserved_for.iter().any(|consumer| {
        let is_group = &*consumer.api_group == SCHEDULING && &*consumer.resource == "podgroups";
        consumer.uid == pod.metadata.uid || is_group && group == Some(&*consumer.name)
    })
}

/// The key of an object in the namespace of another object.
pub(crate) fn beside(object: &ObjectKey, name: &str) -> ObjectKey {
    match object.shared_namespace() {
        Some(namespace) => ObjectKey::namespaced(namespace.clone(), name),
        None => ObjectKey::cluster_scoped(name),
    }
}
