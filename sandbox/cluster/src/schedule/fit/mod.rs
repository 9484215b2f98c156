//! Node selection for a pod: filters and scoring. Pure.
//!
//! # Upstream
//! The filters of `pkg/scheduler/framework/plugins`, in their order; of several reasons against a node those
//! of the first filter count.

mod neighbours;

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_api::Labels;
use kcm_api::scheduling::Taint;
use serde_json::{Value, json};

use self::neighbours::Neighbours;
use super::placed::Placed;
use super::wants::{Expression, HostPort, NodeTerm, Wants, taint, tolerates};
use crate::dice::Dice;
use crate::resource_list::ResourceList;
use kcm_sandbox_apiserver::json;
use kcm_sandbox_apiserver::json::labels_of;

const PODS: &str = "pods";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// A node and its allocated resources.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) labels: Labels,
    taints: Vec<Taint>,
    unschedulable: bool,
    allocatable: ResourceList,
    used: ResourceList,
    /// Allocated CPU and memory for scoring.
    weight: (i64, i64),
    pods: i64,
    ports: Vec<HostPort>,
}

/// The reason why a pod does not fit on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    reasons: Vec<String>,
    /// Whether preemption cannot help.
    for_good: bool,
}

impl Refusal {
    fn for_good(reason: impl Into<String>) -> Self {
        Self { reasons: vec![reason.into()], for_good: true }
    }

    fn for_now(reason: impl Into<String>) -> Self {
        Self { reasons: vec![reason.into()], for_good: false }
    }
}

/// The taint of a node that is unschedulable.
fn cordon() -> Taint {
    taint(&json!({ "key": UNSCHEDULABLE, "effect": "NoSchedule" }))
}

impl Node {
    /// Creates a node without pods.
    pub(crate) fn new(node: &Value) -> Self {
        Self {
            labels: labels_of(node),
            taints: json::list(node, &["spec", "taints"]).iter().map(taint).collect(),
            unschedulable: json::at(node, &["spec", "unschedulable"]).is_some_and(|it| *it == true),
            allocatable: ResourceList::read(json::at(node, &["status", "allocatable"])),
            used: ResourceList::default(),
            weight: (0, 0),
            pods: 0,
            ports: Vec::new(),
        }
    }

    /// Updates the node from its object; returns whether waiting pods might fit now.
    pub(crate) fn update(&mut self, node: &Value) -> bool {
        let new = Self::new(node);
        let helps = new.labels != self.labels
            || new.taints != self.taints
            || new.unschedulable != self.unschedulable
            || new.allocatable != self.allocatable;
        let Self { labels, taints, unschedulable, allocatable, .. } = new;
        (self.labels, self.taints, self.unschedulable, self.allocatable) = (labels, taints, unschedulable, allocatable);
        helps
    }

    pub(crate) fn take(&mut self, wants: &Wants) {
        self.used.add(&wants.requests);
        self.weight.0 += wants.weight.0;
        self.weight.1 += wants.weight.1;
        self.pods += 1;
        self.ports.extend(wants.host_ports.iter().cloned());
    }

    pub(crate) fn free(&mut self, wants: &Wants) {
        self.used.subtract(&wants.requests);
        self.weight.0 -= wants.weight.0;
        self.weight.1 -= wants.weight.1;
        self.pods -= 1;
        for port in &wants.host_ports {
            if let Some(at) = self.ports.iter().position(|taken| taken == port) {
                self.ports.swap_remove(at);
            }
        }
    }

    fn fits(&self, name: &str, wants: &Wants) -> Result<(), Refusal> {
        let tolerated = |taint: &Taint| wants.tolerations.iter().any(|toleration| tolerates(toleration, taint));
        if self.unschedulable && !tolerated(&cordon()) {
            return Err(Refusal::for_good("node(s) were unschedulable"));
        }
        if !self.is_tolerated(wants) {
            return Err(Refusal::for_good("node(s) had untolerated taint(s)"));
        }
        if !self.is_selected(name, wants) {
            return Err(Refusal::for_good("node(s) didn't match Pod's node affinity/selector"));
        }
        if wants.host_ports.iter().any(|port| self.ports.iter().any(|taken| taken.collides(port))) {
            return Err(Refusal::for_now("node(s) didn't have free ports for the requested pod ports"));
        }
        self.has_room(wants)
    }

    fn is_tolerated(&self, wants: &Wants) -> bool {
        let mut hard = self.taints.iter().filter(|taint| taint.prevents_scheduling());
        hard.all(|taint| wants.tolerations.iter().any(|toleration| tolerates(toleration, taint)))
    }

