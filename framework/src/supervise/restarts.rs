//! Common parts of restarts: the back-off, and the report of a failure.

use std::any::Any;
use std::time::Duration;

use kcm_client::{BoxError, error_chain};
use kcm_informers::{Backoff, panic_message};
use tokio_util::sync::CancellationToken;

use crate::first_failure::FirstFailure;

/// The back-off of what fails and is started again: 1 s doubling to a minute, reset by a run of two minutes.
pub(crate) const BACKOFF: Backoff =
    Backoff::new(Duration::from_secs(1), Duration::from_mins(1), Duration::from_mins(2));

/// Time for which the loops of a controller, and each stage of the manager, may finish their work.
///
/// # Upstream
/// The default of `--controller-shutdown-timeout`.
pub const GRACE: Duration = Duration::from_secs(10);

/// Waits for `delay`; returns whether it ended before `cancel`.
pub(super) async fn pause(cancel: &CancellationToken, delay: Duration) -> bool {
    cancel.run_until_cancelled(tokio::time::sleep(delay)).await.is_some()
}

/// Logs a failure, and records it if it ends the manager.
pub(super) fn report(
    failures: &FirstFailure,
    controller: &'static str,
    what: &str,
    error: &(dyn std::error::Error + 'static),
) {
    if failures.note(controller, what, error_chain(error)) {
        tracing::error!(controller, what, error, "Controller failed");
    } else {
        tracing::error!(controller, what, error, "Controller failed; restarting it with back-off");
    }
}

/// An error from a panic, with its message.
#[derive(Debug, thiserror::Error)]
#[error("panicked: {0}")]
pub(super) struct Panicked(String);

impl Panicked {
    pub(super) fn of(panic: &(dyn Any + Send)) -> BoxError {
        Self(panic_message(panic)).into()
    }
}
