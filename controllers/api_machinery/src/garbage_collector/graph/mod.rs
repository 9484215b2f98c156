//! The graph of owners and dependents. Pure: informers and live reads tell it what is there, and it returns what is to be
//! processed.
//!
//! Each object of an informer is a node. An owner that is only named by a dependent is a *virtual* node, until an informer
//! has it or a live read shows that it does not exist. Owner and dependent are joined by uid alone; names, kinds and
//! namespaces that do not match lead to a live read, which decides.
//!
//! # Upstream
//! `graph.go` and `graph_builder.go` of `pkg/controller/garbagecollector`.

mod absent;
mod draw;
mod identity;
mod item;
mod node;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::mem;
use std::sync::Arc;

use kcm_framework::api::{Meta, OwnerReference, Resource, Uid};
use kcm_framework::informers::ObjectMeta;

use self::absent::AbsentOwners;
pub(crate) use self::draw::Drawn;
pub(crate) use self::identity::Identity;
pub(crate) use self::item::{Item, Task};
pub(crate) use self::node::{
    FOREGROUND_FINALIZER, ORPHAN_FINALIZER, has_finalizer, orphans_dependents, waits_for_dependents,
};
use self::node::{Node, State, UidSet};

/// What a change of the graph leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Process the object: it may have to be deleted.
    Process(Uid),
    /// Orphan the dependents of the object.
    Orphan(Uid),
    /// A reference names an owner of another namespace.
    InvalidNamespace {
        /// The dependent.
        dependent: Identity,
        /// The owner, as the dependent names it.
        owner: Identity,
    },
}

/// The graph.
#[derive(Default)]
pub(crate) struct Graph {
    nodes: BTreeMap<Uid, Node>,
    absent: AbsentOwners,
}

impl Graph {
    /// An informer has an object, new or changed.
    pub(crate) fn observe(&mut self, resource: &Arc<Resource>, object: &Arc<dyn ObjectMeta>) -> Vec<Effect> {
        let mut effects = Vec::new();
        let uid = object.metadata().uid.clone();
        let state = State::Observed { resource: Arc::clone(resource), object: Arc::clone(object) };
        let old = match self.nodes.entry(uid) {
            Entry::Occupied(mut node) => Some(mem::replace(&mut node.get_mut().state, state)),
            Entry::Vacant(node) => {
                node.insert(Node { state, dependents: UidSet::default() });
                None
            }
        };
        let before = match &old {
            Some(State::Observed { object, .. }) => Some(object.metadata()),
            Some(State::Virtual { identity, .. }) => {
                self.replace_virtual(identity, &Identity::observed(resource, object.metadata()), &mut effects);
                None
            }
            None => None,
        };
        self.join(before, object.metadata(), &mut effects);
        self.transitions(before, object.metadata(), &mut effects);
        effects
    }

