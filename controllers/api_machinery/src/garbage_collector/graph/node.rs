//! The nodes of the graph.

use std::sync::Arc;

use kcm_framework::api::{Meta, OwnerReference, Resource, Uid};
use kcm_framework::informers::ObjectMeta;

use super::identity::Identity;

/// The finalizer of an object that is deleted after its dependents.
pub(crate) const FOREGROUND_FINALIZER: &str = "foregroundDeletion";

/// The finalizer of an object that is deleted when its dependents are orphaned.
pub(crate) const ORPHAN_FINALIZER: &str = "orphan";

/// Whether metadata have a finalizer.
pub(crate) fn has_finalizer(meta: &Meta, finalizer: &str) -> bool {
    meta.finalizers.iter().any(|name| &**name == finalizer)
}

/// Whether an object is terminating and waits until it has no blocking dependents.
pub(crate) fn waits_for_dependents(meta: &Meta) -> bool {
    meta.is_terminating() && has_finalizer(meta, FOREGROUND_FINALIZER)
}

/// Whether an object is terminating and its dependents are to be orphaned.
pub(crate) fn orphans_dependents(meta: &Meta) -> bool {
    meta.is_terminating() && has_finalizer(meta, ORPHAN_FINALIZER)
}

/// A node: an object and its dependents.
pub(super) struct Node {
    pub(super) state: State,
    pub(super) dependents: UidSet,
}

/// What is known of the object of a node.
pub(super) enum State {
    /// An informer has it. The object is that of its cache, so that a node costs little beside it.
    Observed { resource: Arc<Resource>, object: Arc<dyn ObjectMeta> },
    /// A dependent names it, and no informer has it.
    Virtual {
        identity: Box<Identity>,
        /// How often it was looked up.
        lookups: u32,
        /// Whether it is known not to exist. It stays while dependents name it, as an informer that is behind may still
        /// show it.
        is_absent: bool,
    },
}

impl Node {
    pub(super) fn virtual_with(identity: Identity, dependents: UidSet) -> Self {
        Self { state: State::Virtual { identity: Box::new(identity), lookups: 0, is_absent: false }, dependents }
    }

    /// Whether it is known not to exist.
    pub(super) const fn is_absent(&self) -> bool {
        matches!(self.state, State::Virtual { is_absent: true, .. })
    }

    /// The metadata of an object that was observed.
    pub(super) fn meta(&self) -> Option<&Meta> {
        match &self.state {
            State::Observed { object, .. } => Some(object.metadata()),
            State::Virtual { .. } => None,
        }
    }

    pub(super) fn identity(&self) -> Identity {
        match &self.state {
            State::Observed { resource, object } => Identity::observed(resource, object.metadata()),
            State::Virtual { identity, .. } => (**identity).clone(),
        }
    }

    /// Whether an informer of that resource has it.
    pub(super) fn is_of(&self, resource: &Resource) -> bool {
        match &self.state {
            State::Observed { resource: of, .. } => **of == *resource,
            State::Virtual { .. } => false,
        }
    }

    pub(super) const fn is_virtual(&self) -> bool {
        matches!(self.state, State::Virtual { .. })
    }

    pub(super) fn owners(&self) -> &[OwnerReference] {
        self.meta().map(|meta| &*meta.owner_references).unwrap_or_default()
    }

    pub(super) fn waits_for_dependents(&self) -> bool {
        self.meta().is_some_and(waits_for_dependents)
    }

    /// Whether the deletion of the owner with that uid waits for this object.
    pub(super) fn blocks(&self, owner: &Uid) -> bool {
        self.owners().iter().any(|reference| reference.uid == *owner && reference.block_owner_deletion)
    }
}

/// A set of uids, sorted, which takes little where it has one element.
///
/// A change moves what comes after it. Where an owner has 50,000 dependents in no order, that is 3 µs for each of them on
/// one core of a server of 2023, a hundredth of the request that deletes it; with a tenth of them it is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct UidSet(Vec<Uid>);

impl UidSet {
    pub(super) fn insert(&mut self, uid: &Uid) {
        if let Err(at) = self.0.binary_search(uid) {
            if self.0.is_empty() {
                self.0.reserve_exact(1);
            }
            self.0.insert(at, uid.clone());
        }
    }

    pub(super) fn remove(&mut self, uid: &Uid) {
        if let Ok(at) = self.0.binary_search(uid) {
            self.0.remove(at);
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Uid> {
        self.0.iter()
    }
}
