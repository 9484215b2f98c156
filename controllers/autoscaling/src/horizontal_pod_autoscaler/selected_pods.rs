//! The pods of a target, found without a walk through the namespace.

use std::sync::{Arc, OnceLock};

use kcm_framework::api::Selector;
use kcm_framework::api::views::Pod;
use kcm_framework::informers::{Informer, LabelIndex};

/// The pods of the cluster by their labels.
pub(super) struct SelectedPods {
    pods: Informer<Pod>,
    /// Only where there are autoscalers: the first sync makes it.
    by_label: OnceLock<LabelIndex<Pod>>,
}

impl SelectedPods {
    pub(super) const fn new(pods: Informer<Pod>) -> Self {
        Self { pods, by_label: OnceLock::new() }
    }

    /// The pods of a namespace that a selector selects.
    pub(super) fn of(&self, namespace: &str, selector: &Selector) -> Vec<Arc<Pod>> {
        self.by_label.get_or_init(|| LabelIndex::new(&self.pods)).selected(namespace, selector)
    }
}
