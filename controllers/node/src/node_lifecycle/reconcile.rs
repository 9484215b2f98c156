//! Reconciles of Nodes, taints and labels; and of Pods, the condition `Ready`.

use std::sync::Arc;

use kcm_framework::api::views::{Node, NodeHealth, Pod};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::informers::{Informer, Lookup};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::apply::{change_node, mark_not_ready};
use super::event_mapping::is_unknown;
use super::events::NodeEvent;
use super::metrics::Metrics;
use super::shared_state::Shared;
use super::taints::plan;
use super::zone::zone_of;

/// Reconciles the taints and labels of Nodes.
pub(super) struct NodeReconciler {
    pub(super) health: PartReader<NodeHealth>,
    pub(super) shared: Arc<Shared>,
    pub(super) metrics: Arc<Metrics>,
}

#[async_trait]
impl ReconcileObject<Node> for NodeReconciler {
    async fn reconcile(&self, node: &Arc<Node>, session: &Session) -> Result<(), ReconcileError> {
        let permission = self.shared.permission(&node.metadata.key);
        let changes = plan(node, self.health.of(node), permission, session.now());
        if changes.is_empty() {
            session.explain(|| "taints and labels of the node are right");
            return Ok(());
        }
        session.explain(|| match &changes.taints {
            Some(taints) => format!("gives the node {} taints", taints.len()),
            None => "repeats labels of the node under their beta names".to_owned(),
        });
        change_node(session, node, &changes).await?;
        if changes.begins_eviction {
            tracing::info!("Tainted node; its pods are evicted");
            self.metrics.tainted(&zone_of(&node.metadata.labels));
        }
        Ok(())
    }
}

/// Reconciles the Pods of Nodes that are lost.
pub(super) struct PodReconciler {
    pub(super) nodes: Informer<Node>,
    pub(super) health: PartReader<NodeHealth>,
}

#[async_trait]
impl ReconcileObject<Pod> for PodReconciler {
    async fn reconcile(&self, pod: &Arc<Pod>, session: &Session) -> Result<(), ReconcileError> {
        let node = pod.node_name.as_deref().map(|name| self.nodes.lookup(&ObjectKey::cluster_scoped(name)));
        let node = match node {
            Some(Lookup::Found(node)) => node,
            Some(Lookup::Undecodable(node)) => {
                session.requeue_when_decodable(&self.nodes.cache(), &node);
                return Ok(());
            }
            Some(Lookup::Absent) | None => return Ok(()),
        };
        if !pod.is_ready() || !is_unknown(self.health.of(&node)) {
            session.explain(|| "leaves the pod, which is not ready, or whose node is not lost");
            return Ok(());
        }
        session.explain(|| "makes the pod not ready, as its node is lost");
        mark_not_ready(session, pod).await?;
        session.record(&**pod, &NodeEvent::PodNotReady);
        Ok(())
    }
}