    /// The object is gone for certain.
    pub(crate) fn remove(&mut self, uid: &Uid) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Some(node) = self.nodes.get(uid) {
            self.end(uid, node.identity(), &mut effects);
        }
        effects
    }

    /// An informer lost the object, and it is not known whether it is gone: a live read tells.
    pub(crate) fn lose(&mut self, uid: &Uid) -> Vec<Effect> {
        let mut effects = Vec::new();
        let Some(node) = self.nodes.remove(uid) else { return effects };
        self.leave_owners(uid, node.owners(), &mut effects);
        if !node.dependents.is_empty() {
            let identity = node.identity();
            self.nodes.insert(uid.clone(), Node::virtual_with(identity, node.dependents));
            effects.push(Effect::Process(uid.clone()));
        }
        effects
    }

    /// A resource is not watched any more: whether its objects are still there is not known.
    pub(crate) fn forget(&mut self, resource: &Resource) -> Vec<Effect> {
        let of_resource = self.nodes.iter().filter(|(_, node)| node.is_of(resource));
        let uids: Vec<Uid> = of_resource.map(|(uid, _)| uid.clone()).collect();
        uids.iter().flat_map(|uid| self.lose(uid)).collect()
    }

    /// A live read has shown that no object has this identity.
    ///
    /// An informer may have an object of that uid under another name, and dependents may name it otherwise: these are
    /// left alone.
    pub(crate) fn confirm_absent(&mut self, absent: &Identity) -> Vec<Effect> {
        let mut effects = Vec::new();
        let Some(node) = self.nodes.get(&absent.uid) else { return effects };
        let identity = node.identity();
        let named: Vec<(Uid, identity::Naming)> = node
            .dependents
            .iter()
            .filter_map(|uid| Some((uid.clone(), absent.named_by(self.nodes.get(uid)?.meta()?))))
            .collect();
        let is_named_otherwise = named.iter().any(|(_, naming)| naming.wrongly);
        if (!node.is_virtual() && identity != *absent) || (node.is_virtual() && is_named_otherwise) {
            let rightly: Vec<&Uid> = named.iter().filter(|(_, naming)| naming.rightly).map(|(uid, _)| uid).collect();
            if !rightly.is_empty() {
                self.absent.add(absent.clone());
            }
            effects.extend(rightly.into_iter().map(|uid| Effect::Process(uid.clone())));
            if node_is_virtual_as(&self.nodes, absent)
                && let Some(alternative) = self.alternative(absent)
                && let Some(node) = self.nodes.get_mut(&absent.uid)
                && let State::Virtual { identity, .. } = &mut node.state
            {
                **identity = alternative;
            }
            return effects;
        }
        self.end(&absent.uid, absent.clone(), &mut effects);
        effects
    }

    /// An object that was virtual is observed: dependents that name it otherwise are processed.
    fn replace_virtual(&self, named: &Identity, observed: &Identity, effects: &mut Vec<Effect>) {
        if named == observed {
            return;
        }
        let Some(node) = self.nodes.get(&observed.uid) else { return };
        for (uid, dependent) in node.dependents.iter().filter_map(|uid| self.nodes.get_key_value(uid)) {
            let Some(meta) = dependent.meta().filter(|meta| observed.named_by(meta).wrongly) else { continue };
            if observed.namespace.is_some() && observed.namespace.as_ref() != meta.key.shared_namespace() {
                effects.extend(invalid_namespace(&dependent.identity(), meta, &observed.uid));
            }
            effects.push(Effect::Process(uid.clone()));
        }
    }

    /// Joins an object to its owners, as far as its references have changed.
    fn join(&mut self, before: Option<&Meta>, now: &Meta, effects: &mut Vec<Effect>) {
        let old = before.map(|meta| &*meta.owner_references).unwrap_or_default();
        let new = &*now.owner_references;
        if old == new {
            return;
        }
        for reference in old {
            let unblocks = reference.block_owner_deletion
                && !new.iter().any(|other| other.uid == reference.uid && other.block_owner_deletion);
            if unblocks && self.nodes.contains_key(&reference.uid) {
                effects.push(Effect::Process(reference.uid.clone()));
            }
        }
        let is_new = |reference: &&OwnerReference| !old.contains(reference);
        let mut is_doubtful = false;
        for reference in new.iter().filter(is_new) {
            is_doubtful |= self.join_owner(reference, now, effects);
        }
        if is_doubtful {
            effects.push(Effect::Process(now.uid.clone()));
        }
        let gone: Vec<&OwnerReference> =
            old.iter().filter(|reference| !new.iter().any(|other| other.uid == reference.uid)).collect();
        for reference in gone {
            self.leave_owner(&now.uid, &reference.uid);
        }
    }

    /// Joins an object to one owner; returns whether the reference may be wrong.
    fn join_owner(&mut self, reference: &OwnerReference, dependent: &Meta, effects: &mut Vec<Effect>) -> bool {
        let namespace = dependent.key.shared_namespace();
        let Some(owner) = self.nodes.get_mut(&reference.uid) else {
            let mut dependents = UidSet::default();
            dependents.insert(&dependent.uid);
            let owner = Node::virtual_with(Identity::named(reference, namespace), dependents);
            self.nodes.insert(reference.uid.clone(), owner);
            effects.push(Effect::Process(reference.uid.clone()));
            return false;
        };
        owner.dependents.insert(&dependent.uid);
        if owner.is_absent() {
            return true;
        }
        let (identity, is_virtual) = (owner.identity(), owner.is_virtual());
        let is_elsewhere = identity.namespace.as_ref() != namespace;
        if identity.namespace.is_some() && is_elsewhere {
            if !is_virtual && let Some(node) = self.nodes.get(&dependent.uid) {
                effects.extend(invalid_namespace(&node.identity(), dependent, &reference.uid));
            }
            return true;
        }
        // A virtual owner without a namespace may be a namespaced one that a cluster-scoped object names.
        !identity.has_coordinates_of(reference) || (is_elsewhere && is_virtual)
    }

    /// What begins with this change of an object.
    fn transitions(&self, before: Option<&Meta>, now: &Meta, effects: &mut Vec<Effect>) {
        if orphans_dependents(now) && !before.is_some_and(orphans_dependents) {
            effects.push(Effect::Orphan(now.uid.clone()));
            return;
        }
        if waits_for_dependents(now) && !before.is_some_and(waits_for_dependents) {
            let dependents = self.nodes.get(&now.uid).into_iter().flat_map(|node| node.dependents.iter());
            effects.extend(dependents.map(|uid| Effect::Process(uid.clone())));
            effects.push(Effect::Process(now.uid.clone()));
        }
    }

    /// Ends an object, which has that identity. Its node stays while dependents name it.
    fn end(&mut self, uid: &Uid, identity: Identity, effects: &mut Vec<Effect>) {
        let Some(node) = self.nodes.remove(uid) else { return };
        self.leave_owners(uid, node.owners(), effects);
        if node.dependents.is_empty() {
            return;
        }
        effects.extend(node.dependents.iter().map(|dependent| Effect::Process(dependent.clone())));
        self.absent.add(identity.clone());
        let state = State::Virtual { identity: Box::new(identity), lookups: 0, is_absent: true };
        self.nodes.insert(uid.clone(), Node { state, dependents: node.dependents });
    }

    fn leave_owners(&mut self, uid: &Uid, owners: &[OwnerReference], effects: &mut Vec<Effect>) {
        for reference in owners {
            self.leave_owner(uid, &reference.uid);
            if self.nodes.get(&reference.uid).is_some_and(Node::waits_for_dependents) {
                effects.push(Effect::Process(reference.uid.clone()));
            }
        }
    }

    /// Removes a dependent from an owner. An owner that was only named is forgotten with its last dependent.
    fn leave_owner(&mut self, dependent: &Uid, owner: &Uid) {
        let Some(node) = self.nodes.get_mut(owner) else { return };
        node.dependents.remove(dependent);
        if node.is_virtual() && node.dependents.is_empty() {
            self.nodes.remove(owner);
        }
    }

    /// Another identity that dependents give an absent owner: the first after it in their order, or the first of all.
    pub(crate) fn alternative(&self, absent: &Identity) -> Option<Identity> {
        let node = self.nodes.get(&absent.uid)?;
        let dependents = node.dependents.iter().filter_map(|uid| self.nodes.get(uid)?.meta());
        let named = dependents.flat_map(|meta| {
            let references = meta.owner_references.iter().filter(|reference| reference.uid == absent.uid);
            references.map(|reference| Identity::named(reference, meta.key.shared_namespace()))
        });
        let mut others: Vec<Identity> = named
            .map(|named| {
                // The kind is known to be cluster-scoped.
                let same_kind = named.kind == absent.kind && named.api_version == absent.api_version;
                if absent.namespace.is_none() && same_kind { named.cluster_scoped() } else { named }
            })
            .filter(|named| named != absent)
            .collect();
        others.sort();
        let following = others.iter().find(|other| *other > absent).cloned();
        following.or_else(|| others.into_iter().next())
    }
}

/// Whether the node of an identity is virtual and has that identity.
fn node_is_virtual_as(nodes: &BTreeMap<Uid, Node>, identity: &Identity) -> bool {
    nodes.get(&identity.uid).is_some_and(|node| node.is_virtual() && node.identity() == *identity)
}

/// The effect of a reference to an owner in another namespace.
fn invalid_namespace(dependent: &Identity, meta: &Meta, owner: &Uid) -> Option<Effect> {
    let reference = meta.owner_references.iter().find(|reference| reference.uid == *owner)?;
    let owner = Identity::named(reference, meta.key.shared_namespace());
    Some(Effect::InvalidNamespace { dependent: dependent.clone(), owner })
}
