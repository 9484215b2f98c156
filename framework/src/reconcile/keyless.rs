//! Loops without keys: periodic work and tasks, with a session.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kcm_client::BoxError;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::gate::{Gate, Inside};
use super::loop_core::LoopCore;
use crate::control_loop::Loop;
use crate::explain::Notes;
use crate::progress::{HeldKeys, Progress, Runs, Stall};

/// A loop that reconciles no keys.
pub(crate) struct Keyless(pub(crate) LoopCore);

impl Keyless {
    /// Runs `work` every `period`, the first time at once, and never before the caches show the writes of the run
    /// before.
    pub(crate) fn periodic<F>(self, period: Duration, work: F) -> Loop
    where
        F: Fn(Arc<Session>) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync + 'static,
    {
        let Self(core) = self;
        let (name, reads) = (core.name, core.caches.to_vec());
        let periodic = Arc::new(Periodic {
            gate: Gate::new(name, Arc::clone(&core.caches)),
            period,
            runs: Runs::every(period),
            work,
            core,
        });
        let progress = Arc::clone(&periodic);
        let described = Loop::new(name, reads, move |cancel| {
            let periodic = Arc::clone(&periodic);
            Box::pin(async move {
                tokio::select! {
                    biased;
                    () = periodic.run(&cancel) => {}
                    () = periodic.gate.check_pending_writes(&periodic.core.live) => {}
                }
                Ok(())
            })
        });
        described.with_progress(progress)
    }

    /// Runs `task` with one session for its life. The session knows no caches: nothing waits for its writes.
    pub(crate) fn task<F>(self, task: F) -> Loop
    where
        F: Fn(CancellationToken, Arc<Session>) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync + 'static,
    {
        let Self(core) = self;
        let (name, reads) = (core.name, core.caches.to_vec());
        Loop::new(name, reads, move |cancel| task(cancel, Arc::new(core.session_without_caches())))
    }
}

struct Periodic<F> {
    gate: Gate,
    period: Duration,
    runs: Runs,
    work: F,
    core: LoopCore,
}

/// Stalled if the caches do not show the writes of the last run, or if no run begins for several periods.
impl<F: Send + Sync> Progress for Periodic<F> {
    fn stall(&self) -> Option<Stall> {
        self.gate.stall().or_else(|| self.runs.stall())
    }

    fn held(&self) -> HeldKeys {
        self.gate.held()
    }
}

impl<F> Periodic<F>
where
    F: Fn(Arc<Session>) -> BoxFuture<'static, Result<(), BoxError>>,
{
    async fn run(&self, cancel: &CancellationToken) {
        self.runs.begin();
        while let Some(inside) = cancel.run_until_cancelled(self.gate.enter()).await {
            self.run_once(inside).await;
            if cancel.run_until_cancelled(tokio::time::sleep(self.period)).await.is_none() {
                return;
            }
        }
    }

    async fn run_once(&self, inside: Inside<'_>) {
        self.runs.begin();
        let session = Arc::new(self.core.session(Notes::new(false)));
        let _writes = Writes { session: Arc::clone(&session), inside };
        if let Err(error) = (self.work)(session).await {
            let LoopCore { controller, name, .. } = self.core;
            tracing::warn!(controller, r#loop = name, error = &*error, "Periodic work failed");
        }
    }
}

/// Leaves the writes of a run inside the gate, also if the run panics or is dropped.
struct Writes<'a> {
    session: Arc<Session>,
    inside: Inside<'a>,
}

impl Drop for Writes<'_> {
    fn drop(&mut self) {
        self.inside.writes = self.session.take_pending_writes();
    }
}
