//! Inter-pod constraints: affinity, anti-affinity, topology spread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Node, Refusal};
use crate::schedule::placed::Placed;
use crate::schedule::wants::{Group, PodTerm, Spread, Wants};

/// The inter-pod constraints of a new pod, computed from the placed pods.
pub(super) struct Neighbours {
    /// For each affinity term the topology values with a matching pod.
    near: Vec<(PodTerm, BTreeSet<String>)>,
    /// Whether no pod matches any affinity term and the pod itself matches all: it is the first of its group.
    first: bool,
    far: Vec<(PodTerm, BTreeSet<String>)>,
    /// Topology keys and values that the anti-affinity of placed pods excludes.
    kept: BTreeSet<(String, String)>,
    spread: Vec<Domains>,
}

struct Domains {
    constraint: Spread,
    counts: BTreeMap<String, i64>,
    least: i64,
    /// Whether the pod matches the constraint itself.
    own: bool,
}

impl Neighbours {
    pub(super) fn look(nodes: &BTreeMap<Arc<str>, Node>, placed: &mut Placed, wants: &Wants) -> Self {
        let values = |counts: &BTreeMap<Arc<str>, i64>, topology: &str| -> BTreeSet<String> {
            let nodes = counts.keys().filter_map(|name| nodes.get(name));
            nodes.filter_map(|node| node.labels.get(topology).map(str::to_owned)).collect()
        };
        let mut kept = BTreeSet::new();
        for (term, holders) in placed.refusing(wants) {
            let held = values(&holders, &term.topology);
            kept.extend(held.into_iter().map(|value| (term.topology.clone(), value)));
        }
        let mut look = |terms: &[PodTerm]| -> Vec<(PodTerm, BTreeSet<String>)> {
            terms.iter().map(|term| (term.clone(), values(placed.counts(&term.group), &term.topology))).collect()
        };
        let near = look(&wants.affinity);
        let far = look(&wants.anti_affinity);
        let first = near.iter().all(|(term, values)| values.is_empty() && is_member(wants, &term.group));
        let spread = wants.spread.iter().map(|constraint| Domains::look(nodes, placed, wants, constraint)).collect();
        Self { near, first, far, kept, spread }
    }

    pub(super) fn fits(&self, node: &Node, wants: &Wants) -> Result<(), Refusal> {
        for domains in &self.spread {
            domains.fits(node)?;
        }
        let among = |(term, values): &(PodTerm, BTreeSet<String>)| {
            node.labels.get(&term.topology).is_some_and(|value| values.contains(value))
        };
        let known = |(term, _): &(PodTerm, BTreeSet<String>)| node.labels.contains_key(&term.topology);
        let near = if self.first { self.near.iter().all(known) } else { self.near.iter().all(among) };
        if !wants.affinity.is_empty() && !near {
            return Err(Refusal::for_good("node(s) didn't match pod affinity rules"));
        }
        if self.far.iter().any(among) {
            return Err(Refusal::for_now("node(s) didn't match pod anti-affinity rules"));
        }
        let refused = |(topology, value): &(String, String)| node.labels.get(topology) == Some(value);
        if self.kept.iter().any(refused) {
            return Err(Refusal::for_now("node(s) didn't satisfy existing pods anti-affinity rules"));
        }
        Ok(())
    }
}

impl Domains {
    fn look(nodes: &BTreeMap<Arc<str>, Node>, placed: &mut Placed, wants: &Wants, constraint: &Spread) -> Self {
        let pods = placed.counts(&constraint.group);
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for (name, node) in nodes {
            let counted = wants.spread.iter().all(|other| node.labels.contains_key(&other.topology))
                && (!constraint.honours_affinity || node.is_selected(name, wants))
                && (!constraint.honours_taints || node.is_tolerated(wants));
            if let Some(value) = node.labels.get(&constraint.topology).filter(|_| counted) {
                *counts.entry(value.to_owned()).or_default() += pods.get(name).copied().unwrap_or(0);
            }
        }
        let least = if counts.len() < constraint.min_domains { 0 } else { counts.values().copied().min().unwrap_or(0) };
        Self { constraint: constraint.clone(), counts, least, own: is_member(wants, &constraint.group) }
    }

    fn fits(&self, node: &Node) -> Result<(), Refusal> {
        const MISMATCH: &str = "node(s) didn't match pod topology spread constraints";
        let Some(value) = node.labels.get(&self.constraint.topology) else {
            return Err(Refusal::for_good(format!("{MISMATCH} (missing required label)")));
        };
        let there = self.counts.get(value).copied().unwrap_or(0) + i64::from(self.own);
        if there - self.least > self.constraint.max_skew { Err(Refusal::for_now(MISMATCH)) } else { Ok(()) }
    }
}

/// Reports whether a pod matches a group.
fn is_member(wants: &Wants, group: &Group) -> bool {
    group.includes(wants, &group.selector())
}
