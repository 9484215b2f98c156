//! Which pods belong to a replica set: adoption and release.

use std::sync::Arc;

use kcm_api::Selector;
use kcm_api::views::{Pod, ReplicaSetView};

use super::KIND;
use super::observe::Observed;

/// What a replica set does about one active pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// The pod is its own, and counts.
    Keep,
    /// The pod is nobody's, and is to become its own.
    Adopt,
    /// The pod is its own, but not selected any more.
    Release,
    /// The pod is left as it is, and does not count.
    Leave(Why),
}

/// Why a pod is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Another controller has it.
    ControlledByAnother,
    /// It is nobody's, and the selector does not want it.
    NotSelected,
    /// The replica set is being deleted: it takes nothing new, and what it has is the garbage collector's business.
    OwnerTerminating,
    /// It is nobody's, and on its way out.
    PodTerminating,
}

/// Whether the controller reference of `pod` means this replica set.
///
/// By uid, and by kind, namespace and name as well: a reference that has just the uid right is nobody's.
pub(super) fn is_owned(owner: &ReplicaSetView, pod: &Pod) -> bool {
    pod.metadata.key.namespace() == owner.metadata.key.namespace()
        && pod.metadata.controller().is_some_and(|reference| {
            reference.uid == owner.metadata.uid
                && reference.kind == KIND
                && &*reference.name == owner.metadata.key.name()
        })
}

/// Decides about one active pod of the replica set's namespace.
pub(super) fn claim(owner: &ReplicaSetView, selector: &Selector, pod: &Pod) -> Claim {
    let selected = selector.matches(&pod.metadata.labels);
    let owner_terminating = owner.metadata.is_terminating();
    if is_owned(owner, pod) {
        return match (selected, owner_terminating) {
            (true, _) => Claim::Keep,
            (false, true) => Claim::Leave(Why::OwnerTerminating),
            (false, false) => Claim::Release,
        };
    }
    let why = if pod.metadata.controller().is_some() {
        Why::ControlledByAnother
    } else if !selected {
        Why::NotSelected
    } else if owner_terminating {
        Why::OwnerTerminating
    } else if pod.metadata.is_terminating() {
        Why::PodTerminating
    } else {
        return Claim::Adopt;
    };
    Claim::Leave(why)
}

/// The pods of a replica set, by what is to be done about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Claims {
    /// Active pods that are its own.
    pub(super) kept: Vec<Arc<Pod>>,
    /// Active pods to adopt, by name.
    pub(super) adopt: Vec<Arc<Pod>>,
    /// Active pods to release, by name.
    pub(super) release: Vec<Arc<Pod>>,
    /// How many pods of its own are on their way out; they are neither adopted nor released.
    pub(super) terminating: usize,
}

/// Decides about all pods observed.
pub(super) fn plan_claims(observed: &Observed, selector: &Selector) -> Claims {
    let owner = &observed.owner.view;
    let mut claims = Claims::default();
    for pod in &observed.pods {
        if pod.is_terminating() {
            let counts = is_owned(owner, pod) && selector.matches(&pod.metadata.labels);
            claims.terminating += usize::from(counts);
        } else if pod.is_active() {
            match claim(owner, selector, pod) {
                Claim::Keep => claims.kept.push(Arc::clone(pod)),
                Claim::Adopt => claims.adopt.push(Arc::clone(pod)),
                Claim::Release => claims.release.push(Arc::clone(pod)),
                Claim::Leave(_) => {}
            }
        }
    }
    // Caches list in no order, and writes are to be made in one.
    for pods in [&mut claims.adopt, &mut claims.release] {
        pods.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
    }
    claims
}
