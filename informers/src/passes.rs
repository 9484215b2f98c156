//! Passes: all objects of a cache are shown to one event handler, in slices between which changes go on.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_api::{ObjectKey, View};

use crate::change::{Change, Origin};

/// A pass over the objects of a cache in the order of their keys.
///
/// It keeps only the key that it has reached: each slice reads the cache as it is then.
#[derive(Debug)]
pub(crate) struct Pass {
    kind: Kind,
    shown_up_to: Option<ObjectKey>,
}

#[derive(Debug)]
enum Kind {
    /// The handler is new. `ahead` has the keys that the pass has not reached, and of which a change has notified it.
    First {
        ahead: BTreeSet<ObjectKey>,
    },
    /// The handler is shown every object again as if it was added.
    Again,
    Resync,
}

/// The passes of a handler that follow.
#[derive(Debug, Default)]
pub(crate) struct NextPasses {
    pub(crate) again: bool,
    pub(crate) resync: bool,
}

impl NextPasses {
    pub(crate) const fn any(&self) -> bool {
        self.again || self.resync
    }

    /// Begins the next pass. Objects that are shown again need no resync.
    pub(crate) fn begin(&mut self) -> Option<Pass> {
        let Self { again, resync } = std::mem::take(self);
        let kind = if again { Some(Kind::Again) } else { resync.then_some(Kind::Resync) };
        kind.map(|kind| Pass { kind, shown_up_to: None })
    }
}

impl Pass {
    /// The pass of a new handler.
    pub(crate) const fn first() -> Self {
        Self { kind: Kind::First { ahead: BTreeSet::new() }, shown_up_to: None }
    }

    pub(crate) const fn is_first(&self) -> bool {
        matches!(self.kind, Kind::First { .. })
    }

    pub(crate) const fn shown_up_to(&self) -> Option<&ObjectKey> {
        self.shown_up_to.as_ref()
    }

    /// Returns the state that the handler must be shown before a change: a new handler that the pass has not shown the
    /// object yet would see it updated or deleted, but never added.
    pub(crate) fn shows_first<V: View>(&mut self, change: &Change<V>) -> Option<Arc<V>> {
        let Kind::First { ahead } = &mut self.kind else { return None };
        let key = change.key();
        if self.shown_up_to.as_ref().is_some_and(|reached| key <= reached) {
            return None;
        }
        match change {
            Change::Added(_) => {
                ahead.insert(key.clone());
                None
            }
            Change::Updated { old: last, .. } | Change::Undecodable { last } => {
                ahead.insert(key.clone()).then(|| Arc::clone(last))
            }
            Change::Deleted { last, .. } => (!ahead.remove(key)).then(|| Arc::clone(last)),
        }
    }

    /// Moves the pass to the next object, and returns the notification. `None` if a change was ahead of the pass.
    pub(crate) fn show<V: View>(&mut self, object: Arc<V>) -> Option<(Change<V>, Origin)> {
        let key = &object.meta().key;
        self.shown_up_to = Some(key.clone());
        match &mut self.kind {
            Kind::First { ahead } => (!ahead.remove(key)).then_some((Change::Added(object), Origin::Initial)),
            Kind::Again => Some((Change::Added(object), Origin::Initial)),
            Kind::Resync => Some((Change::Updated { old: Arc::clone(&object), new: object }, Origin::Resync)),
        }
    }
}
