//! The metrics of this controller.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{ClaimPhase, PersistentVolume, PersistentVolumeClaim, VolumeMode, VolumePhase};
use kcm_framework::informers::Informer;
use kcm_framework::metrics::{Counter, Counters, Histograms, MetricError, Stability};
use kcm_framework::prometheus_client::collector::Collector;
use kcm_framework::prometheus_client::encoding::DescriptorEncoder;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::plugins::Plugin;
use crate::shared::metrics::{BUCKETS, Counts, count, encode, storage_seconds};

/// An operation that is measured from its start to the end of everything that follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    Provision,
    Delete,
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Delete => "delete",
        }
    }
}

/// The start of an operation.
#[derive(Debug)]
struct Start {
    plugin: Box<str>,
    at: Instant,
}

/// The metrics, and the operations under way.
#[derive(Debug)]
pub(super) struct Metrics {
    errors: Counters<2>,
    seconds: Histograms<2>,
    storage_seconds: Histograms<4>,
    retroactive: Counter,
    retroactive_errors: Counter,
    starts: Mutex<HashMap<(ObjectKey, Operation), Start>>,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        let labels = ["plugin_name", "operation_name"];
        Ok(Self {
            errors: metrics.counters(
                Stability::Alpha,
                "volume_operation_errors_total",
                labels,
                "Errors of operations of volumes",
            )?,
            seconds: metrics.histograms(
                Stability::Beta,
                "volume_operation_total_seconds",
                labels,
                BUCKETS,
                "Seconds of operations of volumes, from the start to the end",
            )?,
            storage_seconds: storage_seconds(metrics)?,
            retroactive: metrics.counter(
                Stability::Alpha,
                "retroactive_storageclass_total",
                "Claims that got the default storage class after their creation, and attempts",
            )?,
            retroactive_errors: metrics.counter(
                Stability::Alpha,
                "retroactive_storageclass_errors_total",
                "Claims that could not get the default storage class",
            )?,
            starts: Mutex::default(),
        })
    }

    /// Notes the start of an operation. A later start of the same operation does not count.
    pub(super) fn started(&self, object: &ObjectKey, operation: Operation, plugin: &str, now: Instant) {
        self.starts
            .lock()
            .entry((object.clone(), operation))
            .or_insert_with(|| Start { plugin: plugin.into(), at: now });
    }

    /// Notes the end of an operation that was started.
    pub(super) fn finished(&self, object: &ObjectKey, operation: Operation, now: Instant) {
        if let Some(Start { plugin, at }) = self.starts.lock().remove(&(object.clone(), operation)) {
            let labels = [plugin.into_string(), operation.name().to_owned()];
            self.seconds.of(labels).observe(now.duration_since(at).as_secs_f64());
        }
    }

    /// Notes an error of an operation that was started, and goes on.
    pub(super) fn failed(&self, object: &ObjectKey, operation: Operation) {
        if let Some(Start { plugin, .. }) = self.starts.lock().get(&(object.clone(), operation)) {
            let labels = || [plugin.to_string(), operation.name().to_owned()];
            self.errors.of(labels()).inc();
        }
    }

    /// Forgets an operation whose object does not exist any more.
    pub(super) fn forget(&self, object: &ObjectKey, operation: Operation) {
        self.starts.lock().remove(&(object.clone(), operation));
    }

    pub(super) fn assigned_class(&self, has_failed: bool) {
        self.retroactive.inc();
        if has_failed {
            self.retroactive_errors.inc();
        }
    }

    /// Notes an operation of the host path plugin.
    pub(super) fn stored(&self, operation: Operation, start: Instant, has_failed: bool) {
        let name = match operation {
            Operation::Provision => "volume_provision",
            Operation::Delete => "volume_delete",
        };
        let status = if has_failed { "fail-unknown" } else { "success" };
        let labels = [Plugin::HostPath.name(), name, status, "false"];
        self.storage_seconds.of(labels).observe(start.elapsed().as_secs_f64());
    }
}

/// The caches that a scrape counts. Empty while the controller does not run, as upstream's followers count nothing.
#[derive(Clone, Default)]
pub(super) struct Counted(Arc<Mutex<Option<Caches>>>);

#[derive(Clone)]
struct Caches {
    volumes: Informer<PersistentVolume>,
    claims: Informer<PersistentVolumeClaim>,
}

impl Counted {
    /// Returns the collector of this manager.
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Self {
        metrics.register(|registry| {
            let counted = Self::default();
            registry.register_collector(Box::new(counted.clone()));
            counted
        })
    }

    /// Counts these caches from now on.
    pub(super) fn show(&self, volumes: Informer<PersistentVolume>, claims: Informer<PersistentVolumeClaim>) {
        *self.0.lock() = Some(Caches { volumes, claims });
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counted")
    }
}

impl Collector for Counted {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(Caches { volumes, claims }) = self.0.lock().clone() else { return Ok(()) };
        let (mut total, mut bound, mut unbound) = (Counts::new(), Counts::new(), Counts::new());
        volumes.for_each(|volume| {
            let plugin = Plugin::of_source(volume).map_or("N/A", Plugin::name);
            let mode = if volume.volume_mode == VolumeMode::Block { "Block" } else { "Filesystem" };
            count(&mut total, &[plugin, mode]);
            let counts = if volume.phase == VolumePhase::Bound { &mut bound } else { &mut unbound };
            count(counts, &[&volume.storage_class_name]);
        });
        let (mut bound_claims, mut unbound_claims) = (Counts::new(), Counts::new());
        claims.for_each(|claim| {
            let namespace = claim.metadata.key.namespace().unwrap_or_default();
            let attributes = claim.volume_attributes_class_name.as_deref().unwrap_or_default();
            let counts = if claim.phase == ClaimPhase::Bound { &mut bound_claims } else { &mut unbound_claims };
            count(counts, &[namespace, claim.storage_class().unwrap_or_default(), attributes]);
        });
        let (class, of_claim) = (["storage_class"], ["namespace", "storage_class", "volume_attributes_class"]);
        let (total_labels, encoder) = (["plugin_name", "volume_mode"], &mut encoder);
        encode(encoder, "pv_collector_total_pv_count", "[ALPHA] Volumes", &total_labels, &total)?;
        encode(encoder, "pv_collector_bound_pv_count", "[ALPHA] Bound volumes", &class, &bound)?;
        encode(encoder, "pv_collector_unbound_pv_count", "[ALPHA] Volumes that are not bound", &class, &unbound)?;
        encode(encoder, "pv_collector_bound_pvc_count", "[ALPHA] Bound claims", &of_claim, &bound_claims)?;
        encode(
            encoder,
            "pv_collector_unbound_pvc_count",
            "[ALPHA] Claims that are not bound",
            &of_claim,
            &unbound_claims,
        )
    }
}
