//! Persistent volume claims, and the storage that they request, by storage class too.

use std::collections::BTreeSet;

use kcm_framework::api::ResourceQuantity;
use kcm_framework::api::views::{PersistentVolumeClaim, ScopeOperator};

use super::scopes::Requirement;
use crate::resourcequota::settings::Gates;

/// A constraint for which claims count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::resourcequota) enum VolumeClaimConstraint<'a> {
    /// All claims, or those of a storage class.
    Objects(Option<&'a str>),
    /// The storage that they request.
    Storage(Option<&'a str>),
}

impl<'a> VolumeClaimConstraint<'a> {
    pub(in crate::resourcequota) fn parse(constraint: &'a str) -> Option<Self> {
        const BY_CLASS: &str = ".storageclass.storage.k8s.io/";
        let (class, resource) = match constraint.rsplit_once(BY_CLASS) {
            Some((class, resource)) => (Some(class), resource),
            None => (None, constraint),
        };
        match (resource, class) {
            ("count/persistentvolumeclaims", None) => Some(Self::Objects(None)),
            ("persistentvolumeclaims", class) => Some(Self::Objects(class)),
            ("requests.storage", class) => Some(Self::Storage(class)),
            _ => None,
        }
    }

    const fn class(self) -> Option<&'a str> {
        match self {
            Self::Objects(class) | Self::Storage(class) => class,
        }
    }
}

/// What a claim adds to the usage of a constraint.
pub(in crate::resourcequota) fn usage(
    claim: &PersistentVolumeClaim,
    constraint: VolumeClaimConstraint<'_>,
    gates: Gates,
) -> ResourceQuantity {
    if constraint.class().is_some_and(|class| claim.storage_class() != Some(class)) {
        return ResourceQuantity::default();
    }
    match constraint {
        VolumeClaimConstraint::Objects(_) => ResourceQuantity::whole(1),
        VolumeClaimConstraint::Storage(_) => storage(claim, gates),
    }
}

/// The storage that a claim requests, in whole bytes, or what it was allocated for an expansion where that is more.
fn storage(claim: &PersistentVolumeClaim, gates: Gates) -> ResourceQuantity {
    let Some(requested) = claim.requests.get("storage") else { return ResourceQuantity::default() };
    let requested = requested.round_up();
    let allocated = claim.allocated_resources.get("storage").filter(|_| gates.recover_volume_expansion);
    allocated.filter(|allocated| *allocated > requested).map_or(requested, ResourceQuantity::round_up)
}

/// Whether a claim is in a scope.
pub(in crate::resourcequota) fn is_in(claim: &PersistentVolumeClaim, scope: &Requirement<'_>, gates: Gates) -> bool {
    if scope.name != "VolumeAttributesClass" || !gates.volume_attributes_class {
        return false;
    }
    let mut classes = claim.volume_attributes_classes().peekable();
    if classes.peek().is_none() {
        return scope.operator != ScopeOperator::Exists && scope.matches(None);
    }
    classes.any(|class| scope.matches(Some(class)))
}

fn classes(claim: &PersistentVolumeClaim) -> BTreeSet<&str> {
    claim.volume_attributes_classes().collect()
}

/// Whether an update may free what a quota counts: the size of the claim or its volume attributes classes have changed.
pub(in crate::resourcequota) fn replenishes(
    old: &PersistentVolumeClaim,
    new: &PersistentVolumeClaim,
    gates: Gates,
) -> bool {
    storage(old, gates) != storage(new, gates) || (gates.volume_attributes_class && classes(old) != classes(new))
}
