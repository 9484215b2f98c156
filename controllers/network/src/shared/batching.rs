//! The delay after which a change of a pod enqueues a service, so that further changes are reconciled with it.

use std::collections::HashMap;
use std::time::Duration;

use kcm_framework::Enqueue;
use kcm_framework::api::{Fnv1a, ObjectKey};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Minimum time from the beginning of a reconcile to the beginning of the next one that changes of pods cause, after a
/// rest.
const FIRST_SPACING: Duration = Duration::from_millis(10);
/// The same for each endpoint of a large service.
const SPACING_PER_ENDPOINT: Duration = Duration::from_micros(100);
/// Maximum of that time.
const LONGEST_SPACING: Duration = Duration::from_millis(80);
/// Minimum delay of a change that no traffic depends on.
const LAZY_DELAY: Duration = Duration::from_millis(500);
/// Number of spacings that are kept before spacings that are over are removed.
const KEPT: usize = 256;

/// The urgency of a change of a pod: traffic depends on it or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Traffic waits for the change.
    Urgent,
    /// No traffic depends on the change: the pod serves neither before nor after it.
    Lazy,
}

/// Delays changes of pods: by the period of the settings, and until some time has passed since the last reconcile.
///
/// Each reconcile compares all pods of the service and may write, so while a service rolls its changes are collected. The
/// first change after a rest does not wait. The time between two reconciles doubles while changes continue, from 10 ms, or
/// 0.1 ms per endpoint, to 80 ms. A change that no traffic depends on waits half a second to a second, and is reconciled
/// with the next change that traffic waits for.
///
/// # Memory
/// About 100 bytes for each service that was reconciled within the last 160 ms.
#[derive(Debug)]
pub(crate) struct Batching {
    period: Duration,
    pub(super) spacings: Mutex<Spacings>,
}

#[derive(Debug, Default)]
pub(super) struct Spacings {
    pub(super) by_service: HashMap<ObjectKey, Spacing>,
    /// Number of spacings at which those are removed that are over.
    cleaned_at: usize,
}

/// The time after a reconcile in which no other one begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spacing {
    began: Instant,
    length: Duration,
}

impl Spacing {
    /// The spacing of a reconcile that begins at `now`, after `last`.
    fn next(last: Option<Self>, endpoints: usize, now: Instant) -> Self {
        let of_size = SPACING_PER_ENDPOINT.saturating_mul(u32::try_from(endpoints).unwrap_or(u32::MAX));
        let first = FIRST_SPACING.max(of_size).min(LONGEST_SPACING);
        let doubled =
            last.filter(|last| !last.is_over(now)).map(|last| (last.length * 2).clamp(first, LONGEST_SPACING));
        Self { began: now, length: doubled.unwrap_or(first) }
    }

    /// Returns `true` if nothing has happened for twice its length.
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.began) > self.length * 2
    }

    fn rest(&self, now: Instant) -> Duration {
        (self.began + self.length).saturating_duration_since(now)
    }
}

impl Batching {
    /// Delays each change by at least this long.
    pub(crate) fn new(period: Duration) -> Self {
        Self { period, spacings: Mutex::default() }
    }

    /// Notes that a reconcile of a service with so many endpoints begins.
    pub(crate) fn begins(&self, service: &ObjectKey, endpoints: usize) {
        let now = Instant::now();
        let Spacings { by_service, cleaned_at } = &mut *self.spacings.lock();
        let next = Spacing::next(by_service.get(service).copied(), endpoints, now);
        by_service.insert(service.clone(), next);
        if by_service.len() > (*cleaned_at).max(KEPT) {
            by_service.retain(|_, spacing| !spacing.is_over(now));
            // The next removal pays for itself.
            *cleaned_at = by_service.len() * 2;
        }
    }

    /// Enqueues a service after a change of one of its pods.
    pub(crate) fn enqueue(&self, service: ObjectKey, urgency: Urgency) -> Enqueue<ObjectKey> {
        let spacing = self.spacings.lock().by_service.get(&service).copied();
        let rest = spacing.map_or(Duration::ZERO, |spacing| spacing.rest(Instant::now()));
        let lazy = match urgency {
            Urgency::Urgent => Duration::ZERO,
            Urgency::Lazy => LAZY_DELAY + spread(&service),
        };
        Enqueue::after(service, self.period.max(rest).max(lazy))
    }

    /// Forgets a service that was deleted.
    pub(crate) fn forget(&self, service: &ObjectKey) {
        self.spacings.lock().by_service.remove(service);
    }
}

/// A part of half a second that is always the same for a service, so that a thousand services are not enqueued at the same
/// moment.
fn spread(service: &ObjectKey) -> Duration {
    let hash = Fnv1a::new().part(service.namespace().unwrap_or_default()).part(service.name()).value();
    Duration::from_millis((hash >> 32) % 500)
}
