//! The stages of a manager's life, in the order in which they start.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A stage of the manager. They start in this order, each after the one before has started, and stop in reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The API server answers. First, as a manager that cannot reach it should say so and not start anything.
    ApiServer,
    /// Discovery and the sender of events. Before the controllers, which ask what the cluster serves.
    Context,
    /// Every enabled controller is initialized, one after another. Before the informers, so that each of them is
    /// started once, with all of its event handlers and indexes.
    Controllers,
    /// The informers are started. Before the loops, which wait for them.
    Informers,
    /// The loops of all controllers run. Last, and the first to stop: what they use outlives them.
    Loops,
}

impl Stage {
    /// All stages, in starting order.
    pub const ALL: [Self; 5] = [Self::ApiServer, Self::Context, Self::Controllers, Self::Informers, Self::Loops];
}

/// The stages that have started, with the tasks that belong to each.
#[derive(Debug, Default)]
pub(super) struct Stages {
    started: Vec<Started>,
}

#[derive(Debug)]
struct Started {
    stage: Stage,
    cancel: CancellationToken,
    tasks: JoinSet<()>,
}

impl Stages {
    /// Enters `stage`; later tasks belong to it.
    pub(super) fn enter(&mut self, stage: Stage) {
        debug_assert!(
            self.started.last().is_none_or(|last| last.stage < stage),
            "stages start in the order in which they are declared"
        );
        tracing::debug!(?stage, "Starting stage");
        self.started.push(Started { stage, cancel: CancellationToken::new(), tasks: JoinSet::new() });
    }

    /// Runs a task of the current stage, with the token that asks it to end.
    pub(super) fn spawn<F>(&mut self, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Some(current) = self.started.last_mut() else { return };
        current.tasks.spawn(task(current.cancel.clone()));
    }

    /// Stops all stages, the last started first: each is asked to end, and aborted after `grace` or at `abort`.
    pub(super) async fn stop(mut self, grace: Duration, abort: &CancellationToken) {
        while let Some(Started { stage, cancel, mut tasks }) = self.started.pop() {
            tracing::debug!(?stage, tasks = tasks.len(), "Stopping stage");
            cancel.cancel();
            let drained = async { while tasks.join_next().await.is_some() {} };
            let ended = tokio::select! {
                () = drained => true,
                () = abort.cancelled() => false,
                () = tokio::time::sleep(grace) => false,
            };
            if !ended {
                tracing::warn!(?stage, tasks = tasks.len(), "Stage did not end in time; its tasks are aborted");
                tasks.shutdown().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn all_stages_are_listed_in_starting_order() {
        assert!(Stage::ALL.is_sorted());
    }

    #[tokio::test(start_paused = true)]
    async fn stops_in_reverse_and_lets_each_stage_drain_before_the_one_beneath() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut stages = Stages::default();
        for (stage, drain) in [(Stage::Context, 1), (Stage::Informers, 2), (Stage::Loops, 3)] {
            stages.enter(stage);
            let log = Arc::clone(&log);
            stages.spawn(|cancel| async move {
                cancel.cancelled().await;
                tokio::time::sleep(Duration::from_secs(drain)).await;
                log.lock().push(stage);
            });
        }
        stages.stop(Duration::from_secs(10), &CancellationToken::new()).await;
        assert_eq!(*log.lock(), [Stage::Loops, Stage::Informers, Stage::Context]);
    }

    #[tokio::test(start_paused = true)]
    async fn aborts_a_stage_that_does_not_end_within_the_grace() {
        let mut stages = Stages::default();
        stages.enter(Stage::Loops);
        stages.spawn(|_| std::future::pending());
        let begun = tokio::time::Instant::now();
        stages.stop(Duration::from_secs(10), &CancellationToken::new()).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn aborts_at_once_on_the_second_signal() {
        let mut stages = Stages::default();
        stages.enter(Stage::Loops);
        stages.spawn(|_| std::future::pending());
        let abort = CancellationToken::new();
        abort.cancel();
        let begun = tokio::time::Instant::now();
        stages.stop(Duration::from_secs(10), &abort).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
