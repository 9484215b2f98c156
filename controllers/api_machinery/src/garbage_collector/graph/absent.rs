//! The owners that are known not to exist.

use std::collections::{BTreeSet, VecDeque};

use super::identity::Identity;

/// How many absent owners are remembered.
///
/// # Upstream
/// 500, of which the one that was looked up least recently is forgotten first.
const REMEMBERED: usize = 2_000;

/// The absent owners that were found last.
///
/// A uid never comes back, so that what is remembered stays true; what is forgotten costs a live read.
#[derive(Debug, Default)]
pub(crate) struct AbsentOwners {
    known: BTreeSet<Identity>,
    oldest_first: VecDeque<Identity>,
}

impl AbsentOwners {
    /// Remembers that no object has this identity.
    pub(crate) fn add(&mut self, identity: Identity) {
        if self.known.insert(identity.clone()) {
            self.oldest_first.push_back(identity);
        }
        if self.oldest_first.len() > REMEMBERED
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Whether no object has this identity.
    pub(crate) fn contains(&self, identity: &Identity) -> bool {
        self.known.contains(identity)
    }
}
