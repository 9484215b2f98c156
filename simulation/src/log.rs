//! Capture of the errors that a manager logs during a run.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

/// The errors that are logged on this thread while it exists.
pub(crate) struct Errors {
    lines: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
}

impl Errors {
    pub(crate) fn capture() -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let subscriber = Registry::default().with(Capture(Arc::clone(&lines)));
        Self { lines, _guard: tracing::subscriber::set_default(subscriber) }
    }

    pub(crate) fn first(&self) -> Option<String> {
        self.lines.lock().first().cloned()
    }
}

struct Capture(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Capture {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() == Level::ERROR {
            let mut line = Line(String::new());
            event.record(&mut line);
            self.0.lock().push(line.0);
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
