//! Which objects belong to an owner: what is kept, adopted and released.

use std::sync::Arc;

use kcm_api::{Meta, Selector, View};

use super::ownership::Owner;

/// What an owner does about one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The object is its own, and counts.
    Keep,
    /// The object is nobody's, and is to become its own.
    Adopt,
    /// The object is its own, but not selected any more.
    Release,
    /// The object is left as it is, and does not count.
    Leave(Why),
}

/// Why an object is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Another controller has it.
    ControlledByAnother,
    /// It is nobody's, and the selector does not want it.
    NotSelected,
    /// The owner is being deleted: it takes nothing new, and what it has is the garbage collector's business.
    OwnerTerminating,
    /// It is nobody's, and on its way out.
    Terminating,
}

/// Decides about one object of the owner's namespace.
pub(crate) fn claim(owner: Owner<'_>, selector: &Selector, object: &Meta) -> Claim {
    let selected = selector.matches(&object.labels);
    let owner_terminating = owner.meta.is_terminating();
    if owner.owns(object) {
        return match (selected, owner_terminating) {
            (true, _) => Claim::Keep,
            (false, true) => Claim::Leave(Why::OwnerTerminating),
            (false, false) => Claim::Release,
        };
    }
    let why = if object.controller().is_some() {
        Why::ControlledByAnother
    } else if !selected {
        Why::NotSelected
    } else if owner_terminating {
        Why::OwnerTerminating
    } else if object.is_terminating() {
        Why::Terminating
    } else {
        return Claim::Adopt;
    };
    Claim::Leave(why)
}

/// Objects by what is to be done about them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claims<V> {
    /// Those that are the owner's.
    pub(crate) kept: Vec<Arc<V>>,
    /// Those to adopt, by name.
    pub(crate) adopt: Vec<Arc<V>>,
    /// Those to release, by name.
    pub(crate) release: Vec<Arc<V>>,
}

impl<V: View> Claims<V> {
    /// Decides about all of `objects`.
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
        // Caches list in no order, and writes are to be made in one.
        for objects in [&mut claims.adopt, &mut claims.release] {
            objects.sort_unstable_by(|a, b| a.meta().key.cmp(&b.meta().key));
        }
        claims
    }
}
