//! What is counted.

use std::sync::Arc;
use std::time::Duration;

use kcm_api::Resource;

use crate::envelope::EventKind;

/// Gives the informers of a resource what they report to. Asked once an informer, so it may be slow.
pub type MetricsOf = dyn Fn(&Resource) -> Arc<dyn Metrics> + Send + Sync;

/// Receives what one informer counts; every method does nothing unless it is implemented.
///
/// An implementation belongs to one resource. Called on the task of the informer, sometimes under a lock: it counts and
/// returns.
pub trait Metrics: Send + Sync + 'static {
    /// An event came on a watch, initial ones included.
    fn event(&self, kind: EventKind) {
        let _ = kind;
    }

    /// A list was completed; `again` where it was not the informer's first.
    fn listed(&self, again: bool) {
        let _ = again;
    }

    /// A list or a watch failed.
    fn failed(&self) {}

    /// An object could not be decoded.
    fn undecodable(&self) {}

    /// A subscriber was told of a change.
    fn handled(&self, subscriber: &'static str, took: Duration) {
        let _ = (subscriber, took);
    }

    /// A subscriber, or the informer itself, panicked.
    fn panicked(&self, culprit: &'static str) {
        let _ = culprit;
    }
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMetrics;

impl Metrics for NoMetrics {}
