//! The metrics of informers.

use std::sync::Arc;
use std::time::Duration;

use kcm_api::Resource;

use crate::envelope::EventKind;

/// A function that returns the metrics of the informers of a resource. Called once per informer, so it may be slow.
pub type MetricsOf = dyn Fn(&Resource) -> Arc<dyn Metrics> + Send + Sync;

/// The metrics of one informer; every method does nothing unless it is implemented.
///
/// An implementation belongs to one resource. Called on the task of the informer, sometimes under a lock, so it
/// must return at once.
pub trait Metrics: Send + Sync + 'static {
    /// A watch event was received, initial events included.
    fn event(&self, kind: EventKind) {
        let _ = kind;
    }

    /// A list was completed. `again` is `true` unless it was the informer's first list.
    fn listed(&self, again: bool) {
        let _ = again;
    }

    /// A list or a watch failed.
    fn failed(&self) {}

    /// An object could not be decoded.
    fn undecodable(&self) {}

    /// An event handler was notified of a change.
    fn handled(&self, handler: &str, took: Duration) {
        let _ = (handler, took);
    }

    /// An event handler, or the informer itself, panicked.
    fn panicked(&self, culprit: &str) {
        let _ = culprit;
    }
}

/// Metrics that are not recorded.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMetrics;

impl Metrics for NoMetrics {}
