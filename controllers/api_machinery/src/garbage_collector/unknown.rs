//! Dependents that may exist and are not in the graph: the decisions that wait for them, and for how long. Pure.
//!
//! A decision that goes on too early costs differently. A foreground deletion deletes such a dependent after its owner
//! instead of before it. Orphaning deletes a dependent that the user asked to keep.

use std::collections::BTreeMap;
use std::time::Duration;

use kcm_framework::api::{InternedStr, ObjectKey, OwnerReference, Resource, Uid};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::graph::Identity;

/// Time for which a foreground deletion waits for a resource that cannot be listed, and every decision for a group that has
/// not been discovered since the start. After it a wait is reported on the owner.
///
/// # Upstream
/// `initialSyncTimeout`, for which only the start of the garbage collector waits.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The decision that needs to know all dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Removes the finalizer of an owner that is deleted in the foreground.
    EndForegroundDeletion,
    /// Removes the references of dependents, and the finalizer of their owner.
    Orphan,
}

/// The part of the cluster whose objects are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Gap {
    /// Discovery is not complete yet.
    Undiscovered,
    /// The discovery of a version of a group has failed since the start of this process.
    Group {
        group_version: String,
        /// Time since the start.
        since: Duration,
    },
    /// A resource cannot be listed.
    Resource {
        resource: Resource,
        /// Time since discovery found it.
        since: Duration,
    },
    /// An object cannot be decoded.
    Object {
        resource: Resource,
        key: ObjectKey,
        /// Its owners; `None` if its metadata cannot be decoded either.
        owners: Option<Vec<OwnerReference>>,
    },
}

/// The effect of unknown dependents on a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All dependents are known.
    Known,
    /// The decision waits, for this reason.
    Wait(String),
    /// The decision does not wait any longer, although this reason holds.
    GoOn(String),
}

impl Gap {
    /// Returns the reason if the gap may hide a dependent of `owner` that counts for the decision.
    fn reason(&self, owner: &Identity, decision: Decision) -> Option<String> {
        match self {
            Self::Undiscovered => Some("no resource is listed yet".to_owned()),
            Self::Group { group_version, .. } => Some(format!("{group_version} has not been discovered")),
            Self::Resource { resource, .. } => {
                may_hold(resource, owner.namespace.as_ref(), None).then(|| format!("{resource} cannot be listed"))
            }
            Self::Object { resource, key, owners } => {
                let counts = |reference: &OwnerReference| {
                    reference.uid == owner.uid
                        && match decision {
                            Decision::EndForegroundDeletion => reference.block_owner_deletion,
                            Decision::Orphan => true,
                        }
                };
                let is_dependent = owners.as_ref().is_none_or(|owners| owners.iter().any(counts));
                (is_dependent && may_hold(resource, owner.namespace.as_ref(), Some(key)))
                    .then(|| format!("{resource} {key:?} cannot be decoded"))
            }
        }
    }

    /// Returns `true` if a decision that has waited for `waited` goes on.
    fn is_over(&self, decision: Decision, waited: Duration) -> bool {
        match (self, decision) {
            (Self::Group { since, .. }, _) | (Self::Resource { since, .. }, Decision::EndForegroundDeletion) => {
                *since >= PATIENCE
            }
            // It may be no dependent at all.
            (Self::Object { owners: None, .. }, Decision::EndForegroundDeletion) => waited >= PATIENCE,
            (Self::Object { owners: Some(_), .. }, Decision::EndForegroundDeletion)
            | (Self::Resource { .. } | Self::Object { .. }, Decision::Orphan)
            | (Self::Undiscovered, _) => false,
        }
    }
}

/// Returns `true` if an object of a resource may depend on an owner in `namespace`. Dependents of a namespaced owner are in
/// its namespace.
fn may_hold(resource: &Resource, namespace: Option<&InternedStr>, key: Option<&ObjectKey>) -> bool {
    namespace.is_none_or(|namespace| resource.namespaced && key.is_none_or(|key| key.namespace() == Some(&**namespace)))
}

/// Decides by all gaps. A reason to wait counts before a reason that does not hold any longer.
pub(super) fn verdict(gaps: &[Gap], owner: &Identity, decision: Decision, waited: Duration) -> Verdict {
    let mut passed = None;
    for gap in gaps {
        let Some(reason) = gap.reason(owner, decision) else { continue };
        if !gap.is_over(decision, waited) {
            return Verdict::Wait(reason);
        }
        passed.get_or_insert(reason);
    }
    passed.map_or(Verdict::Known, Verdict::GoOn)
}

/// The owners that wait, each since when, and if that was reported.
#[derive(Debug, Default)]
pub(super) struct Waits(Mutex<BTreeMap<Uid, Wait>>);

#[derive(Debug)]
struct Wait {
    since: Instant,
    is_reported: bool,
}

impl Waits {
    /// Returns the time for which an owner has waited.
    pub(super) fn waited(&self, owner: &Uid, now: Instant) -> Duration {
        self.0.lock().get(owner).map_or(Duration::ZERO, |wait| now.saturating_duration_since(wait.since))
    }

    /// Sets that an owner waits. Returns `true` once, when it has waited for [`PATIENCE`].
    pub(super) fn wait(&self, owner: &Uid, now: Instant) -> bool {
        let mut waits = self.0.lock();
        let wait = waits.entry(owner.clone()).or_insert(Wait { since: now, is_reported: false });
        let is_due = !wait.is_reported && now.saturating_duration_since(wait.since) >= PATIENCE;
        wait.is_reported |= is_due;
        is_due
    }

    /// Ends the wait of an owner.
    pub(super) fn end(&self, owner: &Uid) {
        self.0.lock().remove(owner);
    }
}
