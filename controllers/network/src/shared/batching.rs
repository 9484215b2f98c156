//! The delay after which a change of a pod enqueues a service, so that further changes are reconciled with it.

use std::collections::HashMap;
use std::time::Duration;

use kcm_framework::Enqueue;
use kcm_framework::api::ObjectKey;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Minimum time from the beginning of a reconcile to the beginning of the next one that changes of pods cause, for each
/// endpoint of the service.
const SPACING: Duration = Duration::from_micros(100);
/// Maximum of that time.
const LONGEST_SPACING: Duration = Duration::from_millis(80);
/// A service with fewer endpoints does not wait.
const FEW: usize = 50;

/// Delays changes of pods: by the period of the settings, and for large services until some time has passed since the last
/// reconcile.
///
/// A reconcile costs in proportion to the endpoints of the service: all its pods are compared, and slices of a hundred
/// endpoints, or endpoints of a thousand, are written for each pod that changes. While a large service rolls, its changes
/// are therefore collected for a time in proportion to its size. The first change after a rest does not wait.
#[derive(Debug)]
pub(crate) struct Batching {
    period: Duration,
    earliest: Mutex<HashMap<ObjectKey, Instant>>,
}

impl Batching {
    /// Delays each change by at least this long.
    pub(crate) fn new(period: Duration) -> Self {
        Self { period, earliest: Mutex::default() }
    }

    /// Notes that a reconcile of a service with so many endpoints begins.
    pub(crate) fn begins(&self, service: &ObjectKey, endpoints: usize) {
        let mut earliest = self.earliest.lock();
        if endpoints < FEW {
            earliest.remove(service);
        } else {
            let spacing = SPACING.saturating_mul(u32::try_from(endpoints).unwrap_or(u32::MAX)).min(LONGEST_SPACING);
            earliest.insert(service.clone(), Instant::now() + spacing);
        }
    }

    /// Enqueues a service after a change of one of its pods.
    pub(crate) fn enqueue(&self, service: ObjectKey) -> Enqueue<ObjectKey> {
        let earliest = self.earliest.lock().get(&service).copied();
        let rest = earliest.map_or(Duration::ZERO, |it| it.saturating_duration_since(Instant::now()));
        Enqueue::after(service, self.period.max(rest))
    }

    /// Forgets a service that was deleted.
    pub(crate) fn forget(&self, service: &ObjectKey) {
        self.earliest.lock().remove(service);
    }
}
