//! The metrics of informers, which upstream does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
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
    users: Arc<Mutex<BTreeMap<String, Users>>>,
}

/// The informers of one resource, whose metrics end with the last of them.
#[derive(Default)]
struct Users {
    informers: usize,
    /// The event handlers, and others that panicked.
    subscribers: BTreeSet<String>,
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
            users: Arc::default(),
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

    /// The metrics of an informer of `resource`, which are removed with the last informer of the resource.
    pub(super) fn of(&self, resource: &Resource) -> OneInformer {
        let resource = resource.to_string();
        // Held while the metrics are looked up, so that the end of another informer does not remove them in between.
        let mut users = self.users.lock();
        users.entry(resource.clone()).or_default().informers += 1;
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

    fn end_use(&self, resource: &str) {
        let mut users = self.users.lock();
        let Some(of_resource) = users.get_mut(resource) else { return };
        of_resource.informers -= 1;
        if of_resource.informers > 0 {
            return;
        }
        let of = Of { resource: resource.to_owned() };
        for kind in EventKind::ALL {
            self.events.remove(&OfKind { resource: resource.to_owned(), kind: kind.as_str() });
        }
        for family in [&self.lists, &self.failures, &self.undecodable] {
            family.remove(&of);
        }
        for subscriber in users.remove(resource).into_iter().flat_map(|users| users.subscribers) {
            let labels = HandlerLabels { resource: resource.to_owned(), subscriber };
            self.handler_seconds.remove(&labels);
            self.panics.remove(&labels);
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
    /// The labels of a subscriber, whose metrics are removed with the last informer of the resource.
    fn handler_labels(&self, subscriber: &str) -> HandlerLabels {
        if let Some(users) = self.families.users.lock().get_mut(&self.resource) {
            users.subscribers.insert(subscriber.to_owned());
        }
        HandlerLabels { resource: self.resource.clone(), subscriber: subscriber.to_owned() }
    }
}

impl Drop for OneInformer {
    fn drop(&mut self) {
        self.families.end_use(&self.resource);
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

#[cfg(test)]
mod tests {
    use kcm_informers::Metrics as _;
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn the_metrics_of_a_resource_end_with_its_last_informer() {
        const WIDGETS: Resource = Resource::namespaced("example.com", "v1", "widgets", "Widget");
        let (metrics, mut registry) = (InformerMetrics::default(), Registry::default());
        metrics.register(&mut registry);
        let series = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text.lines().filter(|line| line.contains(r#"resource="widgets.example.com""#)).count()
        };
        let informers = [metrics.of(&WIDGETS), metrics.of(&WIDGETS)];
        for informer in &informers {
            informer.event(EventKind::Added);
            informer.handled("a-controller", Duration::from_millis(1));
            informer.panicked("informer");
        }
        let before = series();
        assert!(before > 10, "{before} series");
        let [first, last] = informers;
        drop(first);
        assert_eq!(series(), before, "another informer has the same resource");
        drop(last);
        assert_eq!(series(), 0);
        assert!(metrics.users.lock().is_empty());
    }
}
