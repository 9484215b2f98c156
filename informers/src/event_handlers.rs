//! Those who are told of changes, inline and one after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use kcm_api::{Resource, View};
use tokio::time::Instant;

use crate::change::{Change, Origin};
use crate::metrics::Metrics;
use crate::panic_message::panic_message;

/// Who subscribes, and how often it wants to hear of everything again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandlerOptions {
    /// Name in metrics and logs, usually the controller's.
    pub name: &'static str,
    /// How often the subscriber is told of every object although nothing changed; absent for never.
    pub resync_period: Option<Duration>,
}

/// Names a subscriber of one informer, to end its subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HandlerRegistration(u64);

pub(crate) type Handler<V> = Box<dyn FnMut(&Change<V>, Origin) + Send>;

/// Where what happens to subscribers is reported.
pub(crate) struct Report<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) metrics: &'a dyn Metrics,
}

pub(crate) struct EventHandlers<V> {
    subscribers: Vec<Subscriber<V>>,
    next_id: u64,
}

struct Subscriber<V> {
    id: HandlerRegistration,
    name: &'static str,
    resync: Option<Resync>,
    handler: Handler<V>,
}

#[derive(Clone, Copy)]
struct Resync {
    period: Duration,
    due: Instant,
}

impl<V: View> EventHandlers<V> {
    pub(crate) const fn new() -> Self {
        Self { subscribers: Vec::new(), next_id: 0 }
    }

    /// Adds a subscriber, and first tells it of what there is.
    pub(crate) fn add(
        &mut self,
        subscription: HandlerOptions,
        handler: Handler<V>,
        initial: impl IntoIterator<Item = Change<V>>,
        report: &Report<'_>,
    ) -> HandlerRegistration {
        let id = HandlerRegistration(self.next_id);
        self.next_id += 1;
        let resync = subscription
            .resync_period
            .filter(|period| !period.is_zero())
            .map(|period| Resync { period, due: Instant::now() + period });
        let mut subscriber = Subscriber { id, name: subscription.name, resync, handler };
        for change in initial {
            subscriber.tell(&change, Origin::Initial, report);
        }
        self.subscribers.push(subscriber);
        id
    }

    pub(crate) fn remove(&mut self, id: HandlerRegistration) {
        self.subscribers.retain(|subscriber| subscriber.id != id);
    }

    /// Tells all, in the order in which they subscribed.
    pub(crate) fn tell(&mut self, change: &Change<V>, origin: Origin, report: &Report<'_>) {
        for subscriber in &mut self.subscribers {
            subscriber.tell(change, origin, report);
        }
    }

    pub(crate) fn next_resync(&self) -> Option<Instant> {
        self.subscribers.iter().filter_map(|subscriber| subscriber.resync).map(|resync| resync.due).min()
    }

    /// Tells those whose period has passed of everything there is.
    pub(crate) fn resync(&mut self, now: Instant, everything: impl FnOnce() -> Vec<Change<V>>, report: &Report<'_>) {
        let mut due: Vec<_> = self
            .subscribers
            .iter_mut()
            .filter(|subscriber| subscriber.resync.is_some_and(|resync| resync.due <= now))
            .collect();
        if due.is_empty() {
            return;
        }
        let everything = everything();
        for subscriber in &mut due {
            for change in &everything {
                subscriber.tell(change, Origin::Resync, report);
            }
            if let Some(resync) = &mut subscriber.resync {
                resync.due = now + resync.period;
            }
        }
    }
}

impl<V: View> Subscriber<V> {
    /// A panic costs this subscriber this change, and nobody else anything.
    fn tell(&mut self, change: &Change<V>, origin: Origin, report: &Report<'_>) {
        let began = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.handler)(change, origin)));
        report.metrics.handled(self.name, began.elapsed());
        if let Err(panic) = outcome {
            report.metrics.panicked(self.name);
            tracing::error!(
                resource = %report.resource,
                subscriber = self.name,
                key = %change.key(),
                panic = panic_message(&*panic),
                "Subscriber panicked"
            );
        }
    }
}
