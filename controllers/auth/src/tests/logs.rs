//! The log lines of a test.

use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

/// The fields of all log lines and spans of a thread.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<String>>);

impl Lines {
    /// Captures lines of every level until the guard is dropped.
    pub(crate) fn capture() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let guard = tracing::subscriber::set_default(Registry::default().with(lines.clone()));
        (lines, guard)
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().clone()
    }
}

impl Visit for Lines {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        use std::fmt::Write as _;
        writeln!(self.0.lock(), "{field}={value:?}").expect("a string accepts everything");
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.record_debug(field, &kcm_framework::error_chain(value));
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        attributes.record(&mut self.clone());
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        event.record(&mut self.clone());
    }
}
