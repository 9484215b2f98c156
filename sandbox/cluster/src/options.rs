//! The options of a cluster.

use crate::behaviour::PodRules;

/// Options of a [`Cluster`](crate::Cluster).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterOptions {
    /// Number of nodes at the start: `node-1` to `node-N`.
    pub nodes: usize,
    /// Seed of all delays and choices.
    pub seed: u64,
    /// Rules for the behaviour of pods.
    pub rules: PodRules,
    /// Whether the cluster runs the scheduler.
    pub scheduler: bool,
    /// Taints nodes whose lease is not renewed, evicts their pods, and deletes pods of deleted nodes. Off, if controllers
    /// do so.
    pub node_lifecycle: bool,
    /// Creates the objects that an API server keeps for itself: the service `kubernetes` and the day since which the use of
    /// legacy tokens is tracked.
    pub server_objects: bool,
    /// Number of events that are kept, of any writer; the oldest are deleted first, and all after an hour. With 0 the
    /// cluster writes no events.
    pub events_kept: usize,
}

impl Default for ClusterOptions {
    /// Three nodes, seed 0, no rules, everything on, 5,000 events.
    fn default() -> Self {
        Self {
            nodes: 3,
            seed: 0,
            rules: PodRules::default(),
            scheduler: true,
            node_lifecycle: true,
            server_objects: true,
            events_kept: 5_000,
        }
    }
}
