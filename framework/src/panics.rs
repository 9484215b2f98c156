//! Panics in the tasks of a manager, which are caught, logged and counted.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use kcm_informers::panic_message;
use parking_lot::Mutex;

use crate::metrics::Metrics;

/// The panics of one task of a manager that belongs to no controller, such as discovery. The task continues after each
/// panic.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskPanics {
    /// The name of the task.
    pub task: &'static str,
    /// Number of panics of the task.
    pub count: u64,
    /// The message of the last panic.
    pub last: String,
}

/// The record of all panics of tasks. Cheap to clone; all clones are one record.
#[derive(Clone)]
pub(crate) struct PanicLog {
    metrics: Arc<Metrics>,
    by_task: Arc<Mutex<BTreeMap<&'static str, (u64, String)>>>,
}

impl PanicLog {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, by_task: Arc::default() }
    }

    /// Runs a future of that task. A panic is logged and counted, and returns `None`.
    pub(crate) async fn catch<T>(&self, task: &'static str, work: impl Future<Output = T>) -> Option<T> {
        AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| self.note(task, &*panic)).ok()
    }

    fn note(&self, task: &'static str, panic: &(dyn Any + Send)) {
        let message = panic_message(panic);
        tracing::error!(task, panic = message, "Task panicked; restarting it");
        self.metrics.task_panicked(task);
        let mut by_task = self.by_task.lock();
        let (count, last) = by_task.entry(task).or_default();
        *count += 1;
        *last = message;
    }

    pub(crate) fn all(&self) -> Vec<TaskPanics> {
        let by_task = self.by_task.lock();
        by_task.iter().map(|(&task, (count, last))| TaskPanics { task, count: *count, last: last.clone() }).collect()
    }
}
