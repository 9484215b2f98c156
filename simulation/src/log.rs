//! Capture of what a manager logs during a run: its errors, and the number of its reconciles.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

/// Largest number of reconciles without a pause. More are a loop that never waits.
const MAX_RECONCILES: u32 = 20_000;

/// The errors that are logged on this thread while it exists.
pub(crate) struct Errors {
    lines: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
}

/// Counts the reconciles since the process has waited for the last time. Clones share the count.
#[derive(Clone, Default)]
pub(crate) struct Pulse(Arc<Mutex<Beats>>);

#[derive(Default)]
struct Beats {
    count: u32,
    waker: Option<Waker>,
}

impl Pulse {
    /// Begins to count, and wakes `waker` when the process does too much without a pause.
    pub(crate) fn begin(&self) {
        *self.0.lock() = Beats::default();
    }

    /// Returns `true` if the process does too much without a pause. Else wakes `waker` once it does.
    pub(crate) fn is_racing(&self, waker: &Waker) -> bool {
        let mut beats = self.0.lock();
        beats.waker = Some(waker.clone());
        beats.count > MAX_RECONCILES
    }

    fn beat(&self) {
        let mut beats = self.0.lock();
        beats.count += 1;
        if beats.count > MAX_RECONCILES
            && let Some(waker) = beats.waker.take()
        {
            waker.wake();
        }
    }
}

impl Errors {
    pub(crate) fn capture(pulse: &Pulse) -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let subscriber = Registry::default().with(Capture { lines: Arc::clone(&lines), pulse: pulse.clone() });
        Self { lines, _guard: tracing::subscriber::set_default(subscriber) }
    }

    pub(crate) fn first(&self) -> Option<String> {
        self.lines.lock().first().cloned()
    }
}

struct Capture {
    lines: Arc<Mutex<Vec<String>>>,
    pulse: Pulse,
}

impl<S: Subscriber> Layer<S> for Capture {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        if attributes.metadata().name() == "reconcile" {
            self.pulse.beat();
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() == Level::ERROR {
            let mut line = Line(String::new());
            event.record(&mut line);
            self.lines.lock().push(line.0);
        }
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let separator = if self.0.is_empty() { "" } else { " " };
        let written = write!(self.0, "{separator}{}={value:?}", field.name());
        written.expect("a string accepts everything");
    }
}
