//! The metrics of informers, which upstream does not have.

use std::time::Duration;

use kcm_api::Resource;
use kcm_informers::EventKind;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

const SECONDS: [f64; 6] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1];

/// The metrics of all informers, by resource.
#[derive(Clone)]
pub(crate) struct InformerMetrics {
    events: Family<OfKind, Counter>,
    lists: Family<Of, Counter>,
    failures: Family<Of, Counter>,
    undecodable: Family<Of, Counter>,
    panics: Family<HandlerLabels, Counter>,
    handler_seconds: Family<HandlerLabels, Histogram>,
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
struct HandlerLabels {
    resource: String,
    subscriber: String,
}

impl Default for InformerMetrics {
    fn default() -> Self {
        Self {
            events: Family::default(),
            lists: Family::default(),
            failures: Family::default(),
            undecodable: Family::default(),
            panics: Family::default(),
            handler_seconds: Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram),
        }
    }
}

impl InformerMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("informer_events", "Watch events by resource and kind", self.events.clone());
        registry.register("informer_lists", "Complete lists by resource", self.lists.clone());
        registry.register("informer_failures", "Failed lists and watches by resource", self.failures.clone());
        registry.register("informer_undecodable", "Objects that could not be decoded", self.undecodable.clone());
        registry.register("informer_panics", "Panics of event handlers, and of informers", self.panics.clone());
        registry.register(
            "informer_subscriber_seconds",
            "Seconds that an event handler takes for one change",
            self.handler_seconds.clone(),
        );
    }

    /// The metrics of the informers of `resource`.
    pub(super) fn of(&self, resource: &Resource) -> OneInformer {
        let resource = resource.to_string();
        let of = Of { resource: resource.clone() };
        let events = EventKind::ALL.map(|kind| {
            let of = OfKind { resource: resource.clone(), kind: kind.as_str() };
            (kind, self.events.get_or_create(&of).clone())
        });
        OneInformer {
            events,
            lists: self.lists.get_or_create(&of).clone(),
            failures: self.failures.get_or_create(&of).clone(),
            undecodable: self.undecodable.get_or_create(&of).clone(),
            handler_seconds: Mutex::default(),
            resource,
            families: self.clone(),
        }
    }
}

/// The metrics of one resource, looked up once instead of at each event.
pub(super) struct OneInformer {
    events: [(EventKind, Counter); EventKind::ALL.len()],
    lists: Counter,
    failures: Counter,
    undecodable: Counter,
    // As many as there are controllers that read the resource: a handful.
    handler_seconds: Mutex<Vec<(String, Histogram)>>,
    resource: String,
    families: InformerMetrics,
}

impl OneInformer {
    fn handler_labels(&self, subscriber: &str) -> HandlerLabels {
        HandlerLabels { resource: self.resource.clone(), subscriber: subscriber.to_owned() }
    }
}

impl kcm_informers::Metrics for OneInformer {
    fn event(&self, kind: EventKind) {
        for (_, counter) in self.events.iter().filter(|(of, _)| *of == kind) {
            counter.inc();
        }
    }

    fn listed(&self, _again: bool) {
        self.lists.inc();
    }

    fn failed(&self) {
        self.failures.inc();
    }

    fn undecodable(&self) {
        self.undecodable.inc();
    }

    fn handled(&self, handler: &str, took: Duration) {
        let mut known = self.handler_seconds.lock();
        let at = known.iter().position(|(name, _)| *name == handler).unwrap_or_else(|| {
            known.push((
                handler.to_owned(),
                self.families.handler_seconds.get_or_create(&self.handler_labels(handler)).clone(),
            ));
            known.len() - 1
        });
        known[at].1.observe(took.as_secs_f64());
    }

    fn panicked(&self, culprit: &str) {
        self.families.panics.get_or_create(&self.handler_labels(culprit)).inc();
    }
}
