//! One named loop of a controller.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use futures::future::BoxFuture;
use kcm_client::BoxError;
use kcm_informers::Cache;
use tokio_util::sync::CancellationToken;

use crate::explain::Inspect;
use crate::progress::Progress;

type LoopFn = Box<dyn Fn(CancellationToken) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// A loop of a controller: its name, the caches that must sync before it starts, and the function that runs it.
///
/// Made by a [`ControlLoopBuilder`](crate::ControlLoopBuilder), and run as a part of a [`Loops`](crate::Loops).
#[must_use = "a loop does nothing until it is part of a `Loops`"]
pub struct Loop {
    pub(crate) name: &'static str,
    pub(crate) reads: Vec<Arc<dyn Cache>>,
    pub(crate) run: LoopFn,
    /// Data for the debug endpoints. `None` for a loop without keys.
    pub(crate) inspect: Option<Arc<dyn Inspect>>,
    /// Progress of the loop. `None` for a task without steps, of which nobody knows if it has work.
    pub(crate) progress: Option<Arc<dyn Progress>>,
}

impl Loop {
    pub(crate) fn new<F>(name: &'static str, reads: Vec<Arc<dyn Cache>>, run: F) -> Self
    where
        F: Fn(CancellationToken) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync + 'static,
    {
        Self { name, reads, run: Box::new(run), inspect: None, progress: None }
    }

    /// The same loop, which operators can look into.
    pub(crate) fn inspected(self, inspect: Arc<dyn Inspect>) -> Self {
        Self { inspect: Some(inspect), ..self }
    }

    /// The same loop, whose stalls are detected.
    pub(crate) fn with_progress(self, progress: Arc<dyn Progress>) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// The same loop, which checks its description at each start.
    pub(crate) fn checked(self, check: impl Fn() -> Result<(), BoxError> + Send + Sync + 'static) -> Self {
        let Self { name, reads, run, inspect, progress } = self;
        let checked = Self::new(name, reads, move |cancel| match check() {
            Ok(()) => run(cancel),
            Err(mistake) => Box::pin(ready(Err(mistake))),
        });
        Self { inspect, progress, ..checked }
    }
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop").field("name", &self.name).finish_non_exhaustive()
    }
}
