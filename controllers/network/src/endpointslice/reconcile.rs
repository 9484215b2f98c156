//! The order of a reconcile: observe, plan, write.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::views::{Service, ServiceType};
use kcm_framework::api::{KnownView as _, ObjectKey, OwnerReference};
use kcm_framework::{Class, ReconcileError, ReconcileObject, Session, async_trait};
use parking_lot::Mutex;

use super::apply::Writer;
use super::events::ServiceEvent;
use super::hinted_services::HintedServices;
use super::metrics::Metrics;
use super::observe::{Caches, Observed};
use super::plan::{Plan, Settings, labels_of, plan};
use crate::shared::batching::Batching;
use crate::shared::slices::{OwnWrites, SliceOwner, SliceWriter, WriteError};
use crate::shared::trigger_time::TriggerTimes;

/// The state of the controller beside the caches.
pub(super) struct State {
    pub(super) own_writes: OwnWrites,
    pub(super) batching: Batching,
    triggers: TriggerTimes,
    pub(super) hinted: HintedServices,
    reported: Reported,
    metrics: Metrics,
    max_endpoints: usize,
}

/// The message and the time of the last event about pods without a node, of each service.
#[derive(Default)]
pub(super) struct Reported(Mutex<HashMap<ObjectKey, (String, Timestamp)>>);

/// Interval at which an event about the same pods without a node is recorded again.
const REPORT_INTERVAL: SignedDuration = SignedDuration::from_hours(1);

impl Reported {
    /// Returns `true`, and remembers the event, if it differs from the last one or an hour has passed.
    pub(super) fn is_due(&self, service: &ObjectKey, message: &str, now: Timestamp) -> bool {
        let mut reported = self.0.lock();
        let is_known = reported
            .get(service)
            .is_some_and(|(last, at)| last == message && now.duration_since(*at) < REPORT_INTERVAL);
        if !is_known {
            reported.insert(service.clone(), (message.to_owned(), now));
        }
        !is_known
    }

    pub(super) fn forget(&self, service: &ObjectKey) {
        self.0.lock().remove(service);
    }
}

/// The slices of a service are not all as planned.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct SyncError {
    message: String,
    class: Class,
}

impl State {
    pub(super) fn new(metrics: Metrics, batching: Batching, max_endpoints: usize) -> Self {
        let (own_writes, triggers, hinted) = (OwnWrites::default(), TriggerTimes::default(), HintedServices::default());
        Self { own_writes, batching, triggers, hinted, reported: Reported::default(), metrics, max_endpoints }
    }

    fn forget(&self, service: &ObjectKey) {
        self.triggers.forget(service);
        self.batching.forget(service);
        self.metrics.remove(service);
        self.hinted.forget(service);
        self.reported.forget(service);
    }
}

/// Reconciles services.
pub(super) struct Reconciler {
    pub(super) caches: Caches,
    pub(super) state: Arc<State>,
}

#[async_trait]
impl ReconcileObject<Service> for Reconciler {
    /// Follows the nodes, whose changes were not seen while the loop did not run, and forgets the writes whose events were
    /// not.
    async fn prepare(&self, _session: &Session) -> Result<(), ReconcileError> {
        let nodes = self.caches.nodes.list();
        self.state.hinted.follow_all(nodes.iter().map(|node| &**node));
        self.state.own_writes.clear();
        Ok(())
    }

    async fn reconcile(&self, service: &Arc<Service>, session: &Session) -> Result<(), ReconcileError> {
        let result = self.sync(service, session).await;
        self.state.metrics.synced(result.is_err());
        result
    }

    async fn deleted(&self, key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        self.state.forget(key);
        self.state.metrics.synced(false);
        Ok(())
    }
}

