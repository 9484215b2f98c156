//! The order of a round: observe, delete terminated Pods, read missing Nodes live, delete the others.

use std::collections::HashSet;
use std::sync::Arc;

use kcm_framework::Session;
use kcm_framework::api::views::{Node, Pod, PodDisruption};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::informers::Informer;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::apply::{PodRemover, gone_nodes};
use super::metrics::Metrics;
use super::plan::{Observed, may_be_deleted, missing_nodes, plan_by_cache, plan_by_live_nodes};
use super::quarantine::Quarantine;

/// Runs the rounds.
pub(super) struct Collector {
    pub(super) pods: Informer<Pod>,
    pub(super) nodes: Informer<Node>,
    pub(super) disruptions: PartReader<PodDisruption>,
    /// The number of terminated Pods that may exist; 0 or less: no limit.
    pub(super) threshold: i32,
    pub(super) quarantine: Mutex<Quarantine>,
    pub(super) metrics: Metrics,
}

impl Collector {
    /// Goes through the cache once, and takes only the Pods that may be deleted.
    fn observe(&self) -> Observed {
        let nodes = self.nodes.list();
        let undecodable = self.nodes.undecodable_objects();
        let names = nodes.iter().map(|node| &node.metadata.key).chain(undecodable.iter().map(|node| &node.key));
        let names: HashSet<&str> = names.map(ObjectKey::name).collect();
        let mut pods = Vec::new();
        self.pods.for_each(|pod| {
            if may_be_deleted(pod, |node| names.contains(node)) {
                pods.push(Arc::clone(pod));
            }
        });
        drop(names);
        Observed { pods, nodes, undecodable: undecodable.iter().map(|node| node.key.name().into()).collect() }
    }

    /// Runs one round.
    pub(super) async fn run(&self, session: &Session) {
        let observed = self.observe();
        let missing = missing_nodes(&observed);
        let over = self.quarantine.lock().update(&missing, Instant::now());
        let remover = PodRemover { session, metrics: &self.metrics, disruptions: self.disruptions };
        // A slow live read delays no Pod that does not need it.
        let by_cache = plan_by_cache(&observed, self.threshold, self.disruptions);
        remover.remove_all(&by_cache).await;
        let gone = gone_nodes(session, over).await;
        let by_live_nodes = plan_by_live_nodes(&observed, &gone, &by_cache, self.disruptions);
        // Pods that are not deleted need not stay in memory while the deletions run.
        drop((observed, by_cache));
        remover.remove_all(&by_live_nodes).await;
    }
}
