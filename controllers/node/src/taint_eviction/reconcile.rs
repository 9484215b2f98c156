//! The order of a reconcile: plan by the cache, live read of the Node, plan, eviction.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::scheduling::{ComparisonOperators, Taint};
use kcm_framework::api::views::{Node, Pod, PodDisruption, PodTolerations};
use kcm_framework::api::{InternedStr, ObjectKey, PartReader};
use kcm_framework::client::ApiError;
use kcm_framework::informers::{Informer, Lookup};
use kcm_framework::{ReconcileError, ReconcileObject, Session, SharedReads, async_trait};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::apply::evict;
use super::events::PodEvent;
use super::metrics::Metrics;
use super::pending::PendingEvictions;
use super::plan::{Pending, Plan, Times, is_of_health, plan};
use crate::shared::{PodsByNode, Watching};

pub(super) struct Reconciler {
    pub(super) nodes: Informer<Node>,
    pub(super) pods: PodsByNode,
    pub(super) tolerations: PartReader<PodTolerations>,
    pub(super) disruptions: PartReader<PodDisruption>,
    pub(super) comparison: ComparisonOperators,
    /// Time for which taints of health evict nothing after a start or an outage.
    pub(super) grace: Duration,
    pub(super) pending: Mutex<PendingEvictions>,
    pub(super) watching: Mutex<Watching>,
    /// The Nodes that were read live within the last second, which the Pods of a Node share. `None` if it does not exist.
    pub(super) live_nodes: SharedReads<InternedStr, Option<Arc<Node>>>,
    pub(super) metrics: Metrics,
}

#[async_trait]
impl ReconcileObject<Pod> for Reconciler {
    async fn prepare(&self, session: &Session) -> Result<(), ReconcileError> {
        self.watching.lock().begin(session.api().connection(), Instant::now());
        self.pending.lock().clear();
        self.nodes.for_each(|node| self.resume(node, session));
        Ok(())
    }

    async fn reconcile(&self, pod: &Arc<Pod>, session: &Session) -> Result<(), ReconcileError> {
        let Some(node) = self.node_of(pod, session) else { return Ok(()) };
        let due = match self.decide(pod, &node.taints, session) {
            Plan::Evict(pending) => pending.due,
            Plan::Stay(_) | Plan::Wait(..) => return Ok(()),
        };
        // The taint may have been removed since the cache was filled, and a deletion cannot be undone.
        let Some(live) = self.live_node(&node, session).await? else {
            session.explain(|| "keeps the pod, whose node was deleted meanwhile");
            return Ok(());
        };
        match self.decide(pod, &live.taints, session) {
            Plan::Evict(_) => {}
            Plan::Stay(_) | Plan::Wait(..) => return Ok(()),
        }
        if self.pending.lock().announce(pod) {
            tracing::info!(node = node.metadata.key.name(), "Evicting pod because of a taint of its node");
            session.record(&**pod, &PodEvent::Marking(&pod.metadata.key));
        }
        evict(session, pod, self.disruptions.of(pod)).await?;
        self.metrics.evicted(due.elapsed());
        Ok(())
    }

    async fn deleted(&self, key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        self.pending.lock().remove(key);
        Ok(())
    }
}

impl Reconciler {
    /// Returns the live Node. `None` if it does not exist, or was recreated under the same name.
    async fn live_node(&self, cached: &Node, session: &Session) -> Result<Option<Arc<Node>>, ApiError> {
        let key = &cached.metadata.key;
        let read = async { Ok(session.live::<Node>(key).await?.map(Arc::new)) };
        let live = self.live_nodes.get(key.name(), None, read).await?;
        Ok(live.filter(|live| live.metadata.uid == cached.metadata.uid))
    }

    /// Returns the Node of a Pod that may be evicted.
    fn node_of(&self, pod: &Pod, session: &Session) -> Option<Arc<Node>> {
        let name = pod.node_name.as_deref().filter(|_| !pod.metadata.is_terminating());
        match name.map(|name| self.nodes.lookup(&ObjectKey::cluster_scoped(name))) {
            Some(Lookup::Found(node)) => Some(node),
            Some(Lookup::Undecodable(node)) => {
                session.requeue_when_decodable(&self.nodes.cache(), &node);
                session.explain(|| "leaves the pod as it is, as its node cannot be decoded");
                None
            }
            Some(Lookup::Absent) | None => {
                session.explain(|| "leaves the pod: it is terminating, or it is assigned to no node that exists");
                self.pending.lock().remove(&pod.metadata.key);
                None
            }
        }
    }

    /// Plans for the Pod, and keeps what is pending.
    fn decide(&self, pod: &Pod, taints: &[Taint], session: &Session) -> Plan {
        let now = Instant::now();
        let connection = session.api().connection();
        let trusted_from = self.watching.lock().since_for(connection, self.grace, now);
        let mut all = self.pending.lock();
        let tolerations = &self.tolerations.of(pod).tolerations;
        let planned = plan(taints, tolerations, self.comparison, all.of(pod), Times { now, trusted_from });
        session.explain(|| planned.explain(now));
        match planned {
            Plan::Stay(_) => {
                if all.remove(&pod.metadata.key) {
                    session.record(pod, &PodEvent::Cancelling(&pod.metadata.key));
                }
            }
            Plan::Wait(pending, _) => {
                all.set(pod, pending);
                session.requeue_after(pending.due.saturating_duration_since(now));
            }
            Plan::Evict(pending) => all.set(pod, pending),
        }
        planned
    }

    /// Resumes what a predecessor had begun: for taints of a Node's health the time since they were added counts.
    fn resume(&self, node: &Node, session: &Session) {
        let added = node.taints.iter().filter(|taint| taint.evicts() && is_of_health(taint));
        let Some(added) = added.filter_map(|taint| taint.time_added).max() else { return };
        let now = Instant::now();
        for pod in self.pods.get(node.metadata.key.name()) {
            // The Pod may be younger than the taint.
            let since = pod.metadata.creation_timestamp.map_or(added, |created| created.max(added));
            let elapsed = Duration::try_from(session.now().duration_since(since)).unwrap_or_default();
            let begun = Pending { start: now, elapsed, due: now };
            let times = Times { now, trusted_from: now };
            let tolerations = &self.tolerations.of(&pod).tolerations;
            match plan(&node.taints, tolerations, self.comparison, Some(begun), times) {
                Plan::Wait(pending, _) | Plan::Evict(pending) => self.pending.lock().set(&pod, pending),
                Plan::Stay(_) => {}
            }
        }
    }
}
