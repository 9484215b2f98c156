//! The order of a reconcile: the step of the cluster, then the annotation of the Node.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::Node;
use kcm_framework::informers::Informer;
use kcm_framework::workqueue::{Priority, Queue};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};
use parking_lot::Mutex;
use serde_json::json;

use super::TTL;
use super::step::{Step, seconds_of};

pub(super) struct Reconciler {
    pub(super) nodes: Informer<Node>,
    pub(super) queue: Queue<ObjectKey>,
    pub(super) step: Mutex<Step>,
}

#[async_trait]
impl ReconcileObject<Node> for Reconciler {
    async fn prepare(&self, _session: &Session) -> Result<(), ReconcileError> {
        let mut present = Vec::new();
        self.nodes.for_each(|node| present.extend(annotation(node)));
        *self.step.lock() = Step::at_start(self.size(), present);
        Ok(())
    }

    async fn reconcile(&self, node: &Arc<Node>, session: &Session) -> Result<(), ReconcileError> {
        let seconds = self.follow().seconds();
        if annotation(node) == Some(seconds) {
            session.explain(|| format!("the annotation is right: {seconds} s"));
            return Ok(());
        }
        session.explain(|| format!("sets the annotation to {seconds} s, as the cluster has {} Nodes", self.size()));
        let changes = json!({ "metadata": { "annotations": { TTL: seconds.to_string() } } });
        session.merge_patch(&**node, changes).await?;
        Ok(())
    }

    async fn deleted(&self, _key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        self.follow();
        Ok(())
    }
}

impl Reconciler {
    /// Moves the step to the present size of the cluster. If it changes, all Nodes are enqueued.
    fn follow(&self) -> Step {
        let mut step = self.step.lock();
        let next = step.after(self.size());
        if next != *step {
            tracing::info!(nodes = self.size(), seconds = next.seconds(), "The size of the cluster changes the TTL");
            *step = next;
            self.nodes.for_each(|node| self.queue.add(node.metadata.key.clone(), Priority::Initial));
        }
        next
    }

    /// A Node that cannot be decoded is one of the cluster too.
    fn size(&self) -> usize {
        self.nodes.len() + self.nodes.undecodable_objects().len()
    }
}

fn annotation(node: &Node) -> Option<i64> {
    seconds_of(node.metadata.annotations.get(TTL))
}
