//! Controller references: who has an object.

use kcm_api::{InternedStr, KnownView, Meta, OwnerReference, Resource, Uid, View};
use kcm_informers::{Index, Informer};

/// An object that others belong to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner<'a> {
    /// Its resource.
    pub(crate) resource: &'static Resource,
    /// Its metadata.
    pub(crate) meta: &'a Meta,
}

impl<'a> Owner<'a> {
    /// That object.
    pub(crate) fn of<V: KnownView>(owner: &'a V) -> Self {
        Self { resource: const { &V::RESOURCE }, meta: owner.meta() }
    }

    /// Whether the controller reference of `dependent` means this object.
    ///
    /// By uid, and by kind, namespace and name as well: a reference that has just the uid right is nobody's.
    pub(crate) fn owns(self, dependent: &Meta) -> bool {
        dependent.key.namespace() == self.meta.key.namespace()
            && dependent.controller().is_some_and(|reference| {
                reference.uid == self.meta.uid
                    && *reference.kind == *self.resource.kind
                    && &*reference.name == self.meta.key.name()
            })
    }

    /// The reference that makes it the controller of another object.
    pub(crate) fn reference(self) -> OwnerReference {
        OwnerReference::controller_of(self.resource, self.meta)
    }
}

/// Who has an object, as an index tells.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// The controller with that uid.
    Controller(Uid),
    /// Nobody, in that namespace.
    Nobody(InternedStr),
}

/// The index of a cache by who has its objects: one for all controllers.
pub(crate) fn by_holder<V: View>(informer: &Informer<V>) -> Index<V, Holder> {
    informer.index("holder", |object: &V| [holder(object.meta())])
}

fn holder(object: &Meta) -> Holder {
    match object.controller() {
        Some(controller) => Holder::Controller(controller.uid.clone()),
        None => Holder::Nobody(object.key.namespace().unwrap_or_default().into()),
    }
}
