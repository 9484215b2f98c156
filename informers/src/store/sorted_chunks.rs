//! The objects under one key of an index.

use std::sync::Arc;

use kcm_api::{ObjectKey, View};
use smallvec::SmallVec;

/// As many objects lie side by side at most; more are split.
///
/// An event moves or looks through a chunk, not the bucket: a pod removed and added among 50,000 of one namespace took
/// 11 µs without chunks and takes 2.4 µs.
const CHUNK: usize = 128;

/// Neighbours of one bucket; up to two lie inline, in the three words that a `Vec` would take.
type Chunk<V> = SmallVec<[Arc<V>; 2]>;

/// Objects sorted by key, in chunks of which none is empty.
///
/// What is known to be here is found by its address within its chunk: a comparison of keys goes to the memory of each
/// object that it looks at, and among 50,000 pods that is in no cache of the processor.
pub(super) struct SortedChunks<V>(SmallVec<[Chunk<V>; 1]>);

impl<V: View> SortedChunks<V> {
    pub(super) const fn new() -> Self {
        Self(SmallVec::new_const())
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(SmallVec::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn objects(&self) -> Vec<Arc<V>> {
        let mut objects = Vec::with_capacity(self.len());
        for chunk in &self.0 {
            objects.extend_from_slice(chunk);
        }
        objects
    }

    /// Puts an object in place of any with its key.
    pub(super) fn insert(&mut self, object: &Arc<V>) {
        let key = &object.meta().key;
        let Some(chunk_at) = self.chunk_of(key) else {
            self.0.push(SmallVec::from_iter([Arc::clone(object)]));
            return;
        };
        let is_last = chunk_at + 1 == self.0.len();
        let chunk = &mut self.0[chunk_at];
        // Lists come in the order of keys, so the end is where most additions go.
        let is_beyond = chunk.last().is_some_and(|last| last.meta().key < *key);
        let at = if is_beyond { chunk.len() } else { chunk.partition_point(|other| other.meta().key < *key) };
        if let Some(same) = chunk.get_mut(at).filter(|other| other.meta().key == *key) {
            *same = Arc::clone(object);
        } else if chunk.len() < CHUNK {
            chunk.insert(at, Arc::clone(object));
        } else if is_last && is_beyond {
            self.0.push(SmallVec::from_iter([Arc::clone(object)]));
        } else {
            let mut second: Chunk<V> = chunk.drain(CHUNK / 2..).collect();
            if at <= CHUNK / 2 {
                chunk.insert(at, Arc::clone(object));
            } else {
                second.insert(at - CHUNK / 2, Arc::clone(object));
            }
            self.0.insert(chunk_at + 1, second);
        }
    }

    /// Puts `new` in the place of `old`, which has the same key; where `old` is not here, as if there were none.
    pub(super) fn replace(&mut self, old: &Arc<V>, new: &Arc<V>) {
        match self.place_of(old) {
            Some((chunk, at)) => self.0[chunk][at] = Arc::clone(new),
            None => self.insert(new),
        }
    }

    /// Takes an object out.
    pub(super) fn remove(&mut self, object: &Arc<V>) {
        let Some((chunk_at, at)) = self.place_of(object) else { return };
        let chunk = &mut self.0[chunk_at];
        chunk.remove(at);
        if chunk.is_empty() {
            self.drop_chunk(chunk_at);
        } else if chunk.len() <= CHUNK / 4 {
            self.join(chunk_at);
        }
    }

    /// Joins a small chunk to a neighbour that has room, and gives memory back.
    fn join(&mut self, at: usize) {
        let fits =
            |first: usize| self.0.get(first + 1).is_some_and(|second| self.0[first].len() + second.len() <= CHUNK / 2);
        let first = [at.saturating_sub(1), at].into_iter().find(|&first| fits(first));
        if let Some(first) = first {
            let second = self.drop_chunk(first + 1);
            self.0[first].extend(second);
        }
        let chunk = &mut self.0[first.unwrap_or(at)];
        if chunk.spilled() && chunk.len() <= chunk.capacity() / 4 {
            chunk.shrink_to_fit();
        }
    }

    fn drop_chunk(&mut self, at: usize) -> Chunk<V> {
        let chunk = self.0.remove(at);
        if self.0.spilled() && self.0.len() <= (self.0.capacity() / 4).max(1) {
            self.0.shrink_to_fit();
        }
        chunk
    }

    /// The chunk where that key is or would be.
    fn chunk_of(&self, key: &ObjectKey) -> Option<usize> {
        let last = self.0.len().checked_sub(1)?;
        // One chunk is the rule, and nothing of it needs to be looked at.
        Some(self.0[1..=last].partition_point(|chunk| chunk.first().is_some_and(|first| first.meta().key <= *key)))
    }

    fn place_of(&self, object: &Arc<V>) -> Option<(usize, usize)> {
        let chunk = self.chunk_of(&object.meta().key)?;
        let at = self.0[chunk].iter().position(|other| Arc::ptr_eq(other, object))?;
        Some((chunk, at))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kcm_api::PartialObjectMeta;
    use proptest::prelude::*;

    use super::*;

    const NAMES: u32 = 1000;

    const CASES: u32 = 48;

    fn object(number: u32) -> Arc<PartialObjectMeta> {
        let json = format!(r#"{{"metadata":{{"name":"o{number:04}"}}}}"#);
        Arc::new(PartialObjectMeta::decode(&json).unwrap())
    }

    /// Puts objects in, takes them out or puts others in their place; several in a row, so that chunks fill and empty.
    #[derive(Debug, Clone)]
    enum Op {
        Put { from: u32, count: u32, step: u32 },
        Remove { from: u32, count: u32, step: u32 },
    }

    fn op() -> impl Strategy<Value = Op> {
        let row = || (0..NAMES, 0..NAMES, prop_oneof![Just(1_u32), Just(7), Just(NAMES - 1)]);
        prop_oneof![
            row().prop_map(|(from, count, step)| Op::Put { from, count, step }),
            row().prop_map(|(from, count, step)| Op::Remove { from, count, step }),
        ]
    }

    fn numbers(from: u32, count: u32, step: u32) -> impl Iterator<Item = u32> {
        (0..count).map(move |at| (from + at * step) % NAMES)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(CASES))]
        #[test]
        fn holds_what_a_sorted_map_holds(ops in prop::collection::vec(op(), 1..12)) {
            let mut bucket = SortedChunks::new();
            let mut model = BTreeMap::new();
            for op in ops {
                match op {
                    Op::Put { from, count, step } => for number in numbers(from, count, step) {
                        let new = object(number);
                        match model.insert(number, Arc::clone(&new)) {
                            Some(old) => bucket.replace(&old, &new),
                            None => bucket.insert(&new),
                        }
                    },
                    Op::Remove { from, count, step } => for number in numbers(from, count, step) {
                        match model.remove(&number) {
                            Some(old) => bucket.remove(&old),
                            None => bucket.remove(&object(number)),
                        }
                    },
                }
                let (found, expected) = (bucket.objects(), model.values().cloned().collect::<Vec<_>>());
                prop_assert!(found.len() == expected.len() && bucket.len() == expected.len());
                prop_assert!(found.iter().zip(&expected).all(|(a, b)| Arc::ptr_eq(a, b)));
                prop_assert_eq!(bucket.is_empty(), expected.is_empty());
                prop_assert!(bucket.0.iter().all(|chunk| (1..=CHUNK).contains(&chunk.len())));
            }
        }
    }

    #[test]
    fn a_list_in_order_fills_its_chunks_and_what_empties_is_joined() {
        let all: Vec<_> = (0..NAMES).map(object).collect();
        let mut bucket = SortedChunks::new();
        for object in &all {
            bucket.insert(object);
        }
        assert_eq!(bucket.0.len(), all.len().div_ceil(CHUNK));
        for (_, object) in all.iter().enumerate().filter(|(at, _)| at % 100 != 0) {
            bucket.remove(object);
        }
        assert_eq!(bucket.len(), 10);
        let room: usize = bucket.0.iter().map(SmallVec::capacity).sum();
        assert!(bucket.0.len() == 1 && room < CHUNK, "{} chunks with room for {room}", bucket.0.len());
        assert!(!bucket.0.spilled());
    }

    #[test]
    fn there_is_never_a_second_object_of_a_key() {
        let mut bucket = SortedChunks::new();
        let [first, second, unknown] = [object(1), object(1), object(1)];
        bucket.insert(&first);
        bucket.insert(&second);
        assert!(matches!(&bucket.objects()[..], [only] if Arc::ptr_eq(only, &second)));
        bucket.replace(&unknown, &first);
        assert!(matches!(&bucket.objects()[..], [only] if Arc::ptr_eq(only, &first)));
    }
}
