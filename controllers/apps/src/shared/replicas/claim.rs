//! The claims of an object on pods.

use kcm_framework::api::Selector;
use kcm_framework::api::views::Pod;
use kcm_framework::ownership::{Claims, Owner};

use super::observe::Observed;
use super::owner::ReplicaOwner;

/// The claims on the observed pods.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PodClaims {
    /// The claims on active pods.
    pub(super) active: Claims<Pod>,
    /// The number of its own terminating pods, which are neither adopted nor released.
    pub(super) terminating: usize,
}

/// Decides on all observed pods.
pub(super) fn plan_claims<V: ReplicaOwner>(observed: &Observed<V>, selector: &Selector) -> PodClaims {
    let owner = Owner::of(&*observed.owner);
    let counts = |pod: &Pod| owner.owns(&pod.metadata) && selector.matches(&pod.metadata.labels);
    PodClaims {
        active: Claims::of(owner, selector, observed.pods.iter().filter(|pod| pod.is_active())),
        terminating: observed.pods.iter().filter(|pod| pod.is_terminating() && counts(pod)).count(),
    }
}
