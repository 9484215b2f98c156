//! The options of a queue.

use std::sync::Arc;
use std::time::Duration;

use crate::limits::RetryLimits;
use crate::metrics::{Metrics, NoMetrics};

/// The options of a queue.
///
/// # Examples
/// ```
/// # use std::time::Duration;
/// # use kcm_workqueue::{Queue, QueueOptions, RetryLimits};
/// let limits = RetryLimits { base: Duration::from_secs(1), ..RetryLimits::default() };
/// let queue = Queue::<String>::new(QueueOptions { limits, ..QueueOptions::named("job") });
/// assert_eq!(queue.name(), "job");
/// ```
#[derive(Clone)]
pub struct QueueOptions {
    /// The name of the queue: upstream's metric label `name`.
    pub name: String,
    /// The rate limits of retries.
    pub limits: RetryLimits,
    /// Time for which an initial key gives way to live keys before it takes turns with them.
    pub ageing: Duration,
    /// The metrics of the queue.
    pub metrics: Arc<dyn Metrics>,
}

impl QueueOptions {
    /// The default options: upstream's rate limits, an ageing time of one second, and no metrics.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            limits: RetryLimits::default(),
            ageing: Duration::from_secs(1),
            metrics: Arc::new(NoMetrics),
        }
    }
}
