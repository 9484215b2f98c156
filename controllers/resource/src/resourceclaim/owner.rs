//! The Pod or the group for which claims are created.

use std::collections::BTreeMap;

use kcm_framework::Session;
use kcm_framework::api::views::{ClaimEntryStatus, Pod, PodClaims, PodGroup};
use kcm_framework::api::{KnownView as _, Meta, OwnerReference, Resource};

use super::error::EntryError;
use super::events::FailedCreation;
use super::work::{Features, is_for_group, is_of_group};
use crate::shared::{Entry, is_for_pod};

#[derive(Debug, Clone, Copy)]
pub(super) enum Owner<'a> {
    Pod { pod: &'a Pod, claims: &'a PodClaims, group: Option<&'a PodGroup> },
    Group(&'a PodGroup),
}

impl<'a> Owner<'a> {
    pub(super) const fn resource(self) -> &'static Resource {
        match self {
            Self::Pod { .. } => const { &Pod::RESOURCE },
            Self::Group(_) => const { &PodGroup::RESOURCE },
        }
    }

    pub(super) const fn metadata(self) -> &'a Meta {
        match self {
            Self::Pod { pod, .. } => &pod.metadata,
            Self::Group(group) => &group.metadata,
        }
    }

    pub(super) fn entries(self) -> Vec<Entry<'a>> {
        match self {
            Self::Pod { claims, .. } => claims.entries.iter().map(Entry::from).collect(),
            Self::Group(group) => group.claims.iter().map(Entry::from).collect(),
        }
    }

    pub(super) fn statuses(self) -> &'a [ClaimEntryStatus] {
        match self {
            Self::Pod { claims, .. } => &claims.statuses,
            Self::Group(group) => &group.claim_statuses,
        }
    }

    /// The group of the Pod, if the entry is an entry of the group too.
    pub(super) fn group_of(self, entry: Entry<'_>) -> Option<&'a PodGroup> {
        match self {
            Self::Pod { group, .. } => group.filter(|group| is_of_group(entry, group)),
            Self::Group(_) => None,
        }
    }

    /// Returns `true` if the claim was created for the owner.
    pub(super) fn has_created(self, claim: &Meta, features: Features) -> bool {
        match self {
            Self::Pod { pod, claims, .. } => is_for_pod(claim, pod, features.group_of(claims)),
            Self::Group(group) => is_for_group(claim, group),
        }
    }

    /// The controller reference of the claims, without `blockOwnerDeletion`.
    pub(super) fn reference(self) -> OwnerReference {
        let Meta { key, uid, .. } = self.metadata();
        let blocking = OwnerReference::controller_of(self.resource(), key.name(), uid);
        OwnerReference { block_owner_deletion: false, ..blocking }
    }

    /// The entries of the status, sorted by name: the entries that have a claim already, and new ones.
    pub(super) fn merged_statuses<'b>(self, new: &'b BTreeMap<&'b str, String>) -> Vec<(&'b str, &'b str)>
    where
        'a: 'b,
    {
        let known = self.statuses().iter().filter_map(|status| Some((&*status.name, status.claim.as_deref()?)));
        let mut merged: BTreeMap<&str, &str> = known.collect();
        merged.extend(new.iter().map(|(entry, claim)| (*entry, claim.as_str())));
        merged.into_iter().collect()
    }

    pub(super) fn record_failure(self, session: &Session, entry: &str, error: &EntryError) {
        match self {
            Self::Pod { pod, .. } => session.record(pod, &FailedCreation::OfPod { entry, error }),
            Self::Group(group) => session.record(group, &FailedCreation::OfGroup { entry, error }),
        }
    }

    /// The kind as errors name it.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Pod { .. } => "pod",
            Self::Group(_) => "PodGroup",
        }
    }
}
