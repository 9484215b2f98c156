//! The event handlers of an informer, which are called inline and one after the other.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use kcm_api::{ObjectKey, Resource, View};
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::change::{Change, Origin};
use crate::metrics::Metrics;
use crate::missed_changes::{Missed, notify_in_order};
use crate::panic_message::panic_message;
use crate::passes::{NextPasses, Pass};
use crate::store::Store;

/// Number of objects that one step of a pass shows to one handler: half a millisecond of work, after which the thread is
/// given to others.
const SLICE: usize = 512;

/// The options of an event handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerOptions {
    /// Name in metrics and logs, usually the controller's.
    pub name: Cow<'static, str>,
    /// The period after which the handler is notified of every object again, although nothing changed; absent for
    /// never.
    pub resync_period: Option<Duration>,
    /// The time until the first resync, if it is less than the period: handlers with different phases are not resynced
    /// at the same moment.
    pub resync_phase: Option<Duration>,
}

impl HandlerOptions {
    /// Options with that name, and without a resync period.
    #[must_use]
    pub fn named(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), resync_period: None, resync_phase: None }
    }

    /// The same options with a resync period.
    #[must_use]
    pub fn resync_period(self, period: Duration) -> Self {
        Self { resync_period: Some(period), ..self }
    }

    /// The same options, with that time until the first resync.
    #[must_use]
    pub fn resync_phase(self, phase: Duration) -> Self {
        Self { resync_phase: Some(phase), ..self }
    }
}

/// The registration of an event handler with one informer, to remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    unshown: Unshown,
}

/// The handlers that have still to be shown objects which were in the cache when they were added. It has a lock of its own,
/// so that it can be read within a handler.
#[derive(Clone, Default)]
pub(crate) struct Unshown(Arc<RwLock<BTreeSet<HandlerRegistration>>>);

impl Unshown {
    pub(crate) fn contains(&self, id: HandlerRegistration) -> bool {
        self.0.read().contains(&id)
    }
}

struct EventHandler<V> {
    id: HandlerRegistration,
    name: Cow<'static, str>,
    resync: Option<Resync>,
    handler: Handler<V>,
    /// The pass that shows all objects to the handler now.
    pass: Option<Pass>,
    /// The passes that follow.
    next: NextPasses,
    missed: Missed<V>,
}

#[derive(Clone, Copy)]
struct Resync {
    period: Duration,
    due: Instant,
}

impl<V: View> EventHandlers<V> {
    pub(crate) const fn new(unshown: Unshown) -> Self {
        Self { handlers: Vec::new(), next_id: 0, unshown }
    }

    /// Adds an event handler, after notifying it of the first objects of `store`; [`work`](Self::work) shows it the rest.
    pub(crate) fn add(
        &mut self,
        options: HandlerOptions,
        handler: Handler<V>,
        store: &Store<V>,
        report: &Report<'_>,
    ) -> HandlerRegistration {
        let id = HandlerRegistration(self.next_id);
        self.next_id += 1;
        let HandlerOptions { name, resync_period, resync_phase } = options;
        let resync = resync_period.filter(|period| !period.is_zero()).map(|period| {
            let first = resync_phase.filter(|phase| *phase < period).unwrap_or(period);
            Resync { period, due: Instant::now() + first }
        });
        let mut added = EventHandler {
            id,
            name,
            resync,
            handler,
            pass: Some(Pass::first()),
            next: NextPasses::default(),
            missed: Missed::default(),
        };
        added.show_slice(store, report);
        if added.pass.is_some() {
            self.unshown.0.write().insert(id);
        }
        self.handlers.push(added);
        id
    }

    /// Removes a handler, and returns it for the caller to drop.
    pub(crate) fn remove(&mut self, id: HandlerRegistration) -> Option<impl Sized + use<V>> {
        let at = self.handlers.iter().position(|handler| handler.id == id)?;
        self.unshown.0.write().remove(&id);
        Some(self.handlers.remove(at))
    }

    /// Shows all objects to a handler again.
    pub(crate) fn show_again(&mut self, id: HandlerRegistration) {
        if let Some(handler) = self.handlers.iter_mut().find(|handler| handler.id == id) {
            handler.next.again = true;
        }
    }

    /// The handlers that exist now; later ones come after it.
    pub(crate) const fn present(&self) -> HandlerRegistration {
        HandlerRegistration(self.next_id)
    }

    /// Notifies all handlers, in the order of registration.
    pub(crate) fn notify(&mut self, change: &Change<V>, origin: Origin, report: &Report<'_>) {
        self.notify_before(self.present(), change, origin, report);
    }

    /// Notifies the handlers that were added before `end`, in the order of registration.
    pub(crate) fn notify_before(
        &mut self,
        end: HandlerRegistration,
        change: &Change<V>,
        origin: Origin,
        report: &Report<'_>,
    ) {
        for handler in self.handlers.iter_mut().take_while(|handler| handler.id.0 < end.0) {
            handler.notify(change, origin, report);
        }
    }

