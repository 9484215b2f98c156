//! The health pass over all Nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use kcm_framework::Session;
use kcm_framework::api::views::{Lease, Node, NodeConditionStatus, NodeHealth};
use kcm_framework::api::{InternedStr, KnownView as _, Meta, ObjectKey, PartReader, Uid};
use kcm_framework::client::ApiError;
use kcm_framework::informers::Informer;
use kcm_framework::workqueue::{Priority, Queue};
use tokio::time::Instant;

use super::apply::{LEASES, live_leases, mark_unknown};
use super::events::NodeEvent;
use super::metrics::Metrics;
use super::monitor::{Periods, Signs, Times, Verdict};
use super::shared_state::{Shared, State};
use super::tainting::{Disruption, Judged, Tainting};
use super::taints::lacks_taint;
use super::zone::{Rates, ZoneCount, is_excluded, zone_of};

/// Nodes that are marked at the same time, as upstream.
const CONCURRENT: usize = 8;

/// Looks at the health of all Nodes.
pub(super) struct Pass {
    pub(super) nodes: Informer<Node>,
    pub(super) leases: Informer<Lease>,
    pub(super) health: PartReader<NodeHealth>,
    pub(super) queue: Queue<ObjectKey>,
    pub(super) shared: Arc<Shared>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) periods: Periods,
    pub(super) period: Duration,
    pub(super) rates: Rates,
    /// `true` if a lease is read from the API server before a verdict.
    pub(super) reads_live: bool,
}

/// A Node and the result of looking at it.
struct Looked {
    node: Arc<Node>,
    verdict: Verdict,
    status: NodeConditionStatus,
}

impl Pass {
    /// Looks at all Nodes, marks those that are silent, and judges the zones.
    pub(super) async fn run(&self, session: &Session) {
        // In an outage nobody can report, and nothing can be written.
        if !session.api().connection().is_serving() {
            return;
        }
        let started = Instant::now();
        let mut looked = self.look(session);
        let is_complete = self.mark_silent(session, &mut looked).await;
        let judged: Vec<Judged> = looked.iter().map(judge).collect();
        self.settle(&judged, is_complete);
        self.metrics.looked_at_all(started.elapsed());
    }

    fn look(&self, session: &Session) -> Vec<Looked> {
        let nodes = self.nodes.list();
        let now = Instant::now();
        let times = self.shared.with(|state| self.begin(state, session, now));
        let mut new = Vec::new();
        let looked = nodes.into_iter().map(|node| {
            let started = Instant::now();
            let key = &node.metadata.key;
            let lease = self.leases.get(&ObjectKey::namespaced(LEASES, key.name()));
            let ready = self.health.of(&node).ready;
            let renewed = lease.and_then(|lease| lease.renew_time);
            let signs = Signs { key, uid: &node.metadata.uid, ready, renewed };
            let (look, replaced) = self.shared.with(|state| {
                let replaced = state.monitor.uid(key).filter(|uid| **uid != node.metadata.uid).cloned();
                (state.monitor.look(signs, self.periods, times), replaced)
            });
            if let Some(uid) = replaced {
                record_removed(session, key, &uid);
            }
            if look.is_new {
                new.push(Arc::clone(&node));
            }
            self.metrics.looked_at_node(started.elapsed());
            let status = ready.map_or(NodeConditionStatus::Absent, |ready| ready.status);
            Looked { node, verdict: look.verdict, status }
        });
        let looked: Vec<Looked> = looked.collect();
        for node in new {
            session.record(&*node, &NodeEvent::Registered(node.metadata.key.name()));
        }
        // A Node that cannot be decoded is not deleted. Its signs of life begin anew when it can be.
        for (key, uid) in self.shared.with(|state| state.monitor.forget_unseen(times.pass)) {
            if self.nodes.undecodable(&key).is_none() {
                record_removed(session, &key, &uid);
            }
        }
        looked
    }

    /// Begins a pass. A process that was suspended, or did not lead, has seen nothing meanwhile.
    fn begin(&self, state: &mut State, session: &Session, now: Instant) -> Times {
        let connection = session.api().connection();
        let expected = self.period.saturating_add(self.periods.monitor_grace / 4);
        let is_late = state.passed_at.is_some_and(|passed_at| now.duration_since(passed_at) > expected);
        if state.passed_at.is_none() || is_late {
            state.watching.begin(connection, now);
            state.tainting = Tainting::new(self.rates);
        }
        state.pass += 1;
        Times { now, watched_since: state.watching.since(connection, now), pass: state.pass }
    }

