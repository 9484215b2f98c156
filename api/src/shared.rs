//! Shared values: one copy of a value that many objects repeat, such as the resource requests of one pod template.

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::intern::with_interner;

/// A value of which equal ones that are decoded within one [`Interner`](crate::Interner) share one allocation.
///
/// It takes one word, two for a slice. Cloning it allocates nothing.
pub struct Shared<T: ?Sized>(Arc<T>);

/// A value that can be [`Shared`].
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

impl<T: Shareable + ?Sized> Shared<T> {
    /// Shares the copy of the current [`Interner::scope`](crate::Interner::scope), or keeps `value` outside of one.
    pub fn new(value: impl Into<Arc<T>>) -> Self {
        let value = value.into();
        Self(with_interner(|interner| match interner {
            Some(interner) => interner.share(value),
            None => value,
        }))
    }

    /// Returns `true` if both are one allocation, which says more than that they are equal.
    #[must_use]
    pub fn is_one_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: PartialEq + ?Sized> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || *self.0 == *other.0
    }
}

impl<T: Eq + ?Sized> Eq for Shared<T> {}

impl<T: Hash + ?Sized> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T: fmt::Debug + ?Sized> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Shareable + Default> Default for Shared<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Default for Shared<[T]> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> From<Vec<T>> for Shared<[T]>
where
    [T]: Shareable,
{
    fn from(values: Vec<T>) -> Self {
        Self::new(values)
    }
}

impl<T, const N: usize> From<[T; N]> for Shared<[T]>
where
    [T]: Shareable,
{
    fn from(values: [T; N]) -> Self {
        Self::new(values)
    }
}

impl<T> FromIterator<T> for Shared<[T]>
where
    [T]: Shareable,
{
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::new(values.into_iter().collect::<Arc<[T]>>())
    }
}

impl<'a, T> IntoIterator for &'a Shared<[T]> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T: Serialize> Serialize for Shared<[T]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shared<[T]>
where
    [T]: Shareable,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
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
    use crate::intern::Interner;
    use crate::needs::Part;
    use crate::view::View;
    use crate::views::{AutoscaledPod, ChargedPod, Pod};

    #[test]
    fn within_a_scope_equal_values_share_one_allocation() {
        let interner = Arc::new(Interner::default());
        let (a, b, c) = interner.scope(|| (Shared::from([1, 2]), Shared::from(vec![1, 2]), Shared::from([1, 3])));
        assert!(a.is_one_with(&b));
        assert!(!a.is_one_with(&c));
        let outside = Shared::from([1, 2]);
        assert_eq!(outside, a);
        assert!(!outside.is_one_with(&a));
    }

    #[test]
    fn pods_of_one_template_share_what_quotas_read_and_another_notation_is_another_value() {
        let pod = |name: &str, memory: &str| {
            let resources = serde_json::json!({ "requests": { "cpu": "100m", "memory": memory } });
            let containers = serde_json::json!([{ "name": "main", "resources": resources }]);
            let pod = serde_json::json!({ "metadata": { "name": name }, "spec": { "containers": containers } });
            Pod::decode(&pod.to_string()).expect("the pod must decode")
        };
        let interner = Arc::new(Interner::default());
        let [one, another, other] =
            interner.scope(|| [pod("web-1", "1Gi"), pod("web-2", "1Gi"), pod("web-3", "1073741824")]);
        let fields = |pod: &Pod| ChargedPod::find(pod).expect("the pod must have the part").fields.clone();
        let requests = |pod: &Pod| AutoscaledPod::find(pod).expect("the pod must have the part").requests.clone();
        assert!(fields(&one).is_one_with(&fields(&another)));
        assert!(requests(&one).is_one_with(&requests(&another)));
        assert_eq!(fields(&one), fields(&other), "the amounts are equal");
        assert!(!fields(&one).is_one_with(&fields(&other)));
        assert!(!requests(&one).is_one_with(&requests(&other)));
        let text = |pod: &Pod| fields(pod).resources.requests.get("memory").map(|it| it.to_string());
        assert_eq!([text(&one), text(&other)], [Some("1Gi".to_owned()), Some("1073741824".to_owned())]);
    }

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
