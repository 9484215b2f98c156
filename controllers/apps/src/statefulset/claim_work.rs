//! What a pod needs of its claims: those to create, and those whose owner references change.

use std::sync::Arc;

use kcm_framework::api::Uid;
use kcm_framework::api::views::{PersistentVolumeClaim, Pod, PodVolumes, StatefulSet};

use super::identity::claim_name;
use super::observe::ClaimLister;
use super::retention::ClaimOwners;

/// The claims of one pod, and what has to be done about them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ClaimWork {
    /// The indexes of the claim templates whose claims are missing.
    pub(super) missing: Vec<usize>,
    /// The names of claims that are being deleted: the pod has to wait.
    pub(super) terminating: Vec<String>,
    /// The names of claims that cannot be decoded: nothing is known of them, and the pod has to wait.
    pub(super) undecodable: Vec<String>,
    /// The names of claims that another controller manages, of which an event tells.
    pub(super) conflicting: Vec<String>,
    /// The claims whose owner references are not as the retention policy wants them.
    pub(super) outdated: Vec<Arc<PersistentVolumeClaim>>,
}

impl ClaimWork {
    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The claims of a pod that exists, or of one to create.
#[derive(Clone, Copy)]
pub(super) struct PodClaims<'a> {
    set: &'a StatefulSet,
    ordinal: i64,
    owners: ClaimOwners<'a>,
    claims: &'a dyn ClaimLister,
}

impl<'a> PodClaims<'a> {
    /// The claims of the pod of that name, with its uid if it exists.
    pub(super) fn of(
        set: &'a StatefulSet,
        pod: &'a str,
        ordinal: i64,
        uid: Option<&'a Uid>,
        claims: &'a dyn ClaimLister,
    ) -> Self {
        Self { set, ordinal, owners: ClaimOwners::of(set, pod, ordinal, uid), claims }
    }

    fn find(self, template: &str) -> Option<Arc<PersistentVolumeClaim>> {
        self.claims.claim(self.namespace(), &self.name(template))
    }

    fn namespace(self) -> &'a str {
        self.set.metadata.key.namespace().unwrap_or_default()
    }

    fn name(self, template: &str) -> String {
        claim_name(template, self.set.metadata.key.name(), self.ordinal)
    }

    fn existing(self) -> impl Iterator<Item = Arc<PersistentVolumeClaim>> {
        self.set.claim_templates.iter().filter_map(move |template| self.find(template))
    }

    /// Whether a claim belongs to an earlier pod of the name, and is deleted with it.
    pub(super) fn is_stale(self) -> bool {
        self.existing().any(|claim| self.owners.is_stale(&claim.metadata))
    }

    /// Adds the claims that have to be created, or to vanish first.
    pub(super) fn creation(self, work: &mut ClaimWork) {
        for (index, template) in self.set.claim_templates.iter().enumerate() {
            match self.find(template) {
                None if self.claims.is_undecodable(self.namespace(), &self.name(template)) => {
                    work.undecodable.push(self.name(template));
                }
                None => work.missing.push(index),
                Some(claim) if claim.metadata.is_terminating() => {
                    work.terminating.push(claim.metadata.key.name().to_owned());
                }
                Some(_) => {}
            }
        }
    }

    /// Adds the claims whose owner references have to change.
    pub(super) fn retention(self, work: &mut ClaimWork) {
        for claim in self.existing() {
            if self.owners.has_other_controller(&claim.metadata) {
                work.conflicting.push(claim.metadata.key.name().to_owned());
            }
            if !self.owners.are_up_to_date(&claim.metadata) {
                work.outdated.push(claim);
            }
        }
    }

    /// The work on owner references alone, which is none if all are up to date: no event tells of conflicts then.
    pub(super) fn outdated_retention(self) -> ClaimWork {
        let mut work = ClaimWork::default();
        self.retention(&mut work);
        if work.outdated.is_empty() { ClaimWork::default() } else { work }
    }
}

/// The claim templates for which a pod does not have the volume.
///
/// # Upstream
/// `storageMatches`.
pub(super) fn missing_volumes(set: &StatefulSet, ordinal: i64, volumes: &PodVolumes) -> Vec<usize> {
    let has = |template: &str| {
        let claim = claim_name(template, set.metadata.key.name(), ordinal);
        let mut volumes = volumes.volumes.iter().filter(|volume| volume.name == template);
        volumes.any(|volume| volume.claim_name.as_deref() == Some(&*claim))
    };
    set.claim_templates.iter().enumerate().filter(|(_, template)| !has(template)).map(|(index, _)| index).collect()
}

/// The claims of an existing pod.
pub(super) fn claims_of<'a>(
    set: &'a StatefulSet,
    pod: &'a Pod,
    ordinal: i64,
    claims: &'a dyn ClaimLister,
) -> PodClaims<'a> {
    PodClaims::of(set, pod.metadata.key.name(), ordinal, Some(&pod.metadata.uid), claims)
}
