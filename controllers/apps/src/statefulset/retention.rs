//! The owner references of claims, which make the garbage collector delete them as the retention policy says.
//!
//! | `whenScaled` | `whenDeleted` | owner of the claim of a pod in the range of ordinals | … of a surplus pod |
//! | --- | --- | --- | --- |
//! | Retain | Retain | none | none |
//! | Retain | Delete | the stateful set | the stateful set |
//! | Delete | Retain | none | the pod |
//! | Delete | Delete | the stateful set | the pod |
//!
//! # Upstream
//! `isClaimOwnerUpToDate` and `updateClaimOwnerRefForSetAndPod` in `stateful_set_utils.go`.

use kcm_framework::api::views::{ClaimRetention, Pod, StatefulSet};
use kcm_framework::api::{Document, EditError, KnownView as _, Meta, OwnerReference, Resource, Uid};

use super::identity::Ordinals;

const OWNER_REFERENCES: [&str; 2] = ["metadata", "ownerReferences"];

/// A pod of a stateful set, as the owner of claims.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClaimOwners<'a> {
    set: &'a StatefulSet,
    pod: &'a str,
    /// The uid of the pod; absent before it is created.
    pod_uid: Option<&'a Uid>,
    is_in_range: bool,
}

/// Whether the stateful set, and whether the pod, is an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owned {
    by_set: bool,
    by_pod: bool,
}

impl<'a> ClaimOwners<'a> {
    /// The owners of the claims of a pod of that name and ordinal.
    pub(super) fn of(set: &'a StatefulSet, pod: &'a str, ordinal: i64, pod_uid: Option<&'a Uid>) -> Self {
        Self { set, pod, pod_uid, is_in_range: Ordinals::of(set).contain(ordinal) }
    }

    fn wanted(self) -> Owned {
        use ClaimRetention::{Delete, Retain};
        let (by_set, by_pod) = match (self.set.claims_when_scaled, self.set.claims_when_deleted) {
            (Retain, Retain) => (false, false),
            (Retain, Delete) => (true, false),
            (Delete, Retain) => (false, !self.is_in_range),
            (Delete, Delete) => (self.is_in_range, !self.is_in_range),
        };
        Owned { by_set, by_pod }
    }

    /// Whether the claim has a reference to an earlier pod of that name, so that it is deleted soon: the new pod must
    /// wait for that.
    pub(super) fn is_stale(self, claim: &Meta) -> bool {
        self.set.claims_when_scaled == ClaimRetention::Delete && self.refers_to_earlier_pod(claim)
    }

    fn refers_to_earlier_pod(self, claim: &Meta) -> bool {
        let first = claim.owner_references.iter().find(|reference| self.is_pod(reference));
        first.is_some_and(|reference| Some(&reference.uid) != self.pod_uid)
    }

    fn refers_to_earlier_set(self, claim: &Meta) -> bool {
        let first = claim.owner_references.iter().find(|reference| self.is_set(reference));
        first.is_some_and(|reference| reference.uid != self.set.metadata.uid)
    }

    /// Whether another controller manages the claim, although the retention policy deletes claims.
    pub(super) fn has_other_controller(self, claim: &Meta) -> bool {
        use ClaimRetention::Retain;
        if (self.set.claims_when_scaled, self.set.claims_when_deleted) == (Retain, Retain) {
            return false;
        }
        claim.owner_references.iter().any(|reference| {
            if self.is_set(reference) {
                reference.uid != self.set.metadata.uid
            } else if self.is_pod(reference) {
                Some(&reference.uid) != self.pod_uid
            } else {
                reference.controller
            }
        })
    }

    /// Whether the owner references of the claim are as the retention policy wants them, or are left alone: those to
    /// an earlier stateful set or pod of the same name, which the garbage collector judges.
    pub(super) fn are_up_to_date(self, claim: &Meta) -> bool {
        if self.refers_to_earlier_set(claim) || self.refers_to_earlier_pod(claim) {
            return true;
        }
        let owns = |uid: Option<&Uid>| claim.owner_references.iter().any(|reference| Some(&reference.uid) == uid);
        let owned = Owned { by_set: owns(Some(&self.set.metadata.uid)), by_pod: owns(self.pod_uid) };
        if self.has_other_controller(claim) {
            return owned == Owned { by_set: false, by_pod: false };
        }
        !self.own_without_control(claim) && owned == self.wanted()
    }

    /// Returns `true` if the stateful set or the pod is an owner of the claim that does not control it.
    pub(super) fn own_without_control(self, claim: &Meta) -> bool {
        let is_ours =
            |reference: &OwnerReference| reference.uid == self.set.metadata.uid || Some(&reference.uid) == self.pod_uid;
        claim.owner_references.iter().any(|reference| is_ours(reference) && !reference.controller)
    }

    /// The owner reference of a new claim, so that it needs no second write; absent where the policy retains it.
    pub(super) fn of_new_claim(self) -> Option<OwnerReference> {
        self.wanted().by_set.then(|| self.set_reference())
    }

    /// The whole claim with the owner references that the policy wants; others stay as they are.
    ///
    /// # Errors
    /// Owner references that are no list; the API server returns none.
    pub(super) fn update(self, claim: &Meta, document: &Document) -> Result<Document, EditError> {
        let mut updated = document.clone();
        let items = document.items(&OWNER_REFERENCES)?;
        let is_other = |(reference, _): &(&OwnerReference, _)| !self.is_set(reference) && !self.is_pod(reference);
        let mut kept: Vec<_> =
            claim.owner_references.iter().zip(items).filter(is_other).map(|(_, item)| item.to_owned()).collect();
        if !self.has_other_controller(claim) {
            let wanted = self.wanted();
            let set = wanted.by_set.then(|| self.set_reference());
            let pod = self.pod_uid.filter(|_| wanted.by_pod);
            let pod = pod.map(|uid| OwnerReference::controller_of(const { &Pod::RESOURCE }, self.pod, uid));
            for reference in set.into_iter().chain(pod) {
                let item = serde_json::value::to_raw_value(&reference);
                kept.push(item.map_err(|source| EditError::Value { path: OWNER_REFERENCES.join("."), source })?);
            }
        }
        if kept.is_empty() {
            updated.remove(&OWNER_REFERENCES)?;
        } else {
            updated.set(&OWNER_REFERENCES, &kept)?;
        }
        Ok(updated)
    }

    fn set_reference(self) -> OwnerReference {
        let meta = &self.set.metadata;
        OwnerReference::controller_of(const { &StatefulSet::RESOURCE }, meta.key.name(), &meta.uid)
    }

    fn is_set(self, reference: &OwnerReference) -> bool {
        names(reference, const { &StatefulSet::RESOURCE }, self.set.metadata.key.name())
    }

    fn is_pod(self, reference: &OwnerReference) -> bool {
        names(reference, const { &Pod::RESOURCE }, self.pod)
    }
}

fn names(reference: &OwnerReference, resource: &Resource, name: &str) -> bool {
    *reference.api_version == *resource.api_version() && *reference.kind == *resource.kind && *reference.name == *name
}
