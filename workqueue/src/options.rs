//! How a queue is set up.

use std::sync::Arc;
use std::time::Duration;

use crate::{Metrics, NoMetrics, RetryLimits};

/// How a queue is set up.
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
    /// What people call it: upstream's metric label `name`.
    pub name: String,
    /// How long failed keys wait.
    pub limits: RetryLimits,
    /// How long an initial key gives way to live ones before it takes turns with them.
    pub ageing: Duration,
    /// Where it reports what it does.
    pub metrics: Arc<dyn Metrics>,
}

impl QueueOptions {
    /// The usual: upstream's limits, an ageing time of one second, and no metrics.
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
