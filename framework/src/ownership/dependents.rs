//! The objects that owners control, from an index of their cache.

use std::sync::Arc;

use kcm_api::{InternedStr, Meta, Selector, Uid, View};
use kcm_informers::{Index, Informer};

use super::owner::Owner;

/// The objects of a cache by their controller. All controllers share the index.
pub struct Dependents<V>(Index<V, OwnerKey>);

/// The key of an object in the index.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum OwnerKey {
    /// The object has a controller, of this uid.
    Controller(Uid),
    /// The object is an orphan in this namespace.
    Orphan(InternedStr),
}

impl OwnerKey {
    fn of(object: &Meta) -> Self {
        match object.controller() {
            Some(controller) => Self::Controller(controller.uid.clone()),
            None => Self::Orphan(object.key.namespace().unwrap_or_default().into()),
        }
    }
}

impl<V: View> Dependents<V> {
    /// The dependents in the cache of an informer.
    #[must_use]
    pub fn of(informer: &Informer<V>) -> Self {
        Self(informer.index("owner", |object: &V| [OwnerKey::of(object.meta())]))
    }

    /// The objects whose controller reference has this uid, in any namespace and for an owner of any kind.
    #[must_use]
    pub fn controlled_by(&self, controller: &Uid) -> Vec<Arc<V>> {
        self.0.get(&OwnerKey::Controller(controller.clone()))
    }

    /// Returns `true` if an object whose controller reference has this uid matches. `matches` must only read the
    /// object.
    #[must_use]
    pub fn any_controlled_by(&self, controller: &Uid, matches: impl FnMut(&V) -> bool) -> bool {
        self.0.any(&OwnerKey::Controller(controller.clone()), matches)
    }

    /// The objects that the owner controls.
    #[must_use]
    pub fn owned_by(&self, owner: Owner<'_>) -> Vec<Arc<V>> {
        let mut objects = self.controlled_by(&owner.meta.uid);
        objects.retain(|object| owner.owns(object.meta()));
        objects
    }

    /// The objects that the owner controls, and the orphans of its namespace that the selector selects; without a
    /// selector, no orphans.
    #[must_use]
    pub fn owned_or_orphaned(&self, owner: Owner<'_>, selector: Option<&Selector>) -> Vec<Arc<V>> {
        let mut objects = self.owned_by(owner);
        if let Some(selector) = selector {
            let namespace = owner.meta.key.namespace().unwrap_or_default();
            let orphans = self.0.get(&OwnerKey::Orphan(namespace.into()));
            objects.extend(orphans.into_iter().filter(|orphan| selector.matches(&orphan.meta().labels)));
        }
        objects
    }
}

impl<V> Clone for Dependents<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V> std::fmt::Debug for Dependents<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dependents").finish_non_exhaustive()
    }
}
