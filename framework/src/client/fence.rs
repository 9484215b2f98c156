//! The fence of writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;

/// A fence between the clients of a manager and the API server: while it is closed, no write is sent.
///
/// A manager that may have lost its lease closes it before it stops its loops. Cheap to clone; all clones are one
/// fence.
///
/// # Guarantees
/// No request but a `GET` is sent after [`close`](Self::close) has returned, whatever waited for a rate limit or for a
/// repetition at the time. A request that has been sent may still take effect.
#[derive(Debug, Clone, Default)]
pub struct Fence {
    is_closed: Arc<AtomicBool>,
}

/// The reason why a write is not sent while the [`Fence`] is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this manager sends no writes at present, as another may act in its place")]
pub struct Fenced;

impl Fence {
    /// Sends no further write until [`open`](Self::open).
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// Sends writes again.
    pub fn open(&self) {
        self.is_closed.store(false, Ordering::SeqCst);
    }

    /// Whether writes are held back.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Checks a request right before it is sent.
    pub(crate) fn check(&self, method: &Method) -> Result<(), Fenced> {
        if *method != Method::GET && self.is_closed() { Err(Fenced) } else { Ok(()) }
    }
}
