//! The snapshot of the pods and the revisions of a `StatefulSet`, from the caches.

use std::sync::Arc;

use kcm_framework::api::views::{ControllerRevision, PersistentVolumeClaim, Pod, StatefulSet};
use kcm_framework::api::{KnownView, ObjectKey, Selector};
use kcm_framework::informers::Informer;
use kcm_framework::ownership::{Claims, Dependents, Owner};

use super::identity::is_member;

/// The snapshot of one `StatefulSet`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed<'a> {
    set: &'a StatefulSet,
    /// The pods that the `StatefulSet` controls, and the orphans of its namespace that it selects; in no order.
    pods: Vec<Arc<Pod>>,
    /// The revisions that the `StatefulSet` controls, and the orphans of its namespace that it selects; in no order.
    revisions: Vec<Arc<ControllerRevision>>,
}

/// The caches that the controller reads.
pub(super) struct Caches {
    pods: Dependents<Pod>,
    revisions: Dependents<ControllerRevision>,
    pub(super) claims: Informer<PersistentVolumeClaim>,
}

impl Caches {
    /// Adds the indexes by owner.
    pub(super) fn new(
        pods: &Informer<Pod>,
        revisions: &Informer<ControllerRevision>,
        claims: Informer<PersistentVolumeClaim>,
    ) -> Self {
        Self { pods: Dependents::of(pods), revisions: Dependents::of(revisions), claims }
    }

    /// Returns the snapshot of a `StatefulSet`.
    pub(super) fn observe<'a>(&self, set: &'a StatefulSet) -> Observed<'a> {
        let (owner, selector) = (Owner::of(set), set.selector.as_ref().ok());
        let pods = self.pods.owned_or_orphaned(owner, selector);
        let revisions = self.revisions.owned_or_orphaned(owner, selector);
        Observed { set, pods, revisions }
    }
}

/// Looks claims up by name.
pub(super) trait ClaimLister {
    fn claim(&self, namespace: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>>;

    /// Returns `true` if the claim exists and cannot be decoded.
    fn is_undecodable(&self, namespace: &str, name: &str) -> bool;
}

impl ClaimLister for Informer<PersistentVolumeClaim> {
    fn claim(&self, namespace: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>> {
        self.get(&ObjectKey::namespaced(namespace, name))
    }

    fn is_undecodable(&self, namespace: &str, name: &str) -> bool {
        self.undecodable(&ObjectKey::namespaced(namespace, name)).is_some()
    }
}

impl Observed<'_> {
    /// Decides on pods. A pod whose name is not the name of a member is released and never adopted.
    pub(super) fn claim_pods(&self, selector: &Selector) -> Claims<Pod> {
        let name = self.set.metadata.key.name();
        let (members, others): (Vec<_>, Vec<_>) =
            self.pods.iter().partition(|pod| is_member(name, pod.metadata.key.name()));
        let mut claims = Claims::of(Owner::of(self.set), selector, members);
        if !self.set.metadata.is_terminating() {
            claims.release.extend(others.into_iter().filter(|pod| self.controls(&***pod)).cloned());
            claims.release.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
        }
        claims
    }

    /// Decides on revisions. A revision that is not selected any more is kept as it is, and does not count.
    pub(super) fn claim_revisions(&self, selector: &Selector) -> Claims<ControllerRevision> {
        let claims = Claims::of(Owner::of(self.set), selector, &self.revisions);
        Claims { release: Vec::new(), ..claims }
    }

    fn controls<V: KnownView>(&self, object: &V) -> bool {
        Owner::of(self.set).owns(object.meta())
    }
}
