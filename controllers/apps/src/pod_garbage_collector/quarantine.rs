//! The quarantine of nodes that pods are assigned to and that do not exist.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kcm_framework::api::InternedStr;
use tokio::time::Instant;

/// How long a node is missing before the API server is asked for it.
///
/// The cache of nodes may be behind that of pods: a pod is assigned to a node that is about to appear.
pub(super) const PERIOD: Duration = Duration::from_secs(40);

/// The missing nodes, each with the end of its quarantine.
#[derive(Debug, Default)]
pub(super) struct Quarantine(BTreeMap<InternedStr, Instant>);

impl Quarantine {
    /// Updates the quarantine to the nodes that are missing `now`; returns those whose quarantine is over.
    ///
    /// The quarantine of a node ends with its return. Where it is over, another begins: a node that could not be looked
    /// up, or whose pods could not be deleted, is returned again after another period.
    pub(super) fn update(&mut self, missing: &BTreeSet<InternedStr>, now: Instant) -> Vec<InternedStr> {
        self.0.retain(|node, _| missing.contains(node));
        let mut over = Vec::new();
        for node in missing {
            let until = self.0.entry(node.clone()).or_insert(now + PERIOD);
            if *until <= now {
                *until = now + PERIOD;
                over.push(node.clone());
            }
        }
        over
    }
}
