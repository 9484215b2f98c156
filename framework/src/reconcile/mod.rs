//! The reconcile loop: keys from a queue, one at a time each, to a [`Reconcile`].

mod awaiting;
mod delete;
mod error;
mod gate;
mod inspection;
mod keyless;
mod loop_context;
mod loop_core;
mod names;
mod objects;
mod recording;
mod session;
mod session_extras;
mod session_of;
mod shared_reads;
mod undecided;
mod undecodable;
mod worker;
mod worker_pool;

use async_trait::async_trait;
use kcm_api::ObjectKey;
use kcm_informers::Origin;
use kcm_workqueue::Priority;

use crate::queue_key::QueueKey;

pub use delete::Delete;
pub use error::{Class, ReconcileError};
pub(crate) use keyless::Keyless;
pub(crate) use loop_context::{DeclaredWrites, LoopContext};
pub(crate) use loop_core::LoopCore;
pub use names::NameGenerator;
pub(crate) use objects::OfObjects;
pub use objects::{ObjectSource, ReconcileObject};
pub use session::Session;
pub use session_of::SessionOf;
pub use shared_reads::SharedReads;
pub(crate) use worker::Workers;

/// A reconciler: brings the object of a key to its desired state.
///
/// Keys are [`ObjectKey`]s for nearly every controller; another type is a [`QueueKey`]. A controller whose keys name the
/// objects of one cache implements [`ReconcileObject`] instead, which is handed the object.
#[async_trait]
pub trait Reconcile<K: QueueKey = ObjectKey>: Send + Sync + 'static {
    /// Prepares for the first key: after all caches of the loop have synced and before any key is taken, each time that
    /// the loop starts. An allocator fills itself here. Does nothing by default.
    ///
    /// Keys wait until the caches show what it wrote.
    ///
    /// # Errors
    /// It is called again with back-off, 1 s doubling to a minute.
    async fn prepare(&self, _session: &Session) -> Result<(), ReconcileError> {
        Ok(())
    }

    /// Reconciles one key: reads the caches, decides, and writes through `session`.
    ///
    /// Never called twice at once for one key, and never before the caches show the writes of the previous call for
    /// that key. May be called although nothing has changed.
    ///
    /// # Cancellation
    /// The future is dropped only when it does not end within the grace period of a shutdown, or when its loop fails. A
    /// write in progress then counts as one whose response was lost.
    ///
    /// # Errors
    /// The [`Class`] of the error decides when the key is requeued, and [`Session::requeue_by`] at which time at the
    /// latest.
    ///
    /// # Panics
    /// A panic is caught, counted and logged with the key, and the key is requeued with back-off.
    async fn reconcile(&self, key: &K, session: &Session) -> Result<(), ReconcileError>;
}

/// The priority of a key that a change of that origin enqueues: live changes go before initial objects.
#[must_use]
pub(crate) const fn priority(origin: Origin) -> Priority {
    match origin {
        Origin::Live => Priority::Live,
        Origin::Initial | Origin::Resync => Priority::Initial,
    }
}
