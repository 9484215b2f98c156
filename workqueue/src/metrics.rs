//! The metrics of a queue.

use std::time::Duration;

/// The metrics of one queue.
///
/// An implementation belongs to one queue and carries its name, upstream's label `name`. It is called without any lock
/// of the queue, on any thread that uses the queue, and should return at once. Calls of different threads may arrive
/// in either order, so `workqueue_depth` is kept by adding and subtracting, not by setting.
///
/// # Upstream
/// These are the metrics of client-go's work queue, by the same names. The two that change with time alone,
/// `workqueue_unfinished_work_seconds` and `workqueue_longest_running_processor_seconds`, are not reported but read
/// with [`Queue::unfinished_work`](crate::Queue::unfinished_work), at each scrape. Upstream refreshes them twice a
/// second.
pub trait Metrics: Send + Sync {
    /// `keys` keys, at least one, that were not waiting for a worker now are: `workqueue_adds_total` and
    /// `workqueue_depth` grow by that number.
    ///
    /// Adds that merge into a waiting one do not count. A key that is processing or parked counts when it is added, as
    /// upstream, so this depth may exceed [`Queue::len`](crate::Queue::len).
    fn added(&self, keys: u64);

    /// A worker took a key `waited` after it was added: `workqueue_depth` shrinks by one,
    /// `workqueue_queue_duration_seconds` observes `waited`.
    fn taken(&self, waited: Duration);

    /// `keys` keys, at least one, that were waiting for a worker were dropped: `workqueue_depth` shrinks by that number.
    fn dropped(&self, keys: u64);

    /// A worker has finished or parked a key `worked` after it took it: `workqueue_work_duration_seconds` observes
    /// `worked`.
    fn finished(&self, worked: Duration);

    /// A key is added later, by a retry or a delayed add: `workqueue_retries_total` grows by one.
    ///
    /// # Upstream
    /// Counts delayed adds that have nothing to do with a failure too.
    fn retried(&self);
}

/// Metrics that are not recorded.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMetrics;

impl Metrics for NoMetrics {
    fn added(&self, _keys: u64) {}
    fn taken(&self, _waited: Duration) {}
    fn dropped(&self, _keys: u64) {}
    fn finished(&self, _worked: Duration) {}
    fn retried(&self) {}
}
