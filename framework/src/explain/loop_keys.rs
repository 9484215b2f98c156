//! All keys of a loop, to look into it.

use std::time::Duration;

use kcm_api::{ObjectKey, Resource};

use super::explanation::KeyState;
use crate::consistency::pending_writes::PendingWrite;

/// The keys of a loop at one moment, all of them: for simulations and tests, which judge and compare whole states.
///
/// Operators read [`QueueStatus`](super::QueueStatus), which is bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopKeys {
    /// The controller of the loop.
    pub controller: &'static str,
    /// The name of the loop.
    pub name: &'static str,
    /// The resources of the caches that it reads. [`PendingWrite`] numbers these caches.
    pub reads: Vec<Resource>,
    /// The resource whose objects the keys name.
    pub resource: Option<Resource>,
    /// The keys that are queued, processing, held back, due later or failing, in their order.
    pub keys: Vec<LoopKey>,
}

/// A key of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopKey {
    /// The object that the key names. A key without an object is named by its text.
    pub object: ObjectKey,
    /// The place of the key in the queue.
    pub state: KeyState,
    /// `true` if the key was added again since a worker took it.
    pub is_added: bool,
    /// Time until a delayed add is due.
    pub due_in: Option<Duration>,
    /// Number of failures in a row.
    pub failures: u32,
    /// The writes that the caches do not show yet.
    pub pending_writes: Vec<PendingWrite>,
}
