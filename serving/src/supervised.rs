//! Runs the tasks of the HTTPS port again after a panic.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use kcm_framework::Metrics;
use kcm_framework::informers::panic_message;
use tokio::time::{Instant, sleep};

/// The first pause before a task is started again, and the longest one. Each is twice the one before.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// Runs a task and returns its result. After a panic, which is logged and counted, the task is started again.
pub(super) async fn supervised<T, F: Future<Output = T>>(
    metrics: &Metrics,
    name: &'static str,
    task: impl Fn() -> F,
) -> T {
    let (first, longest) = PAUSES;
    let mut pause = first;
    loop {
        let started = Instant::now();
        // Called within the future, so that a panic before the first await is caught as well.
        match AssertUnwindSafe(async { task().await }).catch_unwind().await {
            Ok(result) => return result,
            Err(panic) => {
                let panic = panic_message(&*panic);
                tracing::error!(task = name, panic, "Task of the HTTPS port panicked; restarting it");
                metrics.task_panicked(name);
            }
        }
        if started.elapsed() >= longest {
            pause = first;
        }
        sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_counted_and_started_again_less_and_less_often() {
        let metrics = Metrics::new();
        let (starts, begun) = (Cell::new(0), Instant::now());
        let result = supervised(&metrics, "fragile", || {
            starts.set(starts.get() + 1);
            let start = starts.get();
            async move {
                assert!(start > 3, "as the test wants it");
                start
            }
        });
        assert_eq!(result.await, 4);
        assert_eq!(begun.elapsed(), Duration::from_secs(1 + 2 + 4));
        let page = metrics.encode();
        assert!(page.contains("manager_task_panics_total{task=\"fragile\"} 3\n"), "{page}");
    }
}
