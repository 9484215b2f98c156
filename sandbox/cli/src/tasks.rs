//! [`Tasks`]: the running tasks of a sandbox; the end of each is reported.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use tokio::task::JoinSet;

/// The running tasks; dropping this aborts them.
#[derive(Default)]
pub(super) struct Tasks {
    tasks: JoinSet<Ended>,
}

struct Ended {
    name: &'static str,
    outcome: Result<Result<(), String>, Box<dyn Any + Send>>,
}

impl Ended {
    /// The reason why the task ended, if it failed.
    fn failure(self) -> Option<String> {
        let Self { name, outcome } = self;
        match outcome {
            Ok(ended) => ended.err(),
            // The panic hook has printed the message and the location.
            Err(_) => Some(format!("{name} panicked: this is a bug of this program")),
        }
    }
}

impl Tasks {
    /// Spawns a task; its error is a sentence that gives the reason.
    pub(super) fn start(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), String>> + Send + 'static,
    ) {
        self.tasks.spawn(async move { Ended { name, outcome: AssertUnwindSafe(task).catch_unwind().await } });
    }

    /// Waits for the first task to end before a stop signal, and returns the reason.
    ///
    /// # Cancellation
    /// Nothing is lost: a task that ended meanwhile is reported by the next call.
    pub(super) async fn first_failure(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Ok(ended)) => {
                let name = ended.name;
                ended.failure().unwrap_or_else(|| format!("{name} ended by itself: this is a bug of this program"))
            }
            // Single tasks are never aborted.
            Some(Err(_)) | None => std::future::pending().await,
        }
    }

    /// Waits for all tasks to end after a stop signal, and returns their failures.
    pub(super) async fn join_all(mut self) -> Vec<String> {
        let mut failures = Vec::new();
        while let Some(ended) = self.tasks.join_next().await {
            failures.extend(ended.ok().and_then(Ended::failure));
        }
        failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn failure(task: impl Future<Output = Result<(), String>> + Send + 'static) -> String {
        let mut tasks = Tasks::default();
        tasks.start("another task", std::future::pending());
        tasks.start("the task", task);
        tasks.first_failure().await
    }

    #[tokio::test]
    async fn a_failing_task_reports_its_reason() {
        assert_eq!(failure(async { Err("no more".to_owned()) }).await, "no more");
    }

    #[tokio::test]
    async fn a_task_that_panics_or_ends_by_itself_is_named() {
        let panics = async { panic!("this one is meant to") };
        assert_eq!(failure(panics).await, "the task panicked: this is a bug of this program");
        assert_eq!(failure(async { Ok(()) }).await, "the task ended by itself: this is a bug of this program");
    }

    #[tokio::test]
    async fn tasks_that_end_after_the_stop_signal_are_no_failures() {
        let mut tasks = Tasks::default();
        tasks.start("one", async { Ok(()) });
        tasks.start("two", async { Err("could not finish".to_owned()) });
        assert_eq!(tasks.join_all().await, ["could not finish"]);
    }
}
