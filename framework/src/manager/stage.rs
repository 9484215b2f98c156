//! The stages of a manager's life, in the order in which they start.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::panics::PanicLog;
use crate::supervise::BACKOFF;

/// A stage of the manager. Stages start in this order, each after the previous stage has started, and stop in reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The API server responds. This comes first: a manager that cannot reach it must report that and start nothing.
    ApiServer,
    /// Discovery and the sender of events. Before the controllers, which ask what the cluster serves.
    Context,
    /// Every enabled controller is initialized, one after another. Before the informers, so that each of them is
    /// started once, with all of its event handlers and indexes.
    Controllers,
    /// The informers are started. Before the lease, so that the caches of a manager that waits for it are up to date.
    Informers,
    /// The lease is held. Before the loops, which only one manager may run.
    Lease,
    /// The loops of all controllers run. Last, and the first to stop: what they use outlives them.
    Loops,
}

impl Stage {
    /// All stages, in starting order.
    pub const ALL: [Self; 6] =
        [Self::ApiServer, Self::Context, Self::Controllers, Self::Informers, Self::Lease, Self::Loops];
}

/// The stages that have started, with the tasks that belong to each.
pub(super) struct Stages {
    current: Option<Stage>,
    tasks: BTreeMap<Stage, Tasks>,
    panics: PanicLog,
}

#[derive(Debug, Default)]
struct Tasks {
    cancel: CancellationToken,
    running: JoinSet<()>,
}

impl Stages {
    /// No stage has started; the panics of their tasks go to `panics`.
    pub(super) const fn new(panics: PanicLog) -> Self {
        Self { current: None, tasks: BTreeMap::new(), panics }
    }

    pub(super) fn enter(&mut self, stage: Stage) {
        debug_assert!(
            self.current.is_none_or(|current| current < stage),
            "stages start in the order in which they are declared"
        );
        tracing::debug!(?stage, "Starting stage");
        self.current = Some(stage);
    }

    /// Runs a task that ends with `stage`, with the token that asks it to end. It may begin before that stage is
    /// entered.
    ///
    /// A task that panics is logged, counted, and started again with back-off.
    pub(super) fn spawn<F>(
        &mut self,
        stage: Stage,
        name: &'static str,
        task: impl Fn(CancellationToken) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let Tasks { cancel, running } = self.tasks.entry(stage).or_default();
        let (cancel, panics) = (cancel.clone(), self.panics.clone());
        running.spawn(async move {
            let mut backoff = BACKOFF;
            let mut has_ended = false;
            while !has_ended {
                let started = Instant::now();
                // Called within the future, so that a panic before the first await is caught as well.
                has_ended = panics.catch(name, async { task(cancel.clone()).await }).await.is_some();
                if !has_ended {
                    let delay = backoff.delay_after(started.elapsed());
                    has_ended = cancel.run_until_cancelled(tokio::time::sleep(delay)).await.is_none();
                }
            }
        });
    }

    /// Stops all stages, the last started first: each is asked to end, and aborted after `grace` or at `abort`.
    pub(super) async fn stop(mut self, grace: Duration, abort: &CancellationToken) {
        while let Some((stage, Tasks { cancel, mut running })) = self.tasks.pop_last() {
            tracing::debug!(?stage, tasks = running.len(), "Stopping stage");
            cancel.cancel();
            let drained = async { while running.join_next().await.is_some() {} };
            let ended = tokio::select! {
                // Tasks that have ended need no abort.
                biased;
                () = drained => true,
                () = abort.cancelled() => false,
                () = tokio::time::sleep(grace) => false,
            };
            if !ended {
                tracing::warn!(?stage, tasks = running.len(), "Stage did not end in time; its tasks are aborted");
                running.shutdown().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;
    use crate::metrics::Metrics;

    fn stages() -> Stages {
        Stages::new(PanicLog::new(Metrics::new()))
    }

    #[test]
    fn all_stages_are_listed_in_starting_order() {
        assert!(Stage::ALL.is_sorted());
    }

    #[tokio::test(start_paused = true)]
    async fn stops_in_reverse_and_lets_each_stage_drain_before_the_one_beneath() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut stages = stages();
        for (stage, drain) in [(Stage::Context, 1), (Stage::Informers, 2), (Stage::Loops, 3)] {
            stages.enter(stage);
            let log = Arc::clone(&log);
            stages.spawn(stage, "drains", move |cancel| {
                let log = Arc::clone(&log);
                async move {
                    cancel.cancelled().await;
                    tokio::time::sleep(Duration::from_secs(drain)).await;
                    log.lock().push(stage);
                }
            });
        }
        stages.stop(Duration::from_secs(10), &CancellationToken::new()).await;
        assert_eq!(*log.lock(), [Stage::Loops, Stage::Informers, Stage::Context]);
    }

    #[tokio::test(start_paused = true)]
    async fn aborts_a_stage_that_does_not_end_within_the_grace() {
        let mut stages = stages();
        stages.spawn(Stage::Loops, "hangs", |_| std::future::pending());
        let begun = tokio::time::Instant::now();
        stages.stop(Duration::from_secs(10), &CancellationToken::new()).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn aborts_at_once_on_the_second_signal() {
        let mut stages = stages();
        stages.spawn(Stage::Loops, "hangs", |_| std::future::pending());
        let abort = CancellationToken::new();
        abort.cancel();
        let begun = tokio::time::Instant::now();
        stages.stop(Duration::from_secs(10), &abort).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_began_before_its_stage_stops_with_it() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut stages = stages();
        for (entered, stage) in [(Stage::Controllers, Stage::Loops), (Stage::Informers, Stage::Informers)] {
            stages.enter(entered);
            let log = Arc::clone(&log);
            stages.spawn(stage, "notes", move |cancel| {
                let log = Arc::clone(&log);
                async move {
                    cancel.cancelled().await;
                    log.lock().push(stage);
                }
            });
        }
        stages.stop(Duration::from_secs(10), &CancellationToken::new()).await;
        assert_eq!(*log.lock(), [Stage::Loops, Stage::Informers]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_counted_and_started_again() {
        let mut stages = stages();
        let panics = stages.panics.clone();
        let starts = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&starts);
        stages.spawn(Stage::Context, "fragile", move |cancel| {
            *counted.lock() += 1;
            assert!(*counted.lock() > 2, "as the test wants it");
            async move { cancel.cancelled().await }
        });
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(*starts.lock(), 3);
        let [of_task] = &panics.all()[..] else { panic!("one task has panicked") };
        assert_eq!((of_task.task, of_task.count, &*of_task.last), ("fragile", 2, "as the test wants it"));
        stages.stop(Duration::ZERO, &CancellationToken::new()).await;
    }
}
