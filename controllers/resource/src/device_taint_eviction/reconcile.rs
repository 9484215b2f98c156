//! The order of a reconcile of a Pod: plan by the caches, live reads of the rules and slices that evict it, plan,
//! eviction.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::views::{ClaimDevices, Pod, PodClaims, PodDisruption, ResourceClaim};
use kcm_framework::api::{InternedStr, ObjectKey, PartReader};
use kcm_framework::client::ApiError;
use kcm_framework::informers::{Index, Informer, Lookup};
use kcm_framework::workqueue::{Priority, Queue};
use kcm_framework::{Reconcile, ReconcileError, Session, SharedReads, async_trait};
use parking_lot::Mutex;

use super::apply::evict;
use super::events::PodEvent;
use super::key::Key;
use super::metrics::Metrics;
use super::plan::{Eviction, Origin, PodInUse, Slices, Taints, evict_pod};
use super::progress::Progress;
use super::views::{DeviceTaintRule, ResourceSlice};
use crate::shared::beside;

/// Shortest time between updates of the status of a rule.
pub(super) const STATUS_PERIOD: Duration = Duration::from_secs(10);

/// Time after which a Pod is planned again if the caches show a taint that a live read does not show.
const RECHECK: Duration = Duration::from_secs(10);

pub(super) struct Reconciler {
    pub(super) pods: Informer<Pod>,
    pub(super) used: PartReader<PodClaims>,
    pub(super) disruptions: PartReader<PodDisruption>,
    pub(super) pods_by_group: Option<Index<Pod, ObjectKey>>,
    pub(super) claims: Informer<ResourceClaim>,
    pub(super) devices: PartReader<ClaimDevices>,
    pub(super) all_slices: Informer<ResourceSlice>,
    pub(super) slices: Slices,
    /// `None` if the feature gate is off.
    pub(super) rules: Option<Informer<DeviceTaintRule>>,
    pub(super) queue: Queue<Key>,
    pub(super) progress: Mutex<Progress>,
    /// The rules and slices that were read live within the last second, which Pods share. `None` if it does not exist.
    pub(super) live_rules: SharedReads<InternedStr, Option<Arc<DeviceTaintRule>>>,
    pub(super) live_slices: SharedReads<InternedStr, Option<Arc<ResourceSlice>>>,
    pub(super) metrics: Metrics,
}

#[async_trait]
impl Reconcile<Key> for Reconciler {
    async fn prepare(&self, _session: &Session) -> Result<(), ReconcileError> {
        self.progress.lock().clear();
        Ok(())
    }

    async fn reconcile(&self, key: &Key, session: &Session) -> Result<(), ReconcileError> {
        match key {
            Key::Pod(pod) => self.reconcile_pod(pod, session).await,
            Key::Rule(rule) => self.reconcile_rule(rule, session).await,
        }
    }
}

impl Reconciler {
    async fn reconcile_pod(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let pod = match self.pods.lookup(key) {
            Lookup::Found(pod) if !pod.metadata.is_terminating() => pod,
            Lookup::Found(_) | Lookup::Absent => {
                // The rules count the pod until the cache shows its deletion.
                let ended = self.progress.lock().remove(key);
                if let Some(ended) = ended {
                    if ended.is_uncounted() {
                        self.progress.lock().count_for_rules(&ended.eviction);
                        self.observe(&ended.eviction, session);
                    }
                    self.show_later(&ended.eviction);
                }
                return Ok(());
            }
            // The loop holds the key until the pod changes.
            Lookup::Undecodable(_) => return Ok(()),
        };
        let Some(eviction) = self.plan(&pod, &self.cached_taints(), session) else {
            session.explain(|| "keeps the pod: no device of its claims has a taint that evicts it");
            let cancelled = self.progress.lock().remove(key);
            if let Some(cancelled) = cancelled {
                self.show_later(&cancelled.eviction);
                if cancelled.uid == pod.metadata.uid {
                    session.record(&*pod, &PodEvent::Cancelling);
                }
            }
            return Ok(());
        };
        if self.progress.lock().set(&pod, &eviction) {
            self.show_later(&eviction);
        }
        if let Some(wait) = time_until(eviction.due, session.now()) {
            session.explain(|| {
                format!("keeps the pod for {} s, for which its claims tolerate the taints", wait.as_secs())
            });
            session.requeue_after(wait);
            return Ok(());
        }
        // A taint may have been removed since the caches were filled, and a deletion cannot be undone.
        let live = self.plan(&pod, &self.live_taints(&eviction, session).await?, session);
        let Some(eviction) = live.filter(|live| time_until(live.due, session.now()).is_none()) else {
            session.explain(|| "keeps the pod: the caches show a taint that was removed, or is tolerated");
            session.requeue_after(RECHECK);
            return Ok(());
        };
        if self.progress.lock().announce(key) {
            session.record(&*pod, &PodEvent::Marking);
        }
        session.explain(|| "evicts the pod, whose claims do not tolerate a taint of a device any longer");
        if evict(session, &pod, self.disruptions.of(&pod)).await? {
            tracing::info!(pod = %key, "Evicted a pod because of a taint of a device");
            self.observe(&eviction, session);
            self.progress.lock().count(key, &eviction);
        }
        self.show_later(&eviction);
        Ok(())
    }

