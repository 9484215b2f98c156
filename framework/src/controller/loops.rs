//! The loops of an initialized controller.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kcm_client::BoxError;
use kcm_informers::Cache;
use tokio_util::sync::CancellationToken;

use crate::control_loop::Loop;
use crate::progress::{Runs, Steps};

/// A health check of a controller: `Err` has the reason why it is unhealthy.
pub type HealthCheck = dyn Fn() -> Result<(), String> + Send + Sync;

/// A debug page of a controller: responds to requests whose path is relative to the controller's path.
pub type DebugPage = dyn Fn(&http::Request<()>) -> http::Response<String> + Send + Sync;

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
/// use kcm_framework::Loops;
///
/// fn forgotten(loops: Loops) {
///     loops.task("greet", |_| Box::pin(async { Ok(()) }));
/// }
/// ```
#[derive(Default)]
#[must_use]
pub struct Loops {
    pub(crate) all: Vec<Loop>,
    pub(crate) health: Option<Arc<HealthCheck>>,
    pub(crate) debug: Option<Arc<DebugPage>>,
    /// The reason for which there are no loops.
    pub(crate) none_because: Option<Cow<'static, str>>,
}

impl From<Loop> for Loops {
    fn from(only: Loop) -> Self {
        Self::new().with(only)
    }
}

impl Loops {
    /// Returns an empty set of loops.
    pub const fn new() -> Self {
        Self { all: Vec::new(), health: None, debug: None, none_because: None }
    }

    /// No loops, because the cluster or the settings lack what the controller needs: `the setting … is off`. The reason is
    /// logged and shown to operators. The `InitFunc` is called again when the API server serves other resources.
    pub fn none(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { none_because: Some(reason.into()), ..Self::new() }
    }

    /// Adds a loop; a controller may have several.
    pub fn with(mut self, added: Loop) -> Self {
        self.all.push(added);
        self
    }

    /// Adds a function that runs every `period`, the first time at once.
    ///
    /// An error is logged, and the function runs again after the next period.
    pub fn periodic<F>(mut self, name: &'static str, period: Duration, work: F) -> Self
    where
        F: Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync + 'static,
    {
        let (work, runs) = (Arc::new(work), Arc::new(Runs::every(period)));
        let progress = Arc::clone(&runs);
        let periodic = Loop::new(name, Vec::new(), move |cancel| {
            let (work, runs) = (Arc::clone(&work), Arc::clone(&runs));
            Box::pin(async move {
                loop {
                    runs.begin();
                    if let Err(error) = work().await {
                        tracing::warn!(error = &*error, work = name, "Periodic work failed");
                    }
                    tokio::select! {
                        biased;
                        () = cancel.cancelled() => return Ok(()),
                        () = tokio::time::sleep(period) => {}
                    }
                }
            })
        });
        self.all.push(periodic.with_progress(progress));
        self
    }

    /// Adds a task that runs until its token is cancelled or it returns `Ok`.
    pub fn task<F>(mut self, name: &'static str, run: F) -> Self
    where
        F: Fn(CancellationToken) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync + 'static,
    {
        self.all.push(Loop::new(name, Vec::new(), run));
        self
    }

    /// Has a stall of the task that was added last found by its `steps`. Without steps nobody knows if a task has work.
    pub fn in_steps(mut self, steps: &Steps) -> Self {
        if let Some(last) = self.all.last_mut() {
            last.progress = Some(Arc::new(steps.clone()));
        }
        self
    }

    /// Makes the loop that was added last wait for the sync of these caches.
    pub fn after_sync_of(mut self, caches: impl IntoIterator<Item = Arc<dyn Cache>>) -> Self {
        if let Some(last) = self.all.last_mut() {
            last.reads.extend(caches);
        }
        self
    }

    /// Sets the health check of the controller, which must not block. Without one it is healthy while it runs.
    ///
    /// # Upstream
    /// `HealthCheckable` in `k8s.io/controller-manager/pkg/healthz`.
    pub fn health(mut self, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.health = Some(Arc::new(check));
        self
    }

    /// Sets the debug page of the controller, which must not block: the host serves it beneath
    /// `/debug/controllers/NAME`.
    ///
    /// # Upstream
    /// `Debuggable` in `k8s.io/controller-manager/controller`.
    pub fn debug(
        mut self,
        page: impl Fn(&http::Request<()>) -> http::Response<String> + Send + Sync + 'static,
    ) -> Self {
        self.debug = Some(Arc::new(page));
        self
    }
}

impl fmt::Debug for Loops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loops").field("loops", &self.all).finish_non_exhaustive()
    }
}
