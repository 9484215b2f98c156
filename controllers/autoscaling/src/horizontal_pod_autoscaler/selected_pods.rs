//! The pods of a target, found without a walk through the namespace.

use std::sync::{Arc, OnceLock};

use kcm_framework::api::views::Pod;
use kcm_framework::api::{Fnv1a, Selector};
use kcm_framework::informers::{Index, Informer};

/// Labels with a value for each template, which no target selects by alone: an index of them would take memory.
const NOT_INDEXED: [&str; 2] = ["pod-template-hash", "controller-revision-hash"];

/// The pods of the cluster by their labels.
pub(super) struct SelectedPods {
    pods: Informer<Pod>,
    /// 8 bytes per label of each pod, and only where there are autoscalers: the first sync makes it.
    by_label: OnceLock<Index<Pod, u64>>,
}

impl SelectedPods {
    pub(super) const fn new(pods: Informer<Pod>) -> Self {
        Self { pods, by_label: OnceLock::new() }
    }

    /// The pods of a namespace that a selector selects.
    pub(super) fn of(&self, namespace: &str, selector: &Selector) -> Vec<Arc<Pod>> {
        let by_label = self.by_label.get_or_init(|| self.pods.index("label", label_keys));
        let required = selector.required_labels().filter(|(name, _)| is_indexed(name));
        let keys = required.map(|(name, value)| label_key(namespace, name, value));
        let mut pods = match keys.min_by_key(|key| by_label.count(key)) {
            Some(fewest) => by_label.get(&fewest),
            None => self.pods.in_namespace(namespace),
        };
        pods.retain(|pod| pod.metadata.key.namespace() == Some(namespace) && selector.matches(&pod.metadata.labels));
        pods
    }
}

fn is_indexed(label: &str) -> bool {
    !NOT_INDEXED.contains(&label)
}

fn label_keys(pod: &Pod) -> Vec<u64> {
    let namespace = pod.metadata.key.namespace().unwrap_or_default();
    let labels = pod.metadata.labels.iter().filter(|(name, _)| is_indexed(name));
    labels.map(|(name, value)| label_key(namespace, name, value)).collect()
}

/// The key of a label in an index. Two labels may have the same: who reads the index matches the selector again.
pub(super) fn label_key(namespace: &str, name: &str, value: &str) -> u64 {
    Fnv1a::new().part(namespace).part(name).part(value).value()
}