    fn is_selected(&self, name: &str, wants: &Wants) -> bool {
        wants.node_selector.iter().all(|(key, value)| self.labels.get(key) == Some(value))
            && wants.node_terms.as_ref().is_none_or(|terms| terms.iter().any(|term| self.fits_term(name, term)))
    }

    fn fits_term(&self, name: &str, term: &NodeTerm) -> bool {
        // A term without expressions matches no node.
        !(term.labels.is_empty() && term.fields.is_empty())
            && term.labels.iter().all(|expression| holds(expression, self.labels.get(&expression.key)))
            && term.fields.iter().all(|field| field.key == "metadata.name" && holds(field, Some(name)))
    }

    fn has_room(&self, wants: &Wants) -> Result<(), Refusal> {
        let mut reasons = Vec::new();
        let mut for_good = false;
        if (self.pods + 1) * 1000 > self.allocatable.get(PODS) {
            reasons.push("Too many pods".to_owned());
        }
        for (resource, requested) in wants.requests.iter().filter(|(_, requested)| *requested > 0) {
            let there = self.allocatable.get(resource);
            if requested > there - self.used.get(resource) {
                reasons.push(format!("Insufficient {resource}"));
                for_good |= requested > there;
            }
        }
        if reasons.is_empty() { Ok(()) } else { Err(Refusal { reasons, for_good }) }
    }

    /// Returns the least-allocated score.
    fn score(&self, wants: &Wants) -> i64 {
        let share = |there: i64, taken: i64| {
            if there <= 0 {
                return 0;
            }
            let ten_thousandths = i128::from((there - taken).max(0)) * 10_000 / i128::from(there);
            i64::try_from(ten_thousandths).expect("a share must be at most all")
        };
        let cpu = share(self.allocatable.get("cpu"), self.weight.0 + wants.weight.0);
        let memory = share(self.allocatable.get("memory"), self.weight.1 + wants.weight.1);
        i64::midpoint(cpu, memory)
    }
}

fn holds(expression: &Expression, value: Option<&str>) -> bool {
    let values = &expression.values;
    let number = |text: &str| text.parse::<i64>().ok();
    let bound = || values.first().filter(|_| values.len() == 1).and_then(|bound| number(bound));
    let compare = |order: fn(&i64, &i64) -> bool| {
        value.and_then(number).zip(bound()).is_some_and(|(value, bound)| order(&value, &bound))
    };
    match expression.operator.as_str() {
        "In" => value.is_some_and(|value| values.iter().any(|it| it == value)),
        "NotIn" => value.is_none_or(|value| values.iter().all(|it| it != value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compare(i64::gt),
        "Lt" => compare(i64::lt),
        _ => false,
    }
}

/// Selects a node for a pod, or returns upstream's message why none fits.
pub(crate) fn choose(
    nodes: &BTreeMap<Arc<str>, Node>,
    placed: &mut Placed,
    wants: &Wants,
    dice: Dice,
    uid: &str,
) -> Result<Arc<str>, String> {
    if nodes.is_empty() {
        return Err("no nodes available to schedule pods".to_owned());
    }
    let neighbours = Neighbours::look(nodes, placed, wants);
    let mut best: Option<(i64, u64, &Arc<str>)> = None;
    let mut refusals: Vec<Refusal> = Vec::new();
    for (name, node) in nodes {
        match node.fits(name, wants).and_then(|()| neighbours.fits(node, wants)) {
            Ok(()) => {
                let rank = (node.score(wants), dice.number(&[uid, name]), name);
                if best.is_none_or(|best| best < rank) {
                    best = Some(rank);
                }
            }
            Err(refusal) => refusals.push(refusal),
        }
    }
    best.map(|(_, _, name)| name.clone()).ok_or_else(|| explain(nodes.len(), &refusals))
}

/// # Upstream
/// `FitError` and what the preemption plugin adds to it
fn explain(nodes: usize, refusals: &[Refusal]) -> String {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in refusals.iter().flat_map(|refusal| &refusal.reasons) {
        *reasons.entry(reason).or_default() += 1;
    }
    let for_good = refusals.iter().filter(|refusal| refusal.for_good).count();
    let outlook = [
        (refusals.len() - for_good, "No preemption victims found for incoming pod"),
        (for_good, "Preemption is not helpful for scheduling"),
    ];
    let outlook = outlook.into_iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count} {why}"));
    let sorted = |counted: Vec<String>| {
        let mut counted = counted;
        counted.sort();
        counted.join(", ")
    };
    let reasons = sorted(reasons.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect());
    let outlook = sorted(outlook.collect());
    format!("0/{nodes} nodes are available: {reasons}. preemption: 0/{nodes} nodes are available: {outlook}.")
}

#[cfg(test)]
mod tests;
