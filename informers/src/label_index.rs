//! An index of objects by their labels.

use std::sync::Arc;

use kcm_api::{Fnv1a, Labels, Selector, View};

use crate::informer::Informer;
use crate::store::Index;

/// Labels that every replica set or daemon set adds, with a value for each template. An index of them would take memory
/// for each template, and no selector selects by one of them alone.
const NOT_INDEXED: [&str; 2] = ["pod-template-hash", "controller-revision-hash"];

/// The objects of a cache by their labels: a selector is evaluated without a walk through its namespace.
///
/// It keeps 8 bytes for each label of each object. All users of one cache share it.
pub struct LabelIndex<V> {
    objects: Informer<V>,
    by_label: Index<V, u64>,
}

impl<V> Clone for LabelIndex<V> {
    fn clone(&self) -> Self {
        Self { objects: self.objects.clone(), by_label: self.by_label.clone() }
    }
}

impl<V: View> LabelIndex<V> {
    /// Returns the index of the cache of `objects`.
    #[must_use]
    pub fn new(objects: &Informer<V>) -> Self {
        Self { objects: objects.clone(), by_label: objects.index("label", label_keys) }
    }

    /// Returns the objects of a namespace that a selector selects, sorted by name.
    #[must_use]
    pub fn selected(&self, namespace: &str, selector: &Selector) -> Vec<Arc<V>> {
        if selector.is_nothing() {
            return Vec::new();
        }
        let required = selector.required_labels().map(|(name, value)| (&**name, &**value));
        self.matching(namespace, required, |labels| selector.matches(labels))
    }

    /// Returns the objects of a namespace whose labels match, sorted by name. Labels that match have all of the `required`
    /// labels.
    #[must_use]
    pub fn matching<'a>(
        &self,
        namespace: &str,
        required: impl Iterator<Item = (&'a str, &'a str)>,
        matches: impl Fn(&Labels) -> bool,
    ) -> Vec<Arc<V>> {
        let matches = |object: &V| {
            let meta = object.meta();
            // Two labels may have the same index key.
            meta.key.namespace().unwrap_or_default() == namespace && matches(&meta.labels)
        };
        let keys = required.filter(|(name, _)| is_indexed(name)).map(|label| label_key(namespace, label));
        if let Some(fewest) = keys.min_by_key(|key| self.by_label.count(key)) {
            let mut selected = self.by_label.get(&fewest);
            selected.retain(|object| matches(object));
            return selected;
        }
        let mut selected = Vec::new();
        self.objects.for_each_in_namespace(namespace, |object| {
            if matches(object) {
                selected.push(Arc::clone(object));
            }
        });
        selected
    }
}

fn is_indexed(label: &str) -> bool {
    !NOT_INDEXED.contains(&label)
}

fn label_keys<V: View>(object: &V) -> Vec<u64> {
    let meta = object.meta();
    let namespace = meta.key.namespace().unwrap_or_default();
    let labels = meta.labels.iter().filter(|(name, _)| is_indexed(name));
    labels.map(|label| label_key(namespace, label)).collect()
}

/// Returns the key of a label of objects in a namespace, for an index. Two labels may have the same key: the user of the
/// index compares the labels.
#[must_use]
pub fn label_key(namespace: &str, (name, value): (&str, &str)) -> u64 {
    Fnv1a::new().part(namespace).part(name).part(value).value()
}
