//! Capture of errors that a manager logs during a test.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

/// Captures errors that are logged on this thread. Dropping it panics if one is not allowed.
pub(crate) struct ErrorLog {
    lines: Arc<Mutex<Vec<String>>>,
    allowed: Vec<String>,
    _guard: DefaultGuard,
}

impl ErrorLog {
    /// Captures errors from now on; lines that contain one of `allowed` are ignored.
    pub(crate) fn capture(allowed: Vec<String>) -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let subscriber = Registry::default().with(Capture(Arc::clone(&lines)));
        Self { lines, allowed, _guard: tracing::subscriber::set_default(subscriber) }
    }

    /// Takes the captured lines that are not allowed.
    pub(crate) fn take(&self) -> Vec<String> {
        let lines = std::mem::take(&mut *self.lines.lock());
        lines.into_iter().filter(|line| !self.allowed.iter().any(|allowed| line.contains(allowed))).collect()
    }
}

impl Drop for ErrorLog {
    fn drop(&mut self) {
        let errors = self.take();
        if !std::thread::panicking() {
            assert!(
                errors.is_empty(),
                "the manager logged errors that the test did not announce:\n{}",
                errors.join("\n")
            );
        }
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

/// Formats an event as one line: the message, and the fields as `name=value`.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let separator = if self.0.is_empty() { "" } else { " " };
        let written = if field.name() == "message" {
            write!(self.0, "{separator}{value:?}")
        } else {
            write!(self.0, "{separator}{}={value:?}", field.name())
        };
        written.expect("a string accepts everything");
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn an_error_that_is_not_allowed_fails_the_test() {
        let log = ErrorLog::capture(vec!["expected".to_owned()]);
        tracing::error!(key = "a/b", "Reconcile panicked");
        tracing::error!("an expected failure");
        tracing::warn!("only a warning");
        let failed = catch_unwind(AssertUnwindSafe(|| drop(log))).expect_err("dropping it must panic");
        let message = failed.downcast_ref::<String>().expect("the panic has a message");
        assert_eq!(
            message,
            "the manager logged errors that the test did not announce:\nReconcile panicked key=\"a/b\""
        );
    }

    #[test]
    fn taken_errors_do_not_fail_the_test() {
        let log = ErrorLog::capture(Vec::new());
        tracing::error!("Reconcile panicked");
        assert_eq!(log.take(), ["Reconcile panicked"]);
    }
}