impl Reconciler {
    async fn sync(&self, service: &Service, session: &Session) -> Result<(), ReconcileError> {
        if service.type_ == ServiceType::ExternalName || service.selector.is_empty() {
            session.explain(|| "leaves its slices alone, as it selects no pods");
            return Ok(());
        }
        if let Some(pod) = self.caches.pods.undecodable(service) {
            self.caches.pods.requeue_when_decodable(&pod, session);
            session.explain(|| format!("leaves its slices as they are, as pod {} cannot be decoded", pod.key.name()));
            return Ok(());
        }
        let observed = self.caches.observe(service);
        for node in observed.undecodable_nodes() {
            session.requeue_when_decodable(&self.caches.nodes.cache(), node);
            session.explain(|| format!("keeps the endpoints on node {}, which cannot be decoded", node.key.name()));
        }
        for slice in &observed.invalid {
            session.explain(|| format!("replaces slice {}, which cannot be read", slice.metadata.key.name()));
        }
        let key = &service.metadata.key;
        self.state.batching.begins(key, observed.candidates.len());
        let trigger = self.state.triggers.next(service, &observed.pods, self.caches.addresses);
        let (plan, is_outdated) = self.plan(service, observed);
        if is_outdated {
            session.requeue_after(Duration::ZERO);
        }
        session.explain(|| plan.explain());
        self.state.metrics.set(key, plan.efficiency, plan.distribution);
        let errors = self.write(service, &plan, trigger, session).await;
        for event in plan.families.iter().flat_map(|family| &family.events) {
            session.record(service, event);
        }
        let Some(error) = SyncError::of(&plan, service, &errors) else {
            self.state.reported.forget(key);
            return Ok(());
        };
        // A node may be missing for as long as its pods exist, and each attempt would update the event.
        if !errors.is_empty() || self.state.reported.is_due(key, &error.message, session.now()) {
            session.record(service, &ServiceEvent::Failed { service: full_name(service), error: error.to_string() });
        }
        Err(ReconcileError::new(error.class, error))
    }

    /// Plans the slices. Returns also whether nodes have changed meanwhile, so that the service must be planned again.
    fn plan(&self, service: &Service, observed: Observed) -> (Plan, bool) {
        let key = &service.metadata.key;
        let (shares, mut hints) = self.state.hinted.get(key);
        let settings = Settings {
            max_endpoints: self.state.max_endpoints,
            shares: shares.as_deref(),
            addresses: self.caches.addresses,
        };
        let plan = plan(service, observed, settings, &mut hints);
        let is_outdated = self.state.hinted.set(key, hints, shares.as_deref());
        (plan, is_outdated)
    }

    /// Writes all families, and returns the first error of each.
    async fn write(
        &self,
        service: &Service,
        plan: &Plan,
        trigger: Option<Timestamp>,
        session: &Session,
    ) -> Vec<WriteError> {
        let (key, uid) = (&service.metadata.key, &service.metadata.uid);
        let owner = SliceOwner {
            reference: OwnerReference::controller_of(const { &Service::RESOURCE }, key.name(), uid),
            key,
            labels: labels_of(service),
            annotations: None,
        };
        let slices = SliceWriter { session, owner: &owner, own_writes: &self.state.own_writes, trigger };
        let metrics = &self.state.metrics;
        let writer = Writer { slices, metrics, is_terminating: service.metadata.is_terminating() };
        let mut errors = Vec::new();
        for family in &plan.families {
            metrics.planned(family.added, family.removed);
            match writer.write(family).await {
                Ok(()) => metrics.wrote(plan.by_topology, plan.distribution, family.writes()),
                Err(error) => errors.push(error),
            }
        }
        for slice in &plan.foreign {
            errors.extend(writer.delete_foreign(slice).await.err());
        }
        errors
    }
}

impl SyncError {
    /// The error of a reconcile: the writes that failed, and the pods that were left out, whose nodes may be created later.
    fn of(plan: &Plan, service: &Service, errors: &[WriteError]) -> Option<Self> {
        let class = errors.first().map_or(Class::Transient, WriteError::class);
        let left_out = plan
            .without_node
            .iter()
            .map(|(pod, node)| format!("skipping Pod {pod} for Service {}: Node {node} Not Found", full_name(service)));
        let messages: Vec<String> = left_out.chain(errors.iter().map(WriteError::message)).collect();
        let message = match messages.as_slice() {
            [] => return None,
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        Some(Self { message, class })
    }
}

fn full_name(service: &Service) -> String {
    let key = &service.metadata.key;
    format!("{}/{}", key.namespace().unwrap_or_default(), key.name())
}