    /// Counts an eviction in the metrics.
    fn observe(&self, eviction: &Eviction, session: &Session) {
        let overdue = session.now().duration_since(eviction.due);
        self.metrics.evicted(Duration::try_from(overdue).unwrap_or_default());
    }

    /// Has the status of the rules of an eviction computed, not more often than it is updated.
    fn show_later(&self, eviction: &Eviction) {
        for (rule, _) in eviction.rules() {
            let key = Key::Rule(ObjectKey::cluster_scoped(rule.as_str()));
            self.queue.add_after(key, STATUS_PERIOD, Priority::Live);
        }
    }

    /// Plans for a Pod. An undecodable claim counts as a claim without taints, until it can be decoded.
    pub(super) fn plan(&self, pod: &Pod, taints: &Taints, session: &Session) -> Option<Eviction> {
        let claims = self.used.of(pod);
        let group = claims.group.as_deref().filter(|_| self.pods_by_group.is_some());
        evict_pod(PodInUse { pod, claims, group }, taints, self.devices, |claim| {
            match self.claims.lookup(&beside(&pod.metadata.key, claim)) {
                Lookup::Found(claim) => Some(claim),
                Lookup::Absent => None,
                Lookup::Undecodable(claim) => {
                    session.requeue_when_decodable(&self.claims.cache(), &claim);
                    None
                }
            }
        })
    }

    fn cached_taints(&self) -> Taints {
        let rules = self.rules.as_ref().map(Informer::list).unwrap_or_default();
        let evicting = rules.into_iter().filter(|rule| rule.taint.evicts()).collect();
        Taints { rules: evicting, slices: self.slices.clone() }
    }

    /// Reads the rules and slices of an eviction.
    async fn live_taints(&self, eviction: &Eviction, session: &Session) -> Result<Taints, ApiError> {
        let (mut rules, mut slices) = (Vec::new(), Vec::new());
        for origin in &eviction.origins {
            match origin {
                Origin::Rule { name, .. } => {
                    let key = ObjectKey::cluster_scoped(name.as_str());
                    let read = async { Ok::<_, ApiError>(session.live(&key).await?.map(Arc::new)) };
                    let rule = self.live_rules.get(name, None, read).await?;
                    rules.extend(rule.filter(|rule| rule.taint.evicts()));
                }
                Origin::Slice { name } => {
                    let key = ObjectKey::cluster_scoped(name.as_str());
                    let read = async { Ok::<_, ApiError>(session.live(&key).await?.map(Arc::new)) };
                    slices.extend(self.live_slices.get(name, None, read).await?);
                }
            }
        }
        Ok(Taints { rules, slices: Slices::Of(slices) })
    }
}

/// Returns the time until then, `None` if it is past.
fn time_until(due: Timestamp, now: Timestamp) -> Option<Duration> {
    let wait = due.duration_since(now);
    (wait > SignedDuration::ZERO).then(|| Duration::try_from(wait).unwrap_or(Duration::MAX))
}
