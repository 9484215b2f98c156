//! Which autoscalers select which pods: pods that belong to several are not scaled by any.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kcm_framework::api::views::Pod;
use kcm_framework::api::{Labels, ObjectKey, Selector};
use kcm_framework::informers::label_key;
use parking_lot::Mutex;

/// The selectors of the targets of autoscalers, by namespace and name, as their last syncs have found them.
#[derive(Debug, Default)]
pub(super) struct Selectors(Mutex<BTreeMap<Box<str>, OfNamespace>>);

/// The selectors of a namespace. Each is listed by one of the labels that it requires, so that a pod is compared with few.
#[derive(Debug, Default)]
struct OfNamespace {
    by_name: BTreeMap<Box<str>, Listed>,
    by_label: HashMap<u64, BTreeSet<Box<str>>>,
    /// Those that require no label with one value.
    others: BTreeSet<Box<str>>,
}

#[derive(Debug)]
struct Listed {
    selector: Selector,
    label: Option<u64>,
}

impl OfNamespace {
    fn insert(&mut self, name: &str, selector: &Selector) {
        if self.by_name.get(name).is_some_and(|listed| listed.selector == *selector) {
            return;
        }
        self.remove(name);
        let labels = selector.required_labels().map(|(name, value)| label_key("", (name, value)));
        // A label that many selectors require, such as that of a team, tells them apart least.
        let label = labels.min_by_key(|label| self.by_label.get(label).map_or(0, BTreeSet::len));
        let names = label.map_or(&mut self.others, |label| self.by_label.entry(label).or_default());
        names.insert(name.into());
        self.by_name.insert(name.into(), Listed { selector: selector.clone(), label });
    }

    fn remove(&mut self, name: &str) {
        let Some(Listed { label, .. }) = self.by_name.remove(name) else { return };
        let Some(label) = label else {
            self.others.remove(name);
            return;
        };
        if let Some(names) = self.by_label.get_mut(&label) {
            names.remove(name);
            if names.is_empty() {
                self.by_label.remove(&label);
            }
        }
    }

    /// The selectors that may select an object with these labels.
    fn candidates(&self, labels: &Labels) -> impl Iterator<Item = (&str, &Selector)> {
        let listed = labels.iter().filter_map(|(name, value)| self.by_label.get(&label_key("", (name, value))));
        let names = listed.flatten().chain(&self.others);
        names.filter_map(|name| Some((&**name, &self.by_name.get(name)?.selector)))
    }
}

impl Selectors {
    /// Sets the selector of an autoscaler, and returns the autoscalers that select any of the pods, `most` of them at most
    /// and sorted by name, as upstream prints them: `[namespace/name …]`. `None` if only this autoscaler selects them.
    pub(super) fn ambiguous(
        &self,
        autoscaler: &ObjectKey,
        selector: &Selector,
        pods: &[Arc<Pod>],
        most: usize,
    ) -> Option<String> {
        let namespace = autoscaler.namespace().unwrap_or_default();
        let mut all = self.0.lock();
        let others = all.entry(namespace.into()).or_default();
        others.insert(autoscaler.name(), selector);
        // Most pods of a target have equal labels.
        let mut distinct: Vec<&Labels> = Vec::new();
        for pod in pods {
            if !distinct.iter().rev().take(8).any(|labels| **labels == pod.metadata.labels) {
                distinct.push(&pod.metadata.labels);
            }
        }
        let selecting = |labels| others.candidates(labels).filter(move |(_, selector)| selector.matches(labels));
        let names: BTreeSet<&str> = distinct.into_iter().flat_map(selecting).map(|(name, _)| name).collect();
        let several = names.len() > 1;
        several.then(|| {
            let names: Vec<String> = names.into_iter().take(most).map(|name| format!("{namespace}/{name}")).collect();
            format!("[{}]", names.join(" "))
        })
    }

    /// Forgets an autoscaler that is gone.
    pub(super) fn forget(&self, autoscaler: &ObjectKey) {
        let namespace = autoscaler.namespace().unwrap_or_default();
        let mut all = self.0.lock();
        if let Some(others) = all.get_mut(namespace) {
            others.remove(autoscaler.name());
            if others.by_name.is_empty() {
                all.remove(namespace);
            }
        }
    }
}
