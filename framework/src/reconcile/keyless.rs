//! Loops without keys: periodic work and tasks, with a session.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kcm_client::{ApiClient, BoxError};
use kcm_informers::Cache;
use tokio_util::sync::CancellationToken;

use super::gate::{Gate, Inside};
use super::{LoopContext, Session};
use crate::control_loop::Loop;
use crate::explain::Notes;

/// A loop that reconciles no keys.
pub(crate) struct Keyless {
    pub(crate) controller: &'static str,
    pub(crate) name: &'static str,
    pub(crate) api: ApiClient,
    pub(crate) live: ApiClient,
    pub(crate) context: Arc<LoopContext>,
    pub(crate) caches: Vec<Arc<dyn Cache>>,
}

impl Keyless {
    /// Runs `work` every `period`, the first time at once, and never before the caches show the writes of the run
    /// before.
    pub(crate) fn periodic<F>(self, period: Duration, work: F) -> Loop
    where
        F: Fn(Arc<Session>) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync + 'static,
    {
        let (name, reads) = (self.name, self.caches.clone());
        let periodic = Arc::new(Periodic {
            gate: Gate::new(name, self.caches.clone().into()),
            period,
            work,
            caches: self.caches.into(),
            controller: self.controller,
            name,
            api: self.api,
            live: self.live,
            context: self.context,
        });
        Loop::new(name, reads, move |cancel| {
            let periodic = Arc::clone(&periodic);
            Box::pin(async move {
                tokio::select! {
                    () = periodic.run(&cancel) => {}
                    () = periodic.gate.check_pending_writes(&periodic.live) => {}
                }
                Ok(())
            })
        })
    }

    /// Runs `task` with one session for its life. The session knows no caches: nothing waits for its writes.
    pub(crate) fn task<F>(self, task: F) -> Loop
    where
        F: Fn(CancellationToken, Arc<Session>) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync + 'static,
    {
        let Self { name, api, live, context, caches, .. } = self;
        Loop::new(name, caches, move |cancel| {
            task(
                cancel,
                Arc::new(Session::new(api.clone(), live.clone(), [].into(), Arc::clone(&context), Notes::new(false))),
            )
        })
    }
}

struct Periodic<F> {
    gate: Gate,
    period: Duration,
    work: F,
    caches: Arc<[Arc<dyn Cache>]>,
    controller: &'static str,
    name: &'static str,
    api: ApiClient,
    live: ApiClient,
    context: Arc<LoopContext>,
}

impl<F> Periodic<F>
where
    F: Fn(Arc<Session>) -> BoxFuture<'static, Result<(), BoxError>>,
{
    async fn run(&self, cancel: &CancellationToken) {
        while let Some(inside) = cancel.run_until_cancelled(self.gate.enter()).await {
            self.run_once(inside).await;
            if cancel.run_until_cancelled(tokio::time::sleep(self.period)).await.is_none() {
                return;
            }
        }
    }

    async fn run_once(&self, inside: Inside<'_>) {
        let (caches, context) = (Arc::clone(&self.caches), Arc::clone(&self.context));
        let session = Arc::new(Session::new(self.api.clone(), self.live.clone(), caches, context, Notes::new(false)));
        let _writes = Writes { session: Arc::clone(&session), inside };
        if let Err(error) = (self.work)(session).await {
            let controller = self.controller;
            tracing::warn!(controller, r#loop = self.name, error = &*error, "Periodic work failed");
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