    /// Marks the Nodes that are silent. Returns `true` if all Nodes could be looked at.
    async fn mark_silent(&self, session: &Session, looked: &mut [Looked]) -> bool {
        let is_silent = |looked: &&Looked| looked.verdict == Verdict::Silent;
        let silent: Vec<ObjectKey> =
            looked.iter().filter(is_silent).map(|looked| looked.node.metadata.key.clone()).collect();
        if silent.is_empty() {
            return true;
        }
        let renewed = match self.verify(session, &silent).await {
            Ok(renewed) => renewed,
            Err(error) => {
                let cause = error.message();
                tracing::warn!(%error, cause, nodes = silent.len(), "Cannot verify that nodes are silent");
                return false;
            }
        };
        let marked = looked.iter_mut().filter(|looked| looked.verdict == Verdict::Silent).map(|looked| {
            let is_alive = renewed.contains(&looked.node.metadata.key);
            self.mark(session, looked, is_alive)
        });
        let marked: Vec<_> = marked.collect();
        stream::iter(marked).buffer_unordered(CONCURRENT).collect::<()>().await;
        true
    }

    /// Returns the Nodes whose lease was renewed behind the cache.
    async fn verify(&self, session: &Session, silent: &[ObjectKey]) -> Result<Vec<ObjectKey>, ApiError> {
        if !self.reads_live {
            return Ok(Vec::new());
        }
        let live = live_leases(session, silent).await?;
        let now = Instant::now();
        let renewed = |state: &mut State| {
            let is_renewed = |key: &&ObjectKey| state.monitor.is_renewed(key, live.get(*key).copied().flatten(), now);
            silent.iter().filter(is_renewed).cloned().collect()
        };
        Ok(self.shared.with(renewed))
    }

    async fn mark(&self, session: &Session, looked: &mut Looked, is_alive: bool) {
        if is_alive {
            return;
        }
        let (node, started) = (Arc::clone(&looked.node), Instant::now());
        let name = node.metadata.key.name();
        let marked = mark_unknown(session, &node, self.health.of(&node), session.now()).await;
        self.metrics.looked_at_node(started.elapsed());
        match marked {
            Ok(()) => {
                tracing::info!(node = name, "Node is silent; marked its conditions as unknown");
                if looked.status == NodeConditionStatus::True {
                    session.record(&*node, &NodeEvent::NotReady(name));
                }
                looked.status = NodeConditionStatus::Unknown;
            }
            // The kubelet has reported meanwhile, or the Node was deleted.
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            Err(error) => {
                let cause = error.message();
                tracing::warn!(node = name, %error, cause, "Cannot mark the conditions of a silent node");
                looked.status = NodeConditionStatus::Unknown;
            }
        }
    }

    /// Judges the zones after a complete pass, and has all Nodes tainted that are to be.
    fn settle(&self, judged: &[Judged], is_complete: bool) {
        let now = Instant::now();
        let counts = is_complete.then(|| counts(judged));
        let disruption = self.shared.with(|state| {
            let disruption = counts.as_ref().map_or(Disruption::Unchanged, |counts| state.tainting.judge(counts, now));
            state.tainting.enqueue(judged, now);
            if disruption == Disruption::Ends {
                state.monitor.begin_again(now);
            }
            state.passed_at = Some(now);
            disruption
        });
        if let Some(counts) = &counts {
            self.metrics.counted(counts);
        }
        match disruption {
            Disruption::Unchanged => {}
            Disruption::Begins => {
                tracing::warn!("No node is ready; removing the taints that evict pods");
                for node in judged {
                    self.queue.add(node.key.clone(), Priority::Live);
                }
            }
            Disruption::Ends => tracing::info!("Some nodes are ready again"),
        }
    }

    /// Has the Nodes tainted whose turn it is.
    pub(super) fn grant(&self) {
        for node in self.shared.with(|state| state.tainting.grant(Instant::now())) {
            self.queue.add(node, Priority::Live);
        }
    }
}

fn judge(looked: &Looked) -> Judged {
    let Looked { node, status, .. } = looked;
    let labels = &node.metadata.labels;
    Judged {
        key: node.metadata.key.clone(),
        zone: zone_of(labels),
        is_excluded: is_excluded(labels),
        is_ready: *status == NodeConditionStatus::True,
        lacks_taint: lacks_taint(node, *status),
    }
}

fn counts(judged: &[Judged]) -> BTreeMap<InternedStr, ZoneCount> {
    let mut counts: BTreeMap<InternedStr, ZoneCount> = BTreeMap::new();
    for node in judged.iter().filter(|node| !node.is_excluded) {
        let count = counts.entry(node.zone.clone()).or_default();
        *if node.is_ready { &mut count.ready } else { &mut count.not_ready } += 1;
    }
    counts
}

/// Records the event about a Node that is not in the cache any more.
fn record_removed(session: &Session, key: &ObjectKey, uid: &Uid) {
    let mut meta = Meta::default();
    (meta.key, meta.uid) = (key.clone(), uid.clone());
    session.record_for(const { &Node::RESOURCE }, &meta, &NodeEvent::Removing(key.name()));
}
