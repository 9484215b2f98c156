//! Explain: why each key was reconciled, what was seen and decided, and what the key waits for now.
//!
//! Every reconcile loop records its reconciles without code of the controller. The [`Session`](crate::Session) notes the
//! writes and the events, and the sentences that a controller passes to [`Session::explain`](crate::Session::explain),
//! which say what it decided and why.
//!
//! ```text
//! event mapping ──cause──▶ Triggers ──┐
//!                                     ▼
//! Session ──writes, events, words──▶ Decision ──▶ Journal ──▶ KeyExplanation ──▶ JSON, or lines for people
//!                                     ▲                            ▲
//! outcome of the reconcile ───────────┘          queue, pending writes, caches
//! ```
//!
//! # Guarantees
//!
//! - **The causes of a key survive the merging of keys.** The queue holds a key once; all events that enqueued it since it
//!   was last taken are counted by resource and kind of event, with the last object of each.
//! - **The memory is bounded.** All decisions of a manager together take [`DEFAULT_MEMORY`] unless
//!   [`ManagerBuilder::explain_memory`](crate::ManagerBuilder::explain_memory) says otherwise; 0 records nothing.
//! - **The last decision of a key outlives the earlier ones of all keys.** Only when no earlier decision is left, the
//!   oldest of the last ones is dropped.
//! - **What is recorded is not formatted before it is read**, except the sentences of the controller.
//!
//! Objects of the first list and of resyncs record no cause, nor do retries: what a key without any is due to follows
//! from its last reconcile.

mod decision;
mod explanation;
mod journal;
mod lines;
mod loop_keys;
mod notes;
mod queue_status;
mod trigger;

pub use decision::{Decision, Ended, Seen};
pub use explanation::{
    EventExplanation, KeyExplanation, KeyState, ReconcileExplanation, TriggerExplanation, WaitExplanation,
    WriteExplanation,
};
pub(crate) use explanation::{Reader, rfc3339};
pub use journal::{DEFAULT_MEMORY, Journal};
pub use loop_keys::{LoopKey, LoopKeys};
pub use notes::{Noted, Notes, WriteNote};
pub(crate) use queue_status::seconds as rounded_seconds;
pub use queue_status::{DelayedKey, FailingKey, HeldKey, KeyError, QueueStatus};
pub(crate) use trigger::Triggers;
pub use trigger::{ChangeKind, Trigger, TriggerCause};

use kcm_api::ObjectKey;

use crate::queue_key::QueueKey;

/// A reconcile loop that can be looked into.
pub(crate) trait Inspect: Send + Sync {
    /// The status of the queue, and of what its keys wait for.
    fn queue_status(&self) -> QueueStatus;
    /// The numbers of the status only: reads no key.
    fn queue_counts(&self) -> QueueStatus;

    /// All keys of all loops.
    fn keys(&self) -> LoopKeys;

    /// The explanation of the keys that name `object`.
    fn explain(&self, object: &ObjectKey) -> KeyExplanation;
}

/// Returns the object under which operators find the key. A key without an object is found by its text.
pub(crate) fn object_of<K: QueueKey>(key: &K) -> ObjectKey {
    key.object().cloned().unwrap_or_else(|| ObjectKey::cluster_scoped(key.to_string()))
}
