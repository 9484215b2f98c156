//! The reconcile loop: keys from a queue, one at a time each, to a [`Reconcile`].

mod error;
mod names;
mod session;
mod worker;

use std::time::Duration;

use async_trait::async_trait;
use kcm_informers::Origin;
use kcm_workqueue::Priority;

use crate::queue_key::QueueKey;

pub use error::{Class, ReconcileError};
pub use names::NameGenerator;
pub use session::Session;
pub use worker::ReconcileLoop;

/// What brings one object, or whatever else a key names, to its desired state.
#[async_trait]
pub trait Reconcile: Send + Sync + 'static {
    /// What the queue holds; [`ObjectKey`] for nearly every controller.
    type Key: QueueKey;

    /// Looks at the caches, decides, and writes through `session`.
    ///
    /// Never called for one key twice at once, and never while writes of an earlier call for that key have
    /// not come back through the caches. May be called without anything having changed.
    ///
    /// # Cancellation
    /// The future is dropped only when the manager gives up waiting for it at its end, or when its loop dies; what
    /// it was writing then counts as a write whose answer was lost.
    ///
    /// # Errors
    /// Any error leads to another call for that key, when the error's [`Class`] says.
    ///
    /// # Panics
    /// A panic is caught, counted, logged with the key, and the key is retried with back-off.
    async fn reconcile(&self, key: &Self::Key, session: &Session) -> Result<Outcome, ReconcileError>;
}

/// A reconcile that did what could be done for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub struct Outcome {
    /// When to look again even if nothing changes until then.
    pub requeue_after: Option<Duration>,
}

impl Outcome {
    /// Nothing to do until something changes.
    pub const fn done() -> Self {
        Self { requeue_after: None }
    }

    /// Look again after `delay`, or earlier if something changes.
    pub const fn requeue_after(delay: Duration) -> Self {
        Self { requeue_after: Some(delay) }
    }
}

/// The priority of a key that a change of that origin wakes: what happens now goes before what was there already.
#[must_use]
pub const fn priority(origin: Origin) -> Priority {
    match origin {
        Origin::Live => Priority::Live,
        Origin::Initial | Origin::Resync => Priority::Initial,
    }
}
