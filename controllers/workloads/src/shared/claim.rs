//! Claims: which objects an owner keeps, adopts and releases.

use std::sync::Arc;

use kcm_api::{Meta, Selector, View};

use super::ownership::Owner;

/// The decision of an owner on one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The owner controls the object and selects it.
    Keep,
    /// The object is an orphan that the owner selects.
    Adopt,
    /// The owner controls the object, and does not select it any more.
    Release,
    /// The owner leaves the object, which does not count.
    Leave(LeaveReason),
}

/// Why an owner leaves an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaveReason {
    /// Another owner controls it.
    ControlledByAnother,
    /// It is an orphan that the owner does not select.
    NotSelected,
    /// The owner is being deleted: it adopts and releases nothing.
    OwnerTerminating,
    /// It is an orphan that is being deleted.
    Terminating,
}

/// Decides on one object of the namespace of the owner.
pub(crate) fn claim(owner: Owner<'_>, selector: &Selector, object: &Meta) -> Claim {
    let selected = selector.matches(&object.labels);
    let owner_terminating = owner.meta.is_terminating();
    if owner.owns(object) {
        return match (selected, owner_terminating) {
            (true, _) => Claim::Keep,
            (false, true) => Claim::Leave(LeaveReason::OwnerTerminating),
            (false, false) => Claim::Release,
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
        return Claim::Adopt;
    };
    Claim::Leave(why)
}

/// The objects of an owner, by decision.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claims<V> {
    /// The objects to keep.
    pub(crate) kept: Vec<Arc<V>>,
    /// The objects to adopt, by name.
    pub(crate) adopt: Vec<Arc<V>>,
    /// The objects to release, by name.
    pub(crate) release: Vec<Arc<V>>,
}

impl<V: View> Claims<V> {
    /// Decides on all objects.
    pub(crate) fn of<'a>(owner: Owner<'_>, selector: &Selector, objects: impl IntoIterator<Item = &'a Arc<V>>) -> Self
    where
        V: 'a,
    {
        let mut claims = Self { kept: Vec::new(), adopt: Vec::new(), release: Vec::new() };
        for object in objects {
            match claim(owner, selector, object.meta()) {
                Claim::Keep => claims.kept.push(Arc::clone(object)),
                Claim::Adopt => claims.adopt.push(Arc::clone(object)),
                Claim::Release => claims.release.push(Arc::clone(object)),
                Claim::Leave(_) => {}
            }
        }
        // Caches list in no order; requests are sent in that of the names.
        for objects in [&mut claims.adopt, &mut claims.release] {
            objects.sort_unstable_by(|a, b| a.meta().key.cmp(&b.meta().key));
        }
        claims
    }
}
