//! The order of a reconcile: plan with the state of all Nodes, then write.

use std::sync::Arc;

use kcm_framework::api::views::{Node, NodePodCidrs};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::client::ApiError;
use kcm_framework::informers::Informer;
use kcm_framework::workqueue::{Priority, Queue};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};
use parking_lot::Mutex;
use serde_json::json;

use super::allocator::{Allocator, Reservation};
use super::configuration::Clusters;
use super::events::NodeEvent;
use super::metrics::Metrics;
use super::state::{Observed, Plan, State};

pub(super) struct Reconciler {
    pub(super) nodes: Informer<Node>,
    pub(super) queue: Queue<ObjectKey>,
    pub(super) cidrs: PartReader<NodePodCidrs>,
    pub(super) clusters: Clusters,
    pub(super) state: Mutex<State>,
    pub(super) metrics: Metrics,
}

#[async_trait]
impl ReconcileObject<Node> for Reconciler {
    /// The cache shows all writes of the last leader by now, so that no pod CIDR is given twice.
    async fn prepare(&self, _session: &Session) -> Result<(), ReconcileError> {
        let mut state = State::new(Allocator::new(&self.clusters));
        self.nodes.for_each(|node| state.record(self.observe(node)));
        *self.state.lock() = state;
        self.decide(|_| ());
        Ok(())
    }

    async fn reconcile(&self, node: &Arc<Node>, session: &Session) -> Result<(), ReconcileError> {
        let mut unknown = self.nodes.undecodable_objects();
        let planned = self.decide(|state| {
            unknown.retain(|node| !state.knows(&node.key));
            let planned = state.plan(self.observe(node), !unknown.is_empty());
            if let Plan::Assign(reservation) = &planned {
                self.metrics.allocated(state.allocator.blocks(), &reservation.skipped);
            }
            planned
        });
        session.explain(|| planned.explain());
        let name = node.metadata.key.name();
        match planned {
            Plan::Occupied | Plan::Terminating => Ok(()),
            Plan::Wrong(wrong) => Err(ReconcileError::terminal(wrong)),
            Plan::UnknownNodes => {
                for node in &unknown {
                    session.requeue_when_decodable(&self.nodes.cache(), node);
                }
                Ok(())
            }
            Plan::Wait { index, is_known } => {
                if !is_known {
                    tracing::warn!(index, "No block of the cluster CIDR is free for the node");
                }
                session.record(&**node, &NodeEvent::NotAvailable(name));
                Ok(())
            }
            Plan::Assign(reservation) => {
                let assigned = assign(node, &reservation, session).await;
                if assigned.as_ref().is_err_and(|error| !error.is_not_found() && !error.is_other_object()) {
                    session.record(&**node, &NodeEvent::AssignmentFailed(name));
                }
                Ok(assigned?)
            }
        }
    }

    async fn deleted(&self, key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        if self.nodes.undecodable(key).is_none() {
            self.decide(|state| state.forget(key));
        }
        Ok(())
    }
}

impl Reconciler {
    fn observe<'a>(&self, node: &'a Node) -> Observed<'a> {
        Observed {
            key: &node.metadata.key,
            uid: &node.metadata.uid,
            is_terminating: node.metadata.is_terminating(),
            pod_cidrs: &self.cidrs.of(node).pod_cidrs,
        }
    }

    /// Runs a decision, shows its effect in the metrics, and enqueues the Nodes that wait if blocks became free.
    fn decide<T>(&self, decision: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let decided = decision(&mut state);
        if self.metrics.show(state.allocator.blocks()) {
            state.waiting().iter().for_each(|node| self.queue.add(node.clone(), Priority::Live));
        }
        decided
    }
}

/// Writes the pod CIDRs. The uid keeps them from a Node that was recreated under the name.
///
/// Whatever the response is, the reservation stays until the cache shows other pod CIDRs or the deletion of the Node: a
/// write whose response was lost may have taken effect, and a refusal may be due to pod CIDRs that the cache does not
/// show yet.
async fn assign(node: &Node, reservation: &Reservation, session: &Session) -> Result<(), ApiError> {
    let cidrs: Vec<String> = reservation.cidrs.iter().map(ToString::to_string).collect();
    tracing::info!(?cidrs, "Assigning pod CIDRs to the node");
    let spec = json!({ "podCIDR": cidrs.first(), "podCIDRs": cidrs });
    session.merge_patch(node, json!({ "spec": spec })).await.map(drop)
}
