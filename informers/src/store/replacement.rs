//! New contents of a store that are built aside, in small steps, and then exchanged for the old ones.

use std::sync::{Arc, Weak};

use kcm_api::View;

use super::index::IndexPanicked;
use super::{ByKey, Contents, IndexSlot, Store};

/// The contents of a store while they are built: readers still see the old contents.
///
/// It takes the memory of a set and of all indexes a second time, but not of the objects.
pub(crate) struct Replacement<V>(Contents<V>);

impl<V: View> Replacement<V> {
    pub(crate) fn put(&mut self, object: &Arc<V>) -> Result<(), IndexPanicked> {
        self.0.put(Arc::clone(object)).map(drop)
    }
}

impl<V> Replacement<V> {
    /// Drops a part, so that no step frees everything. Returns `true` if nothing is left.
    pub(crate) fn drop_a_part(&mut self) -> bool {
        const OBJECTS: usize = 2_048;
        let Contents { objects, sorted, indexes, unindexed: _ } = &mut self.0;
        if indexes.pop().is_none() && !sorted.drop_some(OBJECTS) {
            objects.extract_if(|_| true).take(OBJECTS).for_each(drop);
        }
        objects.is_empty()
    }
}

impl<V: View> Store<V> {
    /// All objects, in no order.
    pub(crate) fn unsorted(&self) -> Vec<Arc<V>> {
        self.contents.read().objects.iter().map(|ByKey(object)| Arc::clone(object)).collect()
    }

    /// Begins new contents for that many objects, with the indexes that the store has now.
    pub(crate) fn replacement(&self, objects: usize) -> Replacement<V> {
        let mut fresh = Contents::empty();
        fresh.objects.reserve(objects);
        let emptied = |slot: &IndexSlot<V>| IndexSlot {
            identity: slot.identity,
            user: Weak::clone(&slot.user),
            index: slot.index.emptied(),
        };
        fresh.indexes = self.contents.read().indexes.iter().map(|slot| slot.as_ref().map(emptied)).collect();
        Replacement(fresh)
    }

    /// Exchanges the contents in one step, and returns the old ones, which the caller drops.
    ///
    /// An index that was created since the replacement was begun is filled now.
    pub(crate) fn exchange(&self, replacement: Replacement<V>) -> Replacement<V> {
        let Replacement(mut fresh) = replacement;
        let mut built = std::mem::take(&mut fresh.indexes);
        let contents = &mut *self.contents.write();
        let mut indexes = std::mem::take(&mut contents.indexes);
        for (at, live) in indexes.iter_mut().enumerate() {
            let Some(live) = live else { continue };
            let built = built.get_mut(at).and_then(Option::as_mut).filter(|built| built.user.ptr_eq(&live.user));
            match built {
                Some(built) => std::mem::swap(&mut live.index, &mut built.index),
                None => live.index = fresh.built(live.index.emptied()),
            }
        }
        fresh.indexes = indexes;
        let mut old = std::mem::replace(contents, fresh);
        // The indexes that were exchanged, so that they are dropped without the lock.
        old.indexes = built;
        Replacement(old)
    }
}
