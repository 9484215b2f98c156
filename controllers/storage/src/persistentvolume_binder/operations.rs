//! The back-off of operations that take effect outside of the API: deleting, recycling and provisioning storage.

use std::collections::HashMap;
use std::time::Duration;

use kcm_framework::api::ObjectKey;
use parking_lot::Mutex;
use tokio::time::Instant;

/// # Upstream
/// `initialDurationBeforeRetry` and `maxDurationBeforeRetry` of `pkg/util/goroutinemap/exponentialbackoff`
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(122);

#[derive(Debug, Clone, Copy)]
struct Failure {
    delay: Duration,
    until: Instant,
}

/// The back-off of the operation of each object.
#[derive(Debug, Default)]
pub(super) struct BackOffs(Mutex<HashMap<ObjectKey, Failure>>);

impl BackOffs {
    /// Returns the time for which the operation of an object must wait; `None` if it may begin.
    pub(super) fn wait(&self, object: &ObjectKey, now: Instant) -> Option<Duration> {
        let until = self.0.lock().get(object)?.until;
        until.checked_duration_since(now).filter(|wait| !wait.is_zero())
    }

    /// Notes a failure, and returns the time until the next attempt.
    pub(super) fn failed(&self, object: &ObjectKey, now: Instant) -> Duration {
        let mut failures = self.0.lock();
        let delay = failures.get(object).map_or(FIRST, |last| (last.delay * 2).min(LONGEST));
        failures.insert(object.clone(), Failure { delay, until: now + delay });
        delay
    }

    pub(super) fn forget(&self, object: &ObjectKey) {
        self.0.lock().remove(object);
    }
}
