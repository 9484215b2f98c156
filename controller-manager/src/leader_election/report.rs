//! Events and metrics of a lease.

use kcm_framework::Recorder;
use kcm_framework::api::{KnownView as _, View as _};
use kcm_framework::events::{EventType, ObjectReference};
use kcm_framework::prometheus_client::metrics::counter::Counter;
use kcm_framework::prometheus_client::metrics::family::Family;
use kcm_framework::prometheus_client::metrics::gauge::Gauge;
use kcm_framework::prometheus_client::registry::Registry;

use super::lease_object::LeaseObject;

type OfLease = [(&'static str, String); 1];

/// The metrics of all leases, by the label `name`.
///
/// # Upstream
/// `k8s.io/component-base/metrics/prometheus/clientgo/leaderelection`.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeaseMetrics {
    master_status: Family<OfLease, Gauge>,
    slow_path: Family<OfLease, Counter>,
}

impl LeaseMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "leader_election_master_status",
            "Whether this process holds the lease: 1 or 0",
            metrics.master_status.clone(),
        );
        // The encoder adds `_total`.
        registry.register(
            "leader_election_slowpath",
            "Renewals for which the lease had to be read first, as the update with the last version failed",
            metrics.slow_path.clone(),
        );
        metrics
    }
}

/// Reports of one lease.
///
/// # Upstream
/// `RecordEvent` of `client-go/tools/leaderelection/resourcelock`: reason, message and object are the same.
pub(crate) struct Report {
    /// The name of the lease.
    lease: String,
    identity: String,
    metrics: LeaseMetrics,
    recorder: Recorder,
}

impl Report {
    /// Reports of the lease of that name, about the participant `identity`.
    pub(crate) fn new(lease: &str, identity: &str, metrics: LeaseMetrics, recorder: Recorder) -> Self {
        Self { lease: lease.to_owned(), identity: identity.to_owned(), metrics, recorder }
    }

    /// This participant competes for the lease.
    pub(super) fn is_candidate(&self) {
        self.set_master_status(false);
    }

    pub(super) fn became_leader(&self, lease: Option<&LeaseObject>) {
        self.set_master_status(true);
        self.event(lease, "became leader");
    }

    pub(super) fn stopped_leading(&self, lease: Option<&LeaseObject>) {
        self.set_master_status(false);
        self.event(lease, "stopped leading");
    }

    /// A renewal reads the lease first.
    pub(super) fn slow_path(&self) {
        self.metrics.slow_path.get_or_create(&self.label()).inc();
    }

    fn event(&self, lease: Option<&LeaseObject>, what: &str) {
        let Some(lease) = lease else { return };
        let regarding = ObjectReference::of(const { &LeaseObject::RESOURCE }, lease.meta());
        let message = format!("{} {what}", self.identity);
        self.recorder.event(&regarding, EventType::Normal, "LeaderElection", message);
    }

    fn set_master_status(&self, is_leader: bool) {
        self.metrics.master_status.get_or_create(&self.label()).set(i64::from(is_leader));
    }

    fn label(&self) -> OfLease {
        [("name", self.lease.clone())]
    }
}
