//! The plan for a volume. Pure.

use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim, ReclaimPolicy, VolumePhase};

use super::plugins::{Actor, NoPlugin, Plugin, deleter};
use super::vocabulary::{Annotations, MIGRATED_TO, PROVISIONED_BY, has_claim_uid};

/// The claim that a volume references.
#[derive(Debug, Clone, Copy)]
pub(super) enum ClaimOf<'a> {
    /// The claim that has the uid of the reference.
    Found(&'a PersistentVolumeClaim),
    /// The cache does not show it. It may be younger than the cache.
    NotCached,
    /// A live read does not show it, or shows another claim of the name.
    Deleted,
}

/// The plan for a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VolumePlan {
    /// The phase becomes `Available`.
    Available,
    /// The phase becomes `Bound`.
    Bound,
    /// The claim binds the volume, or has chosen another one.
    AskClaim,
    /// The claim never binds the volume, because the volume modes differ.
    ModeMismatch,
    /// Nothing is done before a live read of the claim.
    ReadClaim,
    /// The phase becomes `Released`, and the volume is reclaimed.
    Release,
    /// The claim is bound to another volume, and this volume becomes available again.
    Unbind,
}

/// Plans for a volume.
///
/// # Upstream
/// `syncVolume`
pub(super) fn plan(volume: &PersistentVolume, claim: ClaimOf<'_>) -> VolumePlan {
    if !has_claim_uid(volume) {
        return VolumePlan::Available;
    }
    let claim = match claim {
        ClaimOf::Found(claim) => claim,
        ClaimOf::NotCached if is_released(volume) => return VolumePlan::Release,
        ClaimOf::NotCached => return VolumePlan::ReadClaim,
        ClaimOf::Deleted => return VolumePlan::Release,
    };
    if claim.volume_name.is_empty() {
        if claim.volume_mode == volume.volume_mode { VolumePlan::AskClaim } else { VolumePlan::ModeMismatch }
    } else if *claim.volume_name == *volume.metadata.key.name() {
        VolumePlan::Bound
    } else if volume.reclaim_policy == ReclaimPolicy::Delete && volume.annotation(PROVISIONED_BY).is_some() {
        VolumePlan::Release
    } else {
        VolumePlan::Unbind
    }
}

/// Returns `true` if the phase says that the volume has lost its claim.
pub(super) fn is_released(volume: &PersistentVolume) -> bool {
    matches!(volume.phase, VolumePhase::Released | VolumePhase::Failed)
}

impl VolumePlan {
    /// Returns the decision in a sentence.
    pub(super) const fn explain(self) -> &'static str {
        match self {
            Self::Available => "is available: no claim is bound to it",
            Self::Bound => "is bound: its claim names it",
            Self::AskClaim => "leaves the binding to its claim, which names no volume yet",
            Self::ModeMismatch => "is never bound: the volume mode of its claim differs",
            Self::ReadClaim => "reads its claim, which the cache does not show",
            Self::Release => "is released: its claim was deleted, or is bound to another volume",
            Self::Unbind => "becomes available: its claim is bound to another volume",
        }
    }
}

/// The plan for a released volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reclaim {
    Retain,
    /// An external component deletes it.
    External,
    /// The policy is unknown.
    UnknownPolicy,
    /// The directory of the host is deleted, and then the volume.
    Delete,
    /// Nothing here can delete its storage.
    NoDeleter(NoPlugin),
    /// A Pod empties the volume.
    Recycle(Plugin),
    /// Nothing here can empty it.
    NoRecycler,
}

/// Plans for a released volume.
///
/// # Upstream
/// `reclaimVolume`
pub(super) fn reclaim(volume: &PersistentVolume) -> Reclaim {
    let annotations = Annotations::of(&volume.document);
    if annotations.filled(MIGRATED_TO).is_some() {
        return Reclaim::External;
    }
    match volume.reclaim_policy {
        ReclaimPolicy::Retain => Reclaim::Retain,
        ReclaimPolicy::Delete => match deleter(volume, &annotations) {
            Ok(Actor::HostPath) => Reclaim::Delete,
            Ok(Actor::External(_)) => Reclaim::External,
            Err(error) => Reclaim::NoDeleter(error),
        },
        ReclaimPolicy::Recycle => Plugin::of_source(volume).map_or(Reclaim::NoRecycler, Reclaim::Recycle),
        ReclaimPolicy::Other => Reclaim::UnknownPolicy,
    }
}

impl Reclaim {
    /// Returns the decision in a sentence.
    pub(super) const fn explain(&self) -> &'static str {
        match self {
            Self::Retain => "keeps it: its policy is Retain",
            Self::External => "leaves it to the component that provisioned it",
            Self::UnknownPolicy => "keeps it: its policy is unknown",
            Self::Delete => "deletes its directory and the volume",
            Self::NoDeleter(_) => "keeps it: no plugin can delete its storage",
            Self::Recycle(_) => "has a pod empty it",
            Self::NoRecycler => "keeps it: no plugin can empty it",
        }
    }
}
