//! The snapshot of a stateful set, its pods and its revisions, from the caches.

use std::sync::Arc;

use kcm_api::views::{ControllerRevision, PersistentVolumeClaim, Pod, StatefulSet};
use kcm_api::{KnownView, ObjectKey};
use kcm_framework::ownership::{Claims, Dependents, Owner};
use kcm_informers::Informer;

use super::identity::is_member;

/// The snapshot of one stateful set.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    /// The stateful set.
    pub(super) set: Arc<StatefulSet>,
    /// The pods that the stateful set controls, and the orphans of its namespace that it selects; in no order.
    pub(super) pods: Vec<Arc<Pod>>,
    /// The same of revisions.
    pub(super) revisions: Vec<Arc<ControllerRevision>>,
}

/// The caches that the controller reads.
pub(super) struct Caches {
    sets: Informer<StatefulSet>,
    pods: Dependents<Pod>,
    revisions: Dependents<ControllerRevision>,
    /// Claims.
    pub(super) claims: Informer<PersistentVolumeClaim>,
}

impl Caches {
    /// Adds the indexes by owner.
    pub(super) fn new(
        sets: Informer<StatefulSet>,
        pods: &Informer<Pod>,
        revisions: &Informer<ControllerRevision>,
        claims: Informer<PersistentVolumeClaim>,
    ) -> Self {
        Self { sets, pods: Dependents::of(pods), revisions: Dependents::of(revisions), claims }
    }

    /// The snapshot of one stateful set; absent if it does not exist.
    pub(super) fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let set = self.sets.get(key)?;
        let (owner, selector) = (Owner::of(&*set), set.selector.as_ref().ok());
        let pods = self.pods.owned_or_orphaned(owner, selector);
        let revisions = self.revisions.owned_or_orphaned(owner, selector);
        Some(Observed { set, pods, revisions })
    }
}

/// Looks claims up by name.
pub(super) trait ClaimLister {
    /// The claim of that name in the namespace.
    fn claim(&self, namespace: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>>;
}

impl ClaimLister for Informer<PersistentVolumeClaim> {
    fn claim(&self, namespace: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>> {
        self.get(&ObjectKey::namespaced(namespace, name))
    }
}

impl Observed {
    /// The decision on pods: those whose name is not that of a member are released and never adopted.
    pub(super) fn claim_pods(&self) -> Option<Claims<Pod>> {
        let selector = self.set.selector.as_ref().ok()?;
        let name = self.set.metadata.key.name();
        let (members, others): (Vec<_>, Vec<_>) =
            self.pods.iter().partition(|pod| is_member(name, pod.metadata.key.name()));
        let mut claims = Claims::of(Owner::of(&*self.set), selector, members);
        if !self.set.metadata.is_terminating() {
            claims.release.extend(others.into_iter().filter(|pod| self.controls(&***pod)).cloned());
            claims.release.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
        }
        Some(claims)
    }

    /// The decision on revisions. One that is not selected any more is left, and does not count.
    pub(super) fn claim_revisions(&self) -> Option<Claims<ControllerRevision>> {
        let selector = self.set.selector.as_ref().ok()?;
        let claims = Claims::of(Owner::of(&*self.set), selector, &self.revisions);
        Some(Claims { release: Vec::new(), ..claims })
    }

    fn controls<V: KnownView>(&self, object: &V) -> bool {
        Owner::of(&*self.set).owns(object.meta())
    }
}
