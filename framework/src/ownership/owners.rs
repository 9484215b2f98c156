//! Event mapping of dependents: the owners that a change enqueues.

use std::sync::Arc;

use kcm_api::{KnownView, Meta, ObjectKey, Resource, Selector, View};
use kcm_informers::{Change, Informer};

use super::owner::{Owner, controller_key};

/// Lists owners. A `Vec` of owners implements it too, for tests.
pub trait OwnerLister<V> {
    /// The owner of that name.
    fn get(&self, key: &ObjectKey) -> Option<Arc<V>>;

    /// All owners of a namespace.
    fn in_namespace(&self, namespace: &str) -> Vec<Arc<V>>;
}

impl<V: View> OwnerLister<V> for Informer<V> {
    fn get(&self, key: &ObjectKey) -> Option<Arc<V>> {
        Self::get(self, key)
    }

    fn in_namespace(&self, namespace: &str) -> Vec<Arc<V>> {
        Self::in_namespace(self, namespace)
    }
}

impl<V: View> OwnerLister<V> for Vec<Arc<V>> {
    fn get(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.iter().find(|owner| owner.meta().key == *key).cloned()
    }

    fn in_namespace(&self, namespace: &str) -> Vec<Arc<V>> {
        self.iter().filter(|owner| owner.meta().key.namespace() == Some(namespace)).cloned().collect()
    }
}

/// The owners of one kind, which select their dependents by labels.
#[derive(Clone)]
pub struct Owners<V, L = Informer<V>> {
    resource: Resource,
    lister: L,
    selector: fn(&V) -> Option<&Selector>,
}

impl<V: View, L: OwnerLister<V>> Owners<V, L> {
    /// The owners of any resource. `selector` returns `None` for an owner that adopts nothing, such as an owner with an
    /// invalid selector.
    pub const fn of(resource: Resource, lister: L, selector: fn(&V) -> Option<&Selector>) -> Self {
        Self { resource, lister, selector }
    }

    /// The owners of the resource of the view.
    pub fn known(lister: L, selector: fn(&V) -> Option<&Selector>) -> Self
    where
        V: KnownView,
    {
        Self::of(V::RESOURCE, lister, selector)
    }

    /// The owner that controls the object, by kind, name and uid of its controller reference.
    pub fn controller_of(&self, dependent: &Meta) -> Option<Arc<V>> {
        let owner = self.lister.get(&controller_key(&self.resource, dependent)?)?;
        Owner { resource: &self.resource, meta: owner.meta() }.owns(dependent).then_some(owner)
    }

    /// All owners that could adopt the object. More than one is a mistake in their selectors.
    ///
    /// # Upstream
    /// A selector that selects everything does not count: validation rejects it. Neither does an object without labels.
    pub fn selecting(&self, orphan: &Meta) -> Vec<Arc<V>> {
        let (Some(namespace), false) = (orphan.key.namespace(), orphan.labels.is_empty()) else { return Vec::new() };
        let mut owners = self.lister.in_namespace(namespace);
        owners.retain(|owner| {
            (self.selector)(owner).is_some_and(|selector| !selector.is_everything() && selector.matches(&orphan.labels))
        });
        owners
    }

    /// The keys that a change of a dependent enqueues: the owner that controls it, before and after the change; for an
    /// orphan that is added, released or relabelled, all owners that select it.
    ///
    /// A terminating object is not adopted, so it enqueues no owner that selects it.
    pub fn keys<D: View>(&self, change: &Change<D>) -> Vec<ObjectKey> {
        let owners: Vec<Arc<V>> = match change {
            Change::Added(object) => self.after_change(object.meta(), true),
            Change::Updated { old, new } => self.of_updated(old.meta(), new.meta()),
            // The guard of the loop holds the owner of an undecodable object, and says so.
            Change::Undecodable { last } | Change::Deleted { last, final_state_known: _ } => {
                self.controller_of(last.meta()).into_iter().collect()
            }
        };
        owners.iter().map(|owner| owner.meta().key.clone()).collect()
    }

    fn of_updated(&self, old: &Meta, new: &Meta) -> Vec<Arc<V>> {
        let has_other_owner = old.controller() != new.controller();
        let before = has_other_owner.then(|| self.controller_of(old)).flatten();
        let after = self.after_change(new, has_other_owner || old.labels != new.labels);
        before.into_iter().chain(after).collect()
    }

    fn after_change(&self, object: &Meta, may_be_adopted: bool) -> Vec<Arc<V>> {
        let is_orphan = object.controller().is_none() && !object.is_terminating();
        match (is_orphan, may_be_adopted) {
            (false, _) => self.controller_of(object).into_iter().collect(),
            (true, true) => self.selecting(object),
            (true, false) => Vec::new(),
        }
    }
}

impl<V, L> std::fmt::Debug for Owners<V, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owners").field("resource", &self.resource).finish_non_exhaustive()
    }
}
