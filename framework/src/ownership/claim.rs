//! Claims: which objects an owner keeps, adopts and releases.

use std::sync::Arc;

use kcm_api::{Meta, Selector, View};

use super::owner::Owner;

/// The decision of an owner on one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The owner controls the object and selects it.
    Keep,
    /// The object is an orphan that the owner selects.
    Adopt,
    /// The owner controls the object, and does not select it any more.
    Release,
    /// The owner leaves the object, which does not count.
    Leave(LeaveReason),
}

/// The reason why an owner leaves an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveReason {
    /// Another owner controls it.
    ControlledByAnother,
    /// It is an orphan that the owner does not select.
    NotSelected,
    /// The owner is being deleted: it adopts and releases nothing.
    OwnerTerminating,
    /// It is an orphan that is being deleted.
    Terminating,
}

impl Claim {
    /// Decides on one object of the namespace of the owner.
    #[must_use]
    pub fn of(owner: Owner<'_>, selector: &Selector, object: &Meta) -> Self {
        let selected = selector.matches(&object.labels);
        let owner_terminating = owner.meta.is_terminating();
        if owner.owns(object) {
            return match (selected, owner_terminating) {
                (true, _) => Self::Keep,
                (false, true) => Self::Leave(LeaveReason::OwnerTerminating),
                (false, false) => Self::Release,
            };
        }
        let why = if object.controller().is_some() {
            LeaveReason::ControlledByAnother
        } else if !selected {
            LeaveReason::NotSelected
        } else if owner_terminating {
            LeaveReason::OwnerTerminating
        } else if object.is_terminating() {
            LeaveReason::Terminating
        } else {
            return Self::Adopt;
        };
        Self::Leave(why)
    }
}

/// The objects of an owner, by decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Claims<V> {
    /// The objects to keep.
    pub kept: Vec<Arc<V>>,
    /// The objects to adopt, by name.
    pub adopt: Vec<Arc<V>>,
    /// The objects to release, by name.
    pub release: Vec<Arc<V>>,
}

impl<V: View> Claims<V> {
    /// Decides on all objects.
    #[must_use]
    pub fn of<'a>(owner: Owner<'_>, selector: &Selector, objects: impl IntoIterator<Item = &'a Arc<V>>) -> Self
    where
        V: 'a,
    {
        let mut claims = Self { kept: Vec::new(), adopt: Vec::new(), release: Vec::new() };
        for object in objects {
            match Claim::of(owner, selector, object.meta()) {
                Claim::Keep => claims.kept.push(Arc::clone(object)),
                Claim::Adopt => claims.adopt.push(Arc::clone(object)),
                Claim::Release => claims.release.push(Arc::clone(object)),
                Claim::Leave(_) => {}
            }
        }
        // Caches list in no order; requests are sent in the order of the names.
        for objects in [&mut claims.adopt, &mut claims.release] {
            objects.sort_unstable_by(|a, b| a.meta().key.cmp(&b.meta().key));
        }
        claims
    }
}
