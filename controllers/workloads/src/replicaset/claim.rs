//! Which pods belong to a replica set.

use kcm_api::Selector;
use kcm_api::views::Pod;

use super::observe::Observed;
use crate::shared::claim::Claims;
use crate::shared::ownership::Owner;

/// The pods of a replica set.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PodClaims {
    /// Active pods, by what is to be done about them.
    pub(super) active: Claims<Pod>,
    /// How many pods of its own are on their way out; they are neither adopted nor released.
    pub(super) terminating: usize,
}

/// Decides about all pods observed.
pub(super) fn plan_claims(observed: &Observed, selector: &Selector) -> PodClaims {
    let owner = Owner::of(&*observed.owner);
    let counts = |pod: &Pod| owner.owns(&pod.metadata) && selector.matches(&pod.metadata.labels);
    PodClaims {
        active: Claims::of(owner, selector, observed.pods.iter().filter(|pod| pod.is_active())),
        terminating: observed.pods.iter().filter(|pod| pod.is_terminating() && counts(pod)).count(),
    }
}
