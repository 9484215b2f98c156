//! A simulated process: a manager in a runtime of its own, which runs until every task waits.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use futures::future::{Either, poll_fn, select};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::log::Pulse;

/// A current-thread runtime with a paused clock. Dropping it kills what runs in it between two polls.
pub(crate) struct Process {
    tasks: JoinSet<()>,
    runtime: Runtime,
    idle: Arc<Mutex<Idle>>,
    pulse: Pulse,
    started: Instant,
}

/// The state of a process after it has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    Waits,
    /// A loop reconciles again and again at the same time.
    Races,
}

/// Counts how often the runtime has found no task to run.
#[derive(Default)]
struct Idle {
    waker: Option<Waker>,
    /// Number of parks that pass uncounted. The clock jumps to the next timer in such a park.
    passed: u32,
    parks: u32,
}

/// A timer that is due fires in the first park, and its task runs before the second.
const PARKS: u32 = 2;

impl Process {
    pub(crate) fn new(pulse: Pulse) -> std::io::Result<Self> {
        let idle = Arc::<Mutex<Idle>>::default();
        let of_hook = Arc::clone(&idle);
        let park = move || {
            let mut idle = of_hook.lock();
            if idle.waker.is_none() {
            } else if idle.passed > 0 {
                idle.passed -= 1;
            } else {
                idle.parks += 1;
                if let Some(waker) = idle.waker.take() {
                    waker.wake();
                }
            }
        };
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).on_thread_park(park).build()?;
        let started = {
            let _entered = runtime.enter();
            Instant::now()
        };
        Ok(Self { tasks: JoinSet::new(), runtime, idle, pulse, started })
    }

    /// Runs `build` in the context of the runtime, and the task that it returns.
    pub(crate) fn start<F: Future<Output = ()> + Send + 'static>(&mut self, build: impl FnOnce() -> F) {
        let _entered = self.runtime.enter();
        let task = build();
        self.tasks.spawn(task);
    }

    /// Runs all tasks until every one waits. The time stays as it is.
    pub(crate) fn settle(&self) -> Settled {
        self.runtime.block_on(idle(&self.idle, &self.pulse, 0))
    }

    /// Advances the time to the next timer, or to `limit` since the start, and runs all tasks until every one waits.
    pub(crate) fn wait(&self, limit: Duration) -> Settled {
        let until = self.started + limit;
        let settled = self.runtime.block_on(async {
            let sleep = Box::pin(sleep_until(until));
            match select(sleep, Box::pin(idle(&self.idle, &self.pulse, 1))).await {
                Either::Left(_) => Settled::Waits,
                Either::Right((settled, _)) => settled,
            }
        });
        match settled {
            Settled::Waits => self.settle(),
            Settled::Races => Settled::Races,
        }
    }

    /// Advances the time at once, as for a process that was stopped.
    pub(crate) fn jump(&self, time: Duration) {
        self.runtime.block_on(tokio::time::advance(time));
    }

    /// Returns the time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        let _entered = self.runtime.enter();
        self.started.elapsed()
    }

    /// Returns `true` if a task has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.tasks.try_join_next().is_some()
    }
}

async fn idle(idle: &Mutex<Idle>, pulse: &Pulse, passed: u32) -> Settled {
    *idle.lock() = Idle { passed, ..Idle::default() };
    pulse.begin();
    poll_fn(|context| {
        let mut idle = idle.lock();
        if idle.parks >= PARKS {
            idle.waker = None;
            return Poll::Ready(Settled::Waits);
        }
        if pulse.is_racing(context.waker()) {
            idle.waker = None;
            return Poll::Ready(Settled::Races);
        }
        idle.waker = Some(context.waker().clone());
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::mpsc;
    use tokio::time::sleep;

    use super::*;
    use crate::log::Errors;

    /// Pins what the simulation relies on: tokio calls the hook when no task is ready, and a wake in it keeps the paused
    /// clock as it is.
    #[test]
    fn settles_with_every_task_waiting_and_the_time_unchanged() {
        let mut process = Process::new(Pulse::default()).unwrap();
        let (sender, mut receiver) = mpsc::unbounded_channel::<u32>();
        let (seen, woken) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (of_first, of_second) = (Arc::clone(&seen), Arc::clone(&woken));
        process.start(|| async move {
            while let Some(number) = receiver.recv().await {
                tokio::task::yield_now().await;
                of_first.fetch_add(number, Ordering::Relaxed);
            }
        });
        process.start(|| async move {
            loop {
                sleep(Duration::from_secs(10)).await;
                of_second.fetch_add(1, Ordering::Relaxed);
            }
        });
        process.settle();
        for number in 1..=100 {
            sender.send(number).unwrap();
            process.settle();
            assert_eq!(process.elapsed(), Duration::ZERO);
        }
        assert_eq!((seen.load(Ordering::Relaxed), woken.load(Ordering::Relaxed)), (5050, 0));
    }

    #[test]
    fn a_loop_that_never_waits_is_stopped() {
        let pulse = Pulse::default();
        let _errors = Errors::capture(&pulse);
        let mut process = Process::new(pulse).unwrap();
        process.start(|| async {
            loop {
                drop(tracing::info_span!("reconcile"));
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(process.settle(), Settled::Races);
    }

    #[test]
    fn waits_for_one_timer_at_a_time_and_no_longer_than_the_limit() {
        let mut process = Process::new(Pulse::default()).unwrap();
        let woken = Arc::new(AtomicU32::new(0));
        let of_task = Arc::clone(&woken);
        process.start(|| async move {
            loop {
                sleep(Duration::from_secs(10)).await;
                of_task.fetch_add(1, Ordering::Relaxed);
            }
        });
        process.settle();
        process.wait(Duration::from_secs(4));
        assert!(process.elapsed() <= Duration::from_millis(4_001), "{:?}", process.elapsed());
        while woken.load(Ordering::Relaxed) == 0 {
            process.wait(Duration::from_secs(100));
        }
        assert!(process.elapsed() < Duration::from_secs(11), "{:?}", process.elapsed());
        assert_eq!(woken.load(Ordering::Relaxed), 1);
    }
}
