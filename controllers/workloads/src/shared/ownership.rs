//! Controller references, and the index by them.

use kcm_api::{InternedStr, KnownView, Meta, OwnerReference, Resource, Uid, View};
use kcm_informers::{Index, Informer};

/// An object that controls others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner<'a> {
    /// Its resource.
    pub(crate) resource: &'static Resource,
    /// Its metadata.
    pub(crate) meta: &'a Meta,
}

impl<'a> Owner<'a> {
    /// The owner that an object is.
    pub(crate) fn of<V: KnownView>(owner: &'a V) -> Self {
        Self { resource: const { &V::RESOURCE }, meta: owner.meta() }
    }

    /// Whether the controller reference of `dependent` refers to this object.
    ///
    /// The uid must match, and so must kind, namespace and name.
    pub(crate) fn owns(self, dependent: &Meta) -> bool {
        dependent.key.namespace() == self.meta.key.namespace()
            && dependent.controller().is_some_and(|reference| {
                reference.uid == self.meta.uid
                    && *reference.kind == *self.resource.kind
                    && &*reference.name == self.meta.key.name()
            })
    }

    /// The reference that makes this object the controller of another.
    pub(crate) fn reference(self) -> OwnerReference {
        OwnerReference::controller_of(self.resource, self.meta.key.name(), &self.meta.uid)
    }
}

/// The key of an object in the index by owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum OwnerKey {
    /// The object has a controller, of this uid.
    Controller(Uid),
    /// The object is an orphan in this namespace.
    Orphan(InternedStr),
}

/// The index of a cache by owner. All controllers share it.
pub(crate) fn by_owner<V: View>(informer: &Informer<V>) -> Index<V, OwnerKey> {
    informer.index("owner", |object: &V| [owner_key(object.meta())])
}

fn owner_key(object: &Meta) -> OwnerKey {
    match object.controller() {
        Some(controller) => OwnerKey::Controller(controller.uid.clone()),
        None => OwnerKey::Orphan(object.key.namespace().unwrap_or_default().into()),
    }
}
