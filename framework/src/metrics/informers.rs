//! The metrics of informers; upstream has none of them.

use std::time::Duration;

use kcm_api::Resource;
use kcm_informers::EventKind;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

const SECONDS: [f64; 6] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1];

/// What all informers count, by resource.
#[derive(Clone)]
pub(crate) struct InformerMetrics {
    events: Family<OfKind, Counter>,
    lists: Family<Of, Counter>,
    failures: Family<Of, Counter>,
    undecodable: Family<Of, Counter>,
    panics: Family<OfSubscriber, Counter>,
    told: Family<OfSubscriber, Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    resource: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    resource: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSubscriber {
    resource: String,
    subscriber: &'static str,
}

impl Default for InformerMetrics {
    fn default() -> Self {
        Self {
            events: Family::default(),
            lists: Family::default(),
            failures: Family::default(),
            undecodable: Family::default(),
            panics: Family::default(),
            told: Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram),
        }
    }
}

impl InformerMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("informer_events", "Watch events by resource and kind", self.events.clone());
        registry.register("informer_lists", "Complete lists by resource", self.lists.clone());
        registry.register("informer_failures", "Failed lists and watches by resource", self.failures.clone());
        registry.register("informer_undecodable", "Objects that could not be decoded", self.undecodable.clone());
        registry.register("informer_panics", "Panics of subscribers, and of informers", self.panics.clone());
        registry.register(
            "informer_subscriber_seconds",
            "How long a subscriber holds up its informer for one change",
            self.told.clone(),
        );
    }
}

impl kcm_informers::Metrics for InformerMetrics {
    fn event(&self, resource: &Resource, kind: EventKind) {
        self.events.get_or_create(&OfKind { resource: resource.to_string(), kind: kind.as_str() }).inc();
    }

    fn listed(&self, resource: &Resource, _again: bool) {
        self.lists.get_or_create(&Of { resource: resource.to_string() }).inc();
    }

    fn failed(&self, resource: &Resource) {
        self.failures.get_or_create(&Of { resource: resource.to_string() }).inc();
    }

    fn undecodable(&self, resource: &Resource) {
        self.undecodable.get_or_create(&Of { resource: resource.to_string() }).inc();
    }

    fn told(&self, resource: &Resource, subscriber: &'static str, took: Duration) {
        let of = OfSubscriber { resource: resource.to_string(), subscriber };
        self.told.get_or_create(&of).observe(took.as_secs_f64());
    }

    fn panicked(&self, resource: &Resource, culprit: &'static str) {
        self.panics.get_or_create(&OfSubscriber { resource: resource.to_string(), subscriber: culprit }).inc();
    }
}
