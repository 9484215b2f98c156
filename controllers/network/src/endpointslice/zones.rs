//! The distribution of the CPUs of the cluster over zones.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kcm_framework::api::views::Node;
use kcm_framework::api::{Meta, ObjectKey};
use kcm_framework::informers::Change;

/// The label of a node that names its zone.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// Nodes with one of these labels serve no traffic of the cluster.
const EXCLUDED: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// The share of each zone in the CPUs of the ready nodes; they add up to 1.
pub(super) type Shares = BTreeMap<String, f64>;

/// The CPUs of the ready nodes by zone, kept up to date with each change of a node.
#[derive(Debug, Default)]
pub(super) struct ZoneCpus {
    /// Thousandths of CPUs, and the number of nodes that have them.
    zones: BTreeMap<String, (i64, usize)>,
    /// Number of nodes without a zone or a CPU.
    unknown: usize,
    /// The part of each node that has one, so that a node that is shown twice counts once.
    nodes: HashMap<ObjectKey, Part>,
}

/// The part of a node in the CPUs.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// It is not ready, or serves no traffic.
    Nothing,
    /// It has no zone, or no CPU.
    Unknown,
    /// CPUs of a zone.
    Zone(Arc<str>, i64),
}

impl ZoneCpus {
    /// Follows the change of a node; returns whether any share may have changed.
    pub(super) fn follow(&mut self, change: &Change<Node>) -> bool {
        match change {
            Change::Added(node) | Change::Updated { new: node, .. } => self.set(change.key(), part_of(node)),
            // The node still exists, with the CPUs that it had.
            Change::Undecodable { .. } => false,
            Change::Deleted { .. } => self.set(change.key(), Part::Nothing),
        }
    }

    /// Counts these nodes and no others. Returns whether any share may have changed.
    pub(super) fn replace<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>) -> bool {
        let current: HashMap<&ObjectKey, &Node> = nodes.into_iter().map(|node| (&node.metadata.key, node)).collect();
        let gone: Vec<ObjectKey> = self.nodes.keys().filter(|key| !current.contains_key(*key)).cloned().collect();
        let mut has_changed = false;
        for key in &gone {
            has_changed |= self.set(key, Part::Nothing);
        }
        for (key, node) in current {
            has_changed |= self.set(key, part_of(node));
        }
        has_changed
    }

    fn set(&mut self, node: &ObjectKey, after: Part) -> bool {
        let before = self.nodes.get(node).cloned().unwrap_or(Part::Nothing);
        if before == after {
            return false;
        }
        self.count(&before, false);
        self.count(&after, true);
        if after == Part::Nothing {
            self.nodes.remove(node);
        } else {
            self.nodes.insert(node.clone(), after);
        }
        true
    }

    fn count(&mut self, part: &Part, is_added: bool) {
        let sign = if is_added { 1 } else { -1 };
        match part {
            Part::Nothing => {}
            Part::Unknown => self.unknown = self.unknown.saturating_add_signed(sign),
            Part::Zone(zone, cpus) => {
                let (sum, nodes) = self.zones.entry(zone.as_ref().to_owned()).or_default();
                *sum = if is_added { sum.saturating_add(*cpus) } else { sum.saturating_sub(*cpus) };
                *nodes = nodes.saturating_add_signed(sign);
                if *nodes == 0 {
                    self.zones.remove(&**zone);
                }
            }
        }
    }

    /// Returns the shares of the zones; `None` if a node has no zone or no CPU, or if there are fewer than two zones.
    ///
    /// # Upstream
    /// `SetNodes`
    #[expect(clippy::cast_precision_loss, reason = "shares need no more precision than floats have")]
    pub(super) fn shares(&self) -> Option<Shares> {
        if self.unknown > 0 || self.zones.len() < 2 {
            return None;
        }
        let total: f64 = self.zones.values().map(|(cpus, _)| *cpus as f64).sum();
        Some(self.zones.iter().map(|(zone, (cpus, _))| (zone.clone(), *cpus as f64 / total)).collect())
    }
}

fn part_of(node: &Node) -> Part {
    if !node.is_ready || EXCLUDED.iter().any(|label| node.metadata.labels.contains_key(label)) {
        return Part::Nothing;
    }
    match zone_of(&node.metadata) {
        Some(zone) if node.allocatable_cpu_millis > 0 => Part::Zone(zone.into(), node.allocatable_cpu_millis),
        Some(_) | None => Part::Unknown,
    }
}

/// Returns the zone that the labels of a node name.
pub(super) fn zone_of(node: &Meta) -> Option<&str> {
    node.labels.get(ZONE).filter(|zone| !zone.is_empty())
}
