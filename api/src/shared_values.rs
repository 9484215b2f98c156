//! The values that an interner keeps once.

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A value that can be [`Shared`](crate::Shared).
pub trait Shareable: Send + Sync + 'static {
    /// Returns `true` if one value can stand for the other. Values that are equal but print differently cannot.
    fn is_same(&self, other: &Self) -> bool;

    /// Feeds a part of the value that is the same for values of which one can stand for the other.
    fn digest<H: Hasher>(&self, state: &mut H);
}

impl<T: Hash + Eq + Send + Sync + 'static> Shareable for [T] {
    fn is_same(&self, other: &Self) -> bool {
        self == other
    }

    fn digest<H: Hasher>(&self, state: &mut H) {
        self.hash(state);
    }
}

/// The shared values of an interner, by their type.
///
/// Unused values are dropped when a type's set has doubled since its last sweep, so it never holds more than twice the
/// values in use.
#[derive(Default)]
pub(crate) struct SharedValues(HashMap<TypeId, Box<dyn Any + Send>>);

impl SharedValues {
    const SMALLEST_SWEEP: usize = 256;

    /// Returns the copy of `value` that is kept, which is `value` itself if it is the first.
    pub(crate) fn share<T: Shareable + ?Sized>(&mut self, value: Arc<T>) -> Arc<T> {
        let set = self.0.entry(TypeId::of::<Set<T>>()).or_insert_with(|| Box::new(Set::<T>::default()));
        match set.downcast_mut::<Set<T>>() {
            Some(set) => set.share(value),
            None => value,
        }
    }
}

struct Set<T: ?Sized> {
    values: HashSet<Same<T>>,
    sweep_at: usize,
}

impl<T: ?Sized> Default for Set<T> {
    fn default() -> Self {
        Self { values: HashSet::default(), sweep_at: 0 }
    }
}

impl<T: Shareable + ?Sized> Set<T> {
    fn share(&mut self, value: Arc<T>) -> Arc<T> {
        let value = Same(value);
        if let Some(known) = self.values.get(&value) {
            return Arc::clone(&known.0);
        }
        if self.values.len() >= self.sweep_at.max(SharedValues::SMALLEST_SWEEP) {
            self.values.retain(|value| Arc::strong_count(&value.0) > 1);
            self.values.shrink_to_fit();
            self.sweep_at = self.values.len() * 2;
        }
        let shared = Arc::clone(&value.0);
        self.values.insert(value);
        shared
    }
}

/// A value that is compared by [`Shareable::is_same`].
struct Same<T: ?Sized>(Arc<T>);

impl<T: Shareable + ?Sized> PartialEq for Same<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(&other.0)
    }
}

impl<T: Shareable + ?Sized> Eq for Same<T> {}

impl<T: Shareable + ?Sized> Hash for Same<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.digest(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_values_are_swept() {
        let mut values = Set::<[u32]>::default();
        let kept: Vec<Arc<[u32]>> = (0..10).map(|number| values.share(Arc::from([number]))).collect();
        for number in 0..10_000 {
            drop(values.share(Arc::from([number, number])));
            assert!(values.values.len() <= SharedValues::SMALLEST_SWEEP);
        }
        for value in kept {
            assert!(Arc::ptr_eq(&values.share(Arc::from(&*value)), &value));
        }
    }
}
