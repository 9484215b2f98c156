//! The plan for a claim: the next write. Pure.

use kcm_framework::api::ConditionStatus;
use kcm_framework::api::views::{ClaimPhase, PersistentVolumeClaim};

use super::usage::{PodUse, keeps, occupies};
use crate::shared::protection::{self, Protection};

pub(super) const FINALIZER: &str = "kubernetes.io/pvc-protection";

/// The next write for a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// Leaves finalizer and condition as they are.
    Keep(KeepReason),
    /// Adds the finalizer, which the claim lacks.
    AddFinalizer,
    /// Sets the condition `Unused` to false.
    SetUsed,
    /// Sets the condition `Unused` to true, if a live list of Pods agrees.
    SetUnused,
    /// Removes the finalizer, if a live list of Pods agrees.
    RemoveFinalizer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeepReason {
    /// Finalizer and condition are as they must be.
    UpToDate,
    /// The claim is terminating, and a Pod uses it.
    InUse,
}

/// Plans for a claim, with the Pods that name it. `records_use` is the gate of the condition.
///
/// The finalizer comes first: until it is there, the claim could be deleted while a Pod uses it.
pub(super) fn plan<'a>(
    claim: &PersistentVolumeClaim,
    pods: &(impl Iterator<Item = PodUse<'a>> + Clone),
    records_use: bool,
) -> Plan {
    match protection::plan(&claim.metadata, FINALIZER, || pods.clone().any(|pod| keeps(pod, claim))) {
        Protection::Add => return Plan::AddFinalizer,
        Protection::Remove => return Plan::RemoveFinalizer,
        Protection::InUse => return Plan::Keep(KeepReason::InUse),
        Protection::Keep => {}
    }
    // The binder writes the status of other claims.
    if !records_use || claim.metadata.is_terminating() || claim.phase != ClaimPhase::Bound {
        return Plan::Keep(KeepReason::UpToDate);
    }
    let is_used = pods.clone().any(|pod| occupies(pod, claim));
    match (is_used, claim.unused) {
        (true, None | Some(ConditionStatus::True)) => Plan::SetUsed,
        (false, None | Some(ConditionStatus::False | ConditionStatus::Unknown)) => Plan::SetUnused,
        (true, Some(ConditionStatus::False | ConditionStatus::Unknown)) | (false, Some(ConditionStatus::True)) => {
            Plan::Keep(KeepReason::UpToDate)
        }
    }
}

impl Plan {
    /// Returns `true` if Pods that the cache does not show yet could make this plan wrong.
    pub(super) const fn needs_live_pods(self) -> bool {
        match self {
            Self::SetUnused | Self::RemoveFinalizer => true,
            Self::Keep(_) | Self::AddFinalizer | Self::SetUsed => false,
        }
    }

    /// Explains the plan to operators.
    pub(super) const fn explain(self) -> &'static str {
        match self {
            Self::Keep(KeepReason::UpToDate) => "leaves finalizer and condition as they are",
            Self::Keep(KeepReason::InUse) => "keeps the finalizer of the terminating claim, which a pod uses",
            Self::AddFinalizer => "adds the finalizer, which the claim lacks",
            Self::SetUsed => "sets the condition Unused to false: a pod uses the claim",
            Self::SetUnused => "sets the condition Unused to true: no pod uses the claim",
            Self::RemoveFinalizer => "removes the finalizer of the terminating claim, which no pod uses",
        }
    }
}
