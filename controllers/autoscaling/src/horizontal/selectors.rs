//! Which autoscalers select which pods: pods that belong to several are not scaled by any.

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_api::views::Pod;
use kcm_api::{Labels, ObjectKey, Selector};
use parking_lot::Mutex;

/// The selectors of the targets of autoscalers, by namespace and name, as their last syncs have found them.
#[derive(Debug, Default)]
pub(super) struct Selectors(Mutex<BTreeMap<Box<str>, ByName>>);

type ByName = BTreeMap<Box<str>, Selector>;

impl Selectors {
    /// Sets the selector of an autoscaler, and returns the autoscalers that select any of the pods, as upstream prints
    /// them: `[{name namespace} …]`; absent where it is this one at most.
    pub(super) fn ambiguous(&self, autoscaler: &ObjectKey, selector: &Selector, pods: &[Arc<Pod>]) -> Option<String> {
        let namespace = autoscaler.namespace().unwrap_or_default();
        let mut all = self.0.lock();
        let others = all.entry(namespace.into()).or_default();
        others.insert(autoscaler.name().into(), selector.clone());
        // Most pods of a target have equal labels.
        let mut distinct: Vec<&Labels> = Vec::new();
        for pod in pods {
            if !distinct.iter().rev().take(8).any(|labels| **labels == pod.metadata.labels) {
                distinct.push(&pod.metadata.labels);
            }
        }
        let selects = |selector: &Selector| distinct.iter().any(|labels| selector.matches(labels));
        let selecting: Vec<String> = others
            .iter()
            .filter(|(_, selector)| selects(selector))
            .map(|(name, _)| format!("{{{name} {namespace}}}"))
            .collect();
        (selecting.len() > 1).then(|| format!("[{}]", selecting.join(" ")))
    }

    /// Forgets an autoscaler that is gone.
    pub(super) fn forget(&self, autoscaler: &ObjectKey) {
        let namespace = autoscaler.namespace().unwrap_or_default();
        let mut all = self.0.lock();
        if let Some(others) = all.get_mut(namespace) {
            others.remove(autoscaler.name());
            if others.is_empty() {
                all.remove(namespace);
            }
        }
    }
}
