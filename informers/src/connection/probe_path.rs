//! The connections that a probe goes over.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Request;
use parking_lot::Mutex;

/// The connections that the requests of a probe go over: the present ones of a connection pool, or fresh ones.
///
/// It is an extension of these requests, which the pool reads. A pool that ignores it sends a probe as any other request.
///
/// # Why fresh connections
/// Behind a load balancer there may be several API servers, and an HTTP/2 connection stays with one. If that server
/// cannot serve, another one may.
#[derive(Clone)]
pub struct ProbePath(Arc<Path>);

struct Path {
    is_fresh: bool,
    is_known: AtomicBool,
    fresh: Mutex<Option<Fresh>>,
}

/// Connections that were made for a probe.
struct Fresh {
    connections: Arc<dyn Any + Send + Sync>,
    adopt: Box<dyn FnOnce() + Send>,
}

impl ProbePath {
    pub(super) fn present() -> Self {
        Self::new(false)
    }

    pub(super) fn fresh() -> Self {
        Self::new(true)
    }

    fn new(is_fresh: bool) -> Self {
        Self(Arc::new(Path { is_fresh, is_known: AtomicBool::new(false), fresh: Mutex::new(None) }))
    }

    /// The path of a request, for a connection pool that follows it. `None` if the request is no probe.
    #[must_use]
    pub fn of<B>(request: &Request<B>) -> Option<Self> {
        let path = request.extensions().get::<Self>()?;
        path.0.is_known.store(true, Ordering::Relaxed);
        Some(path.clone())
    }

    /// Returns `true` if the request goes over fresh connections.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.0.is_fresh
    }

    /// The fresh connections of the probe, which `make` makes for its first request. If the API server serves over them,
    /// `adopt` is called, so that they take the place of the present ones.
    ///
    /// # Errors
    /// Errors of `make`.
    pub fn connections<T: Send + Sync + 'static, E>(
        &self,
        make: impl FnOnce() -> Result<Arc<T>, E>,
        adopt: impl FnOnce(Arc<T>) + Send + 'static,
    ) -> Result<Arc<T>, E> {
        let mut fresh = self.0.fresh.lock();
        let known = fresh.as_ref().and_then(|fresh| Arc::clone(&fresh.connections).downcast::<T>().ok());
        if let Some(known) = known {
            return Ok(known);
        }
        let connections = make()?;
        let adopted = Arc::clone(&connections);
        *fresh = Some(Fresh { connections: Arc::clone(&connections) as _, adopt: Box::new(move || adopt(adopted)) });
        Ok(connections)
    }

    /// Returns `true` if the pool that sent the request follows the path.
    pub(super) fn is_known(&self) -> bool {
        self.0.is_known.load(Ordering::Relaxed)
    }

    /// Has the fresh connections take the place of the present ones.
    pub(super) fn adopt(&self) {
        let fresh = self.0.fresh.lock().take();
        if let Some(Fresh { adopt, connections: _ }) = fresh {
            adopt();
        }
    }
}

impl fmt::Debug for ProbePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbePath").field("is_fresh", &self.0.is_fresh).finish_non_exhaustive()
    }
}
