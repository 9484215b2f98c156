//! Shared values: one copy of a value that many objects repeat, such as the resource requests of one pod template.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::intern::with_interner;
use crate::shared_values::Shareable;

/// A shared value: equal values that are decoded within one [`Interner`](crate::Interner) share one allocation.
///
/// It takes one word, two for a slice. Cloning it allocates nothing.
pub struct Shared<T: ?Sized>(Arc<T>);

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
}
