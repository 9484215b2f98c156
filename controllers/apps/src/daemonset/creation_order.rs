//! The order in which nodes get their pods after creations have failed.
//!
//! Slow start ends at the first batch in which a creation fails. If the order never changed, a node whose pods are denied
//! would keep all nodes behind it without a pod.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kcm_framework::api::{Fnv1a, ObjectKey};

/// The failed creations of one `DaemonSet`; empty if its last reconcile created all pods.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Failures {
    /// Number of reconciles in a row in which a creation failed.
    in_a_row: u32,
    /// The nodes whose last creation failed.
    nodes: BTreeSet<Box<str>>,
}

impl Failures {
    /// Sorts creations: by node without failures. After a failure, nodes whose last creation failed come last, and each
    /// failure leads to another order, so that many such nodes are found in few reconciles.
    ///
    /// `node` returns the node of a creation.
    pub(super) fn arrange<C>(&self, creations: &mut [C], node: impl Fn(&C) -> &str) {
        if self.in_a_row > 0 {
            let place = |creation: &C| {
                let node = node(creation);
                (self.nodes.contains(node), hash(node, self.in_a_row))
            };
            creations.sort_by_cached_key(place);
        }
    }

    /// Returns the failures after a reconcile in which the creations for the nodes `failed` failed.
    fn after(&self, failed: &[&str]) -> Self {
        let mut nodes = self.nodes.clone();
        nodes.extend(failed.iter().map(|&node| node.into()));
        Self { in_a_row: self.in_a_row.saturating_add(1), nodes }
    }
}

/// The failures of each `DaemonSet` with any.
#[derive(Debug, Default)]
pub(super) struct FailedCreations(HashMap<ObjectKey, Arc<Failures>>);

impl FailedCreations {
    /// Returns the failures of a `DaemonSet`.
    pub(super) fn of(&self, set: &ObjectKey) -> Arc<Failures> {
        self.0.get(set).cloned().unwrap_or_default()
    }

    /// Records the outcome of a reconcile: the nodes whose creation failed.
    pub(super) fn record(&mut self, set: &ObjectKey, failed: &[&str]) {
        if failed.is_empty() {
            self.forget(set);
        } else {
            let failures = self.of(set).after(failed);
            self.0.insert(set.clone(), Arc::new(failures));
        }
    }

    /// Forgets the failures of a `DaemonSet`.
    pub(super) fn forget(&mut self, set: &ObjectKey) {
        self.0.remove(set);
    }
}

/// A hash of the name and the number of failures: FNV-1a, mixed by the end of `SplitMix64`.
fn hash(node: &str, in_a_row: u32) -> u64 {
    let mixed = Fnv1a::new().part(node).value() ^ u64::from(in_a_row).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
