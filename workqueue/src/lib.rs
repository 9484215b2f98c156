//! x
mod lanes;
#[cfg(test)]
mod laws;
mod limits;
mod metrics;
#[cfg(test)]
mod model;
mod options;
mod priority;
mod queue;
mod snapshot;
mod state;

pub use limits::RetryLimits;
pub use metrics::{Metrics, NoMetrics};
pub use options::QueueOptions;
pub use priority::Priority;
pub use queue::Queue;
pub use snapshot::{Delayed, Failing, Held, QueueSnapshot, UnfinishedWork};
