//! The scheduling queue: by priority, then by age. Pure.
//!
//! Pods of one shape fit on the same nodes, so one of them is tried for all: waiting pods cost nothing until something
//! changes, and then one attempt per shape.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kcm_api::ObjectKey;

use super::wants::Wants;

/// Sort key: highest priority first, then arrival.
type Order = (Reverse<i64>, u64);

#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) wants: Arc<Wants>,
    order: Order,
    /// The last reported reason.
    pub(crate) said: Option<Arc<str>>,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    pods: BTreeMap<ObjectKey, Waiting>,
    shapes: BTreeMap<u64, BTreeSet<(Order, ObjectKey)>>,
    /// Unschedulable shapes, with the reason of the last attempt.
    blocked: BTreeMap<u64, Arc<str>>,
    arrived: u64,
}

impl Queue {
    pub(crate) fn get(&self, pod: &ObjectKey) -> Option<&Waiting> {
        self.pods.get(pod)
    }

    /// Adds or updates a pod; it keeps the position of its first arrival.
    pub(crate) fn insert(&mut self, pod: &ObjectKey, priority: i64, wants: Wants) {
        let old = self.remove(pod);
        let unchanged = old.as_ref().is_some_and(|old| old.wants.shape == wants.shape);
        let arrival = old.as_ref().map_or_else(
            || {
                self.arrived += 1;
                self.arrived
            },
            |old| old.order.1,
        );
        let order = (Reverse(priority), arrival);
        self.shapes.entry(wants.shape).or_default().insert((order, pod.clone()));
        let said = old.and_then(|old| old.said).filter(|_| unchanged);
        self.pods.insert(pod.clone(), Waiting { wants: Arc::new(wants), order, said });
    }

    pub(crate) fn remove(&mut self, pod: &ObjectKey) -> Option<Waiting> {
        let waiting = self.pods.remove(pod)?;
        let shape = waiting.wants.shape;
        if let Some(pods) = self.shapes.get_mut(&shape) {
            pods.remove(&(waiting.order, pod.clone()));
            if pods.is_empty() {
                self.shapes.remove(&shape);
                self.blocked.remove(&shape);
            }
        }
        Some(waiting)
    }

    /// Returns the next pod to try.
    pub(crate) fn next(&self) -> Option<ObjectKey> {
        let open = self.shapes.iter().filter(|(shape, _)| !self.blocked.contains_key(shape));
        open.filter_map(|(_, pods)| pods.first()).min().map(|(_, pod)| pod.clone())
    }

    /// Marks a shape as unschedulable; returns the pods whose condition has to be written.
    ///
    /// With very many waiting pods these are only the first one and those without a condition.
    pub(crate) fn block(&mut self, shape: u64, why: &Arc<str>) -> Vec<ObjectKey> {
        const FEW: usize = 100;
        self.blocked.insert(shape, why.clone());
        let Some(pods) = self.shapes.get(&shape) else { return Vec::new() };
        let few = pods.len() <= FEW;
        let mut unreported = Vec::new();
        for (at, (_, pod)) in pods.iter().enumerate() {
            let Some(waiting) = self.pods.get_mut(pod) else { continue };
            let news = waiting.said.as_ref().is_none_or(|said| (few || at == 0) && said != why);
            if news {
                waiting.said = Some(why.clone());
                unreported.push(pod.clone());
            }
        }
        unreported
    }

    /// Makes all shapes schedulable again.
    pub(crate) fn unblock(&mut self) {
        self.blocked.clear();
    }

    /// Makes shapes with inter-pod constraints schedulable again after a pod was bound.
    pub(crate) fn unblock_followers(&mut self) {
        let Self { pods, shapes, blocked, .. } = self;
        blocked.retain(|shape, _| {
            let first = shapes.get(shape).and_then(|shape| shape.first());
            let wants = first.and_then(|(_, pod)| pods.get(pod)).map(|waiting| &waiting.wants);
            wants.is_some_and(|wants| wants.affinity.is_empty() && wants.spread.is_empty())
        });
    }

    /// Reports whether there is no pod to try.
    pub(crate) fn is_idle(&self) -> bool {
        self.shapes.keys().all(|shape| self.blocked.contains_key(shape))
    }

    /// Returns the reason why a shape is unschedulable, if it was tried.
    pub(crate) fn reason(&self, shape: u64) -> Option<&Arc<str>> {
        self.blocked.get(&shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("default", name)
    }

    fn wants(cpu: &str) -> Wants {
        let container = json!({ "resources": { "requests": { "cpu": cpu } } });
        super::super::wants::read(&json!({ "spec": { "containers": [container] } }))
    }

    #[test]
    fn higher_priority_comes_first_then_age() {
        let mut queue = Queue::default();
        for (name, priority) in [("old", 0), ("young", 0), ("high", 10)] {
            queue.insert(&key(name), priority, wants("1"));
        }
        let mut order = Vec::new();
        while let Some(next) = queue.next() {
            queue.remove(&next);
            order.push(next.name().to_owned());
        }
        assert_eq!(order, ["high", "old", "young"]);
        assert!(queue.is_idle());
    }

    #[test]
    fn one_pod_is_tried_for_all_of_its_shape() {
        let mut queue = Queue::default();
        for name in ["a", "b"] {
            queue.insert(&key(name), 0, wants("8"));
        }
        queue.insert(&key("c"), 0, wants("1"));
        let (shape, why): (u64, Arc<str>) = (wants("8").shape, "no".into());
        assert_eq!(queue.block(shape, &why), [key("a"), key("b")]);
        assert_eq!(queue.next(), Some(key("c")));
        queue.remove(&key("c"));
        assert!(queue.is_idle());
        queue.unblock();
        assert_eq!(queue.next(), Some(key("a")));
        assert_eq!(queue.block(shape, &why), [], "nothing new is said");
        queue.insert(&key("d"), 0, wants("8"));
        assert_eq!(queue.block(shape, &why), [key("d")]);
    }
}