    /// When [`work`](Self::work) has something to do next.
    pub(crate) fn next_work(&self) -> Option<Instant> {
        self.handlers.iter().filter_map(EventHandler::next_work).min()
    }

    /// Takes one step of what handlers are to be notified of beside changes: a slice of a pass, or changes that they have
    /// missed. Returns `true` if there is more to do now.
    pub(crate) fn work(&mut self, now: Instant, store: &Store<V>, report: &Report<'_>) -> bool {
        for handler in &mut self.handlers {
            handler.retry_missed(now, report);
            if let Some(resync) = handler.resync.as_mut().filter(|resync| resync.due <= now) {
                resync.due = now + resync.period;
                handler.next.resync = true;
            }
        }
        if let Some(handler) = self.handlers.iter_mut().find(|handler| handler.is_behind()) {
            handler.show_slice(store, report);
            if handler.pass.as_ref().is_none_or(|pass| !pass.is_first()) {
                self.unshown.0.write().remove(&handler.id);
            }
        }
        self.handlers.iter().any(EventHandler::is_behind)
    }
}

impl<V: View> EventHandler<V> {
    /// Notifies the handler of a change of the cache.
    fn notify(&mut self, change: &Change<V>, origin: Origin, report: &Report<'_>) {
        if let Some(pass) = &mut self.pass
            && let Some(before) = pass.shows_first(change)
        {
            self.tell(&Change::Added(before), Origin::Initial, report);
        }
        self.tell(change, origin, report);
    }

    /// Notifies the handler of a change, after the changes of the object that it has missed.
    fn tell(&mut self, change: &Change<V>, origin: Origin, report: &Report<'_>) {
        if let Some(changes) = self.missed.with(change, origin) {
            return self.tell_in_order(change.key(), changes, origin, report);
        }
        if let Err(panic) = self.call(change, origin, report) {
            self.keep(change.key(), vec![change.clone()], origin, &panic, report);
        }
    }

    /// Notifies the handler of changes of an object, among them changes that it has missed.
    fn tell_in_order(&mut self, key: &ObjectKey, changes: Vec<Change<V>>, origin: Origin, report: &Report<'_>) {
        let mut last_panic = None;
        let left = notify_in_order(changes, |change| match self.call(change, origin, report) {
            Ok(()) => true,
            Err(panic) => {
                last_panic = Some(panic);
                false
            }
        });
        match last_panic {
            Some(panic) if !left.is_empty() => self.keep(key, left, origin, &panic, report),
            Some(_) | None => self.missed.succeeded(key),
        }
    }

    /// Calls the handler. The error is the message of its panic.
    fn call(&mut self, change: &Change<V>, origin: Origin, report: &Report<'_>) -> Result<(), String> {
        let began = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.handler)(change, origin)));
        report.metrics.handled(&self.name, began.elapsed());
        outcome.map_err(|panic| {
            report.metrics.panicked(&self.name);
            panic_message(&*panic)
        })
    }

    /// Keeps the changes for which the handler has panicked, to repeat them later.
    fn keep(&mut self, key: &ObjectKey, changes: Vec<Change<V>>, origin: Origin, panic: &str, report: &Report<'_>) {
        let retry_in = self.missed.keep(key, changes, origin, Instant::now());
        let (resource, handler) = (report.resource, &*self.name);
        if let Some(retry_in) = retry_in {
            tracing::error!(
                %resource,
                handler,
                %key,
                panic,
                ?retry_in,
                "Event handler panicked; it is notified of the change again"
            );
        } else {
            tracing::error!(
                %resource,
                handler,
                %key,
                panic,
                "Event handler panicked again; it is not notified of the deleted object any more"
            );
        }
    }

    fn retry_missed(&mut self, now: Instant, report: &Report<'_>) {
        for (changes, origin) in self.missed.due(now) {
            if let Some(key) = changes.first().map(|change| change.key().clone()) {
                self.tell_in_order(&key, changes, origin, report);
            }
        }
    }

    const fn is_behind(&self) -> bool {
        self.pass.is_some() || self.next.any()
    }

    fn next_work(&self) -> Option<Instant> {
        [self.resync.map(|resync| resync.due), self.missed.next_due()].into_iter().flatten().min()
    }

    /// Shows the next objects of a pass to the handler.
    fn show_slice(&mut self, store: &Store<V>, report: &Report<'_>) {
        let Some(mut pass) = self.pass.take().or_else(|| self.next.begin()) else { return };
        let slice = store.slice_after(pass.shown_up_to(), SLICE);
        let is_last = slice.len() < SLICE;
        for object in slice {
            if let Some((change, origin)) = pass.show(object) {
                self.tell(&change, origin, report);
            }
        }
        self.pass = (!is_last).then_some(pass);
    }
}
