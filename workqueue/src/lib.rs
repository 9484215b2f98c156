//! A rate-limited work queue of keys. A key is queued once however often it is added, and never processed twice at
//! once.
//!
//! Event handlers add the keys of changed objects. A worker takes a key, reconciles its object, and marks the key done
//! or adds it again. The queue holds no objects and no changes, so a key that is added a hundred times before a worker
//! takes it is processed once. It is client-go's work queue with two priorities and with parking, and it never drops a
//! key.
//!
//! ```text
//!   add ─────────────────▶ ready ──get──▶ processing ──done──▶ idle (ready again if added meanwhile)
//!                            ▲                │
//!   add_after, retry         │               park
//!        │                  due               ▼
//!        └─▶ delayed ────────┘              parked ──unpark──▶ idle (ready again if added meanwhile)
//! ```
//!
//! A worker calls [`get`](Queue::get), then any of [`retry`](Queue::retry), [`forget`](Queue::forget) and
//! [`add_after`](Queue::add_after), then [`done`](Queue::done) or [`park`](Queue::park):
//!
//! ```
//! # use kcm_workqueue::{Priority, Queue, QueueOptions};
//! # async fn reconcile(_: &str) -> Result<(), ()> { Ok(()) }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let queue = Queue::new(QueueOptions::named("replicaset"));
//! queue.add("default/web", Priority::Live);
//! queue.shut_down();
//! while let Some(key) = queue.get().await {
//!     match reconcile(key).await {
//!         Ok(()) => queue.forget(&key),
//!         Err(()) => queue.retry(key),
//!     }
//!     queue.done(&key);
//! }
//! # }
//! ```
//!
//! # Contract
//!
//! Each sentence in bold is the name of a test in `tests/it/contract.rs`.
//!
//! Merging
//!
//! - **A key added many times before it is taken is taken once.**
//! - **A key is never processed twice at once.** Neither if it is added, retried or due while a worker processes it.
//! - **A key added while it is processing is ready again when it is done.** So every add is followed by a `get` that
//!   begins after it.
//!
//! Order
//!
//! - **Live keys go before initial keys.**
//! - **Within a priority the first to come is the first to go.**
//! - **A key added at both priorities is live.**
//! - **Raising a key never makes it wait longer.** It keeps its place among the initial keys, goes to the end of the
//!   live ones as well, and the place that is reached first counts.
//! - **Initial keys that have aged take turns with live keys.** Neither starves: from the moment at which it has waited
//!   for the ageing time, the n-th initial key is handed out by the 2n-th `get`; so is the n-th live key at all times.
//!
//! Delays
//!
//! - **A delayed key is ready when its delay is over and not before.**
//! - **Of several delays of a key the earliest counts.** And the highest of their priorities.
//! - **An add does not take back a delayed add.** The key is handed out for both.
//! - **A delay that ends while its key is processing or parked counts as an add.**
//!
//! Failures
//!
//! - **A retry waits for the back-off of its key.** It doubles with each failure in a row, from 5 ms to 1000 s.
//! - **A retry within a limit waits no longer for its back-off.** For failures whose end no event announces.
//! - **A retry waits for the token bucket of all keys.** Ten a second after a burst of a hundred. The later of back-off
//!   and bucket counts.
//! - **A retry keeps the priority of its key.** An initial key that fails does not overtake the live ones.
//! - **An add is never held back.** Neither by failures of its key nor by the token bucket.
//! - **Only a retry counts as a failure.**
//! - **A key that goes on failing is never dropped.** It stays at the longest back-off, and the snapshot names it.
//! - **Forgetting a key resets its failures.** A retry that already waits is not taken back.
//!
//! Parking
//!
//! - **A parked key is not handed out.**
//! - **A key added since it was taken is ready when it is unparked.** Whether that was before or after it was parked.
//! - **A key not added since it was taken is idle when it is unparked.**
//! - **Parked time is not work.**
//!
//! Workers
//!
//! - **As many waiting workers wake as keys are ready.**
//! - **A waiting worker wakes for a delay shorter than the one it waits for.**
//! - **A worker that always finds a key gives way to other tasks.**
//! - **Dropping a get loses nothing.** Neither a key nor another worker's wake-up.
//! - **Calls that do not fit the key do nothing.** `done` and `park` of a key that is not processing, `unpark` of one
//!   that is not parked.
//!
//! Clearing
//!
//! - **A cleared queue hands out nothing before the next add.** Neither what was ready nor what was delayed.
//! - **A key that is processing or parked outlives the clearing.** With what was added since it was taken.
//!
//! End
//!
//! - **The shut down ends every waiting get.**
//! - **What is ready is handed out after the shut down and then get ends.** The `get` of a worker that finds no ready
//!   key ends, though other keys are still processing.
//! - **A key added while it is processing is handed out after the shut down.** The next `get` returns it, such as that
//!   of the worker that processed it.
//! - **Adds after the shut down are ignored.** Delayed ones and retries too.
//! - **The shut down drops what is delayed.** The next process starts from an initial list anyway.
//!
//! Cost
//!
//! - **An idle key without failures takes no memory.**
//! - **A snapshot counts all keys and lists the first hundred.** Its cost does not grow with the keys that it lists.
//! - **Metrics count what upstream counts.** See [`Metrics`].
//!
//! Adding, taking and finishing a key are O(1) amortised, delays O(log n) of the delayed keys. All state is in memory
//! behind one lock, which is never held across an `await`. There is no background task: a waiting worker sleeps until
//! the next key is due.
//!
//! # What it does not do
//!
//! It keeps no values, only keys; it does not bound its length, since there are no more keys than objects while somebody takes them (an owner without workers
//! [clears](Queue::clear) it and adds nothing); it does not
//! wait for the keys that are processing when it is shut down, since the owner of the workers waits for them.

mod limits;
mod metrics;
mod options;
mod priority;
mod queue;
mod ready_queues;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;

pub use limits::RetryLimits;
pub use metrics::{Metrics, NoMetrics};
pub use options::QueueOptions;
pub use priority::Priority;
pub use queue::{Queue, WeakQueue};
pub use snapshot::{
    Delayed, Failing, Held, KeyStage, KeyStatus, MOST_KEYS, ParkedKeys, QueueCounts, QueueSnapshot, UnfinishedWork,
};
