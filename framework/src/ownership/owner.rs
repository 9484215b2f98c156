//! Owners and controller references.

use kcm_api::{KnownView, Meta, ObjectKey, OwnerReference, Resource};

/// An object that controls others.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The resource of the owner.
    pub resource: &'a Resource,
    /// The metadata of the owner.
    pub meta: &'a Meta,
}

impl<'a> Owner<'a> {
    /// Makes an owner of an object whose kind is known at compile time.
    pub fn of<V: KnownView>(owner: &'a V) -> Self {
        Self { resource: const { &V::RESOURCE }, meta: owner.meta() }
    }

    /// Returns `true` if the controller reference of `dependent` refers to this object.
    ///
    /// The uid must match, and so must kind and name, and the namespace unless the owner has none.
    #[must_use]
    pub fn owns(self, dependent: &Meta) -> bool {
        self.meta.key.namespace().is_none_or(|namespace| dependent.key.namespace() == Some(namespace))
            && dependent.controller().is_some_and(|reference| {
                reference.uid == self.meta.uid
                    && *reference.kind == *self.resource.kind
                    && &*reference.name == self.meta.key.name()
            })
    }

    /// The reference that makes this object the controller of another.
    #[must_use]
    pub fn reference(self) -> OwnerReference {
        OwnerReference::controller_of(self.resource, self.meta.key.name(), &self.meta.uid)
    }
}

/// The key of the controller of an object, if the controller is of this resource. The controller may not exist, or may
/// have another uid than the reference.
#[must_use]
pub fn controller_key(resource: &Resource, dependent: &Meta) -> Option<ObjectKey> {
    let reference = dependent.controller().filter(|reference| *reference.kind == *resource.kind)?;
    Some(if resource.namespaced {
        ObjectKey::namespaced(dependent.key.namespace()?, &*reference.name)
    } else {
        ObjectKey::cluster_scoped(&*reference.name)
    })
}
