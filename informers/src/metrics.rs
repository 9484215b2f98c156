//! What is counted.

use std::time::Duration;

use kcm_api::Resource;

use crate::envelope::EventKind;

/// Receives what informers count; every method does nothing unless it is implemented.
///
/// Called on the task of an informer, sometimes under a lock: an implementation counts and returns.
pub trait Metrics: Send + Sync + 'static {
    /// An event came on a watch, initial ones included.
    fn event(&self, resource: &Resource, kind: EventKind) {
        let _ = (resource, kind);
    }

    /// A list was completed; `again` where it was not the informer's first.
    fn listed(&self, resource: &Resource, again: bool) {
        let _ = (resource, again);
    }

    /// A list or a watch failed.
    fn failed(&self, resource: &Resource) {
        let _ = resource;
    }

    /// An object could not be decoded.
    fn undecodable(&self, resource: &Resource) {
        let _ = resource;
    }

    /// A subscriber was told of a change.
    fn told(&self, resource: &Resource, subscriber: &'static str, took: Duration) {
        let _ = (resource, subscriber, took);
    }

    /// A subscriber, or the informer itself, panicked.
    fn panicked(&self, resource: &Resource, culprit: &'static str) {
        let _ = (resource, culprit);
    }
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMetrics;

impl Metrics for NoMetrics {}
