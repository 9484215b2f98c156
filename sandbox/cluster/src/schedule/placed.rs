//! Index of bound pods for inter-pod constraints. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_api::{ObjectKey, Selector};

use super::wants::{Group, PodTerm, Wants};

/// Maximum number of cached groups; beyond it the cache is cleared.
const GROUPS: usize = 1_000;

#[derive(Debug)]
struct Counted {
    selector: Selector,
    by_node: BTreeMap<Arc<str>, i64>,
}

/// The bound pods. Adding one costs time proportional to the number of cached groups, not of pods.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    pods: BTreeMap<ObjectKey, (Arc<str>, Arc<Wants>)>,
    groups: BTreeMap<Group, Counted>,
    /// Anti-affinity terms of bound pods, with the nodes of those pods.
    refusals: BTreeMap<PodTerm, Counted>,
}

impl Placed {
    pub(crate) fn get(&self, pod: &ObjectKey) -> Option<&(Arc<str>, Arc<Wants>)> {
        self.pods.get(pod)
    }

    /// Returns all pods of a node.
    pub(crate) fn of_node<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Arc<Wants>> {
        self.pods.values().filter(move |(of, _)| **of == *node).map(|(_, wants)| wants)
    }

    pub(crate) fn insert(&mut self, pod: &ObjectKey, node: &Arc<str>, wants: &Arc<Wants>) {
        self.count(node, wants, 1);
        self.pods.insert(pod.clone(), (node.clone(), wants.clone()));
    }

    pub(crate) fn remove(&mut self, pod: &ObjectKey) -> Option<(Arc<str>, Arc<Wants>)> {
        let (node, wants) = self.pods.remove(pod)?;
        self.count(&node, &wants, -1);
        Some((node, wants))
    }

    fn count(&mut self, node: &Arc<str>, wants: &Wants, by: i64) {
        for (group, counted) in &mut self.groups {
            if group.includes(wants, &counted.selector) {
                counted.add(node, by);
            }
        }
        for term in &wants.anti_affinity {
            let counted = self.refusals.entry(term.clone()).or_insert_with(|| Counted::new(&term.group));
            counted.add(node, by);
            if counted.by_node.is_empty() {
                self.refusals.remove(term);
            }
        }
    }

    /// Returns the number of pods of a group by node.
    pub(crate) fn counts(&mut self, group: &Group) -> &BTreeMap<Arc<str>, i64> {
        if self.groups.len() >= GROUPS && !self.groups.contains_key(group) {
            self.groups.clear();
        }
        let pods = &self.pods;
        let counted = self.groups.entry(group.clone()).or_insert_with(|| {
            let mut counted = Counted::new(group);
            for (node, wants) in pods.values() {
                if group.includes(wants, &counted.selector) {
                    counted.add(node, 1);
                }
            }
            counted
        });
        &counted.by_node
    }

    /// Returns the anti-affinity terms of bound pods that match a new one, with their nodes.
    pub(crate) fn refusing(&self, wants: &Wants) -> Vec<(PodTerm, BTreeMap<Arc<str>, i64>)> {
        let refusing = self.refusals.iter().filter(|(term, counted)| term.group.includes(wants, &counted.selector));
        refusing.map(|(term, counted)| (term.clone(), counted.by_node.clone())).collect()
    }
}

impl Counted {
    fn new(group: &Group) -> Self {
        Self { selector: group.selector(), by_node: BTreeMap::new() }
    }

    fn add(&mut self, node: &Arc<str>, by: i64) {
        let count = self.by_node.entry(node.clone()).or_default();
        *count += by;
        if *count == 0 {
            self.by_node.remove(node);
        }
    }
}

impl Group {
    pub(crate) fn includes(&self, wants: &Wants, selector: &Selector) -> bool {
        (self.namespaces.is_empty() || self.namespaces.iter().any(|namespace| **namespace == *wants.namespace))
            && selector.matches(&wants.labels)
    }
}
