//! The loops of an initialized controller.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kcm_informers::Cache;
use tokio_util::sync::CancellationToken;

use crate::control_loop::Loop;
use crate::error::BoxError;
use crate::reconcile::{Reconcile, ReconcileLoop};

/// The loops of one controller; each is supervised, measured and drained in the same way.
///
/// # Guarantees
/// No loop begins before the caches that it reads have synced. A loop that fails or panics is started again
/// with back-off, and no other loop is affected.
///
/// A value that is dropped runs no loop; the compiler warns of that.
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// use kcm_framework::Running;
///
/// fn forgotten(running: Running) {
///     running.task("greet", |_| Box::pin(async { Ok(()) }));
/// }
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct Running {
    loops: Vec<Loop>,
}

impl Running {
    /// No loops yet.
    pub const fn new() -> Self {
        Self { loops: Vec::new() }
    }

    /// Adds a reconcile loop; a controller may have several.
    pub fn reconcile<R: Reconcile>(mut self, reconcile: ReconcileLoop<R>) -> Self {
        self.loops.push(reconcile.into_loop());
        self
    }

    /// Adds a function that runs every `period`, the first time at once.
    ///
    /// An error is logged, and the function runs again after the next period.
    pub fn periodic<F>(mut self, name: &'static str, period: Duration, work: F) -> Self
    where
        F: Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync + 'static,
    {
        let work = Arc::new(work);
        self.loops.push(Loop::new(name, Vec::new(), move |cancel| {
            let work = Arc::clone(&work);
            Box::pin(async move {
                loop {
                    if let Err(error) = work().await {
                        tracing::warn!(error = &*error, work = name, "Periodic work failed");
                    }
                    tokio::select! {
                        () = cancel.cancelled() => return Ok(()),
                        () = tokio::time::sleep(period) => {}
                    }
                }
            })
        }));
        self
    }

    /// Adds a task that runs until its token is cancelled or it returns `Ok`.
    pub fn task<F>(mut self, name: &'static str, run: F) -> Self
    where
        F: Fn(CancellationToken) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync + 'static,
    {
        self.loops.push(Loop::new(name, Vec::new(), run));
        self
    }

    /// Makes the loop that was added last wait for the sync of these caches.
    pub fn after_sync_of(mut self, caches: impl IntoIterator<Item = Arc<dyn Cache>>) -> Self {
        if let Some(last) = self.loops.last_mut() {
            last.reads.extend(caches);
        }
        self
    }

    pub(crate) fn into_loops(self) -> Vec<Loop> {
        self.loops
    }
}
