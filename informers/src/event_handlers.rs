//! The event handlers of an informer, which are called inline and one after the other.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use kcm_api::{Resource, View};
use tokio::time::Instant;

use crate::change::{Change, Origin};
use crate::metrics::Metrics;
use crate::panic_message::panic_message;

/// The options of an event handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerOptions {
    /// Name in metrics and logs, usually the controller's.
    pub name: Cow<'static, str>,
    /// The period after which the handler is notified of every object again, although nothing changed; absent for
    /// never.
    pub resync_period: Option<Duration>,
}

impl HandlerOptions {
    /// Options with that name, and without a resync period.
    #[must_use]
    pub fn named(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), resync_period: None }
    }

    /// The same options with a resync period.
    #[must_use]
    pub fn resync_period(self, period: Duration) -> Self {
        Self { resync_period: Some(period), ..self }
    }
}

/// The registration of an event handler with one informer, to remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HandlerRegistration(u64);

pub(crate) type Handler<V> = Box<dyn FnMut(&Change<V>, Origin) + Send>;

/// Reports calls and panics of event handlers and hooks.
pub(crate) struct Report<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) metrics: &'a dyn Metrics,
}

pub(crate) struct EventHandlers<V> {
    handlers: Vec<EventHandler<V>>,
    next_id: u64,
}

struct EventHandler<V> {
    id: HandlerRegistration,
    name: Cow<'static, str>,
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
        Self { handlers: Vec::new(), next_id: 0 }
    }

    /// Adds an event handler, after notifying it of the `initial` changes.
    pub(crate) fn add(
        &mut self,
        options: HandlerOptions,
        handler: Handler<V>,
        initial: impl IntoIterator<Item = Change<V>>,
        report: &Report<'_>,
    ) -> HandlerRegistration {
        let id = HandlerRegistration(self.next_id);
        self.next_id += 1;
        let resync = options
            .resync_period
            .filter(|period| !period.is_zero())
            .map(|period| Resync { period, due: Instant::now() + period });
        let mut added = EventHandler { id, name: options.name, resync, handler };
        for change in initial {
            added.notify(&change, Origin::Initial, report);
        }
        self.handlers.push(added);
        id
    }

    /// Removes a handler, and returns it for the caller to drop.
    pub(crate) fn remove(&mut self, id: HandlerRegistration) -> Option<impl Sized + use<V>> {
        let at = self.handlers.iter().position(|handler| handler.id == id)?;
        Some(self.handlers.remove(at))
    }

    /// Notifies all handlers, in the order of registration.
    pub(crate) fn notify(&mut self, change: &Change<V>, origin: Origin, report: &Report<'_>) {
        for handler in &mut self.handlers {
            handler.notify(change, origin, report);
        }
    }

    pub(crate) fn next_resync(&self) -> Option<Instant> {
        self.handlers.iter().filter_map(|handler| handler.resync).map(|resync| resync.due).min()
    }

    /// Notifies the handlers whose resync period has passed of every object.
    pub(crate) fn resync(&mut self, now: Instant, everything: impl FnOnce() -> Vec<Change<V>>, report: &Report<'_>) {
        let mut due: Vec<_> =
            self.handlers.iter_mut().filter(|handler| handler.resync.is_some_and(|resync| resync.due <= now)).collect();
        if due.is_empty() {
            return;
        }
        let everything = everything();
        for handler in &mut due {
            for change in &everything {
                handler.notify(change, Origin::Resync, report);
            }
            if let Some(resync) = &mut handler.resync {
                resync.due = now + resync.period;
            }
        }
    }
}

impl<V: View> EventHandler<V> {
    /// Notifies the handler of a change. A handler that panics misses that change.
    fn notify(&mut self, change: &Change<V>, origin: Origin, report: &Report<'_>) {
        let began = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.handler)(change, origin)));
        report.metrics.handled(&self.name, began.elapsed());
        if let Err(panic) = outcome {
            report.metrics.panicked(&self.name);
            tracing::error!(
                resource = %report.resource,
                handler = &*self.name,
                key = %change.key(),
                panic = panic_message(&*panic),
                "Event handler panicked"
            );
        }
    }
}
