//! A map that forgets what was not used for the longest time.

use std::collections::{BTreeMap, HashMap};

/// At most `capacity` values by hashed key.
#[derive(Debug)]
pub(crate) struct Lru<V> {
    capacity: usize,
    values: HashMap<u64, (u64, V)>,
    by_use: BTreeMap<u64, u64>,
    uses: u64,
}

impl<V> Lru<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, values: HashMap::new(), by_use: BTreeMap::new(), uses: 0 }
    }

    /// The value of `key`, made where there is none; used now.
    pub(crate) fn get_or_insert_with(&mut self, key: u64, make: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        if !self.values.contains_key(&key) && self.values.len() >= self.capacity {
            let (_, oldest) = self.by_use.pop_first().expect("every value has a last use");
            self.values.remove(&oldest);
        }
        let (last_use, value) = self.values.entry(key).or_insert_with(|| (0, make()));
        self.by_use.remove(last_use);
        *last_use = self.uses;
        self.by_use.insert(self.uses, key);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_the_least_recently_used() {
        let mut lru = Lru::new(2);
        for key in [1, 2, 1, 3] {
            lru.get_or_insert_with(key, || key);
        }
        let held = |lru: &Lru<u64>, key| lru.values.contains_key(&key);
        assert!(held(&lru, 1) && !held(&lru, 2) && held(&lru, 3));
        assert_eq!(lru.by_use.len(), 2);
    }
}
