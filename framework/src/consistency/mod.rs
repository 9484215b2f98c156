//! Read your own writes: a key is not reconciled again before the caches show the writes of its last reconcile.
//!
//! A write with a response is confirmed by the caches. A write whose response was lost is confirmed by a live list,
//! which begins when the request can no longer take effect: after 34 s, or at once in two cases: the connection broke
//! and the API server refused the repetition by the [`Session`](crate::Session), because the request had taken effect
//! or had become impossible; or the API server ended the request with an error without a reason. A repetition that
//! succeeds needs no list.
//!
//! # Contract
//!
//! `tests/it/guarantees/` has a test named after each of these sentences. What each answer means for each kind of request
//! is one table, in `client/request/answer.rs`.
//!
//! Answers
//!
//! - **What is answered 429 or 5xx with a time is repeated after it beneath the reconcile.** The time is a `Retry-After`
//!   in seconds. Each repetition waits for the rate limiter.
//! - **A request is repeated ten times and within its time.** The time is 34 s, counted from the first attempt.
//! - **What is answered without a time is the caller's.**
//! - **An eviction that a budget does not allow is the caller's.** Its 429 is never repeated.
//! - **A name that is taken on a repeat is compared with what was sent.** An object of the same controller, with the
//!   labels that were sent, was created by an earlier attempt. If the object that was sent names no controller, the
//!   error is [`is_probably_created`](crate::client::ApiError::is_probably_created).
//! - **A creation whose name the server chooses stays in doubt after a repeated error of the server.** Nothing refuses
//!   the second of two: use [`Session::generate_name`](crate::Session::generate_name).
//! - **An error of the server holds the key unless a second landing would be refused.** It is refused if the request
//!   carries a resource version, or deletes or evicts an object by its uid. A patch with a uid alone lands a second time.
//! - **A 500 without a reason holds the key until a live list that begins at once.** The API server has ended the
//!   request, for example because an admission plugin failed. If storage did not respond, it may still take effect.
//! - **The answer of a failing webhook settles a write.** Admission comes before storage.
//!
//! The next try
//!
//! - **What a webhook or a quota refused is tried again without the controller's doing.** With the back-off of its key:
//!   no refusal of the API server is terminal.
//! - **A key acts within a second of the recovery of a webhook that failed for ten seconds.** After 429, 5xx and the
//!   failure of a webhook the back-off is at most a second for the first minute of failures in a row, and doubles after
//!   it. The token bucket of the queue bounds the tries of all keys.
//! - **A key is scaled down while a webhook refuses its creations.** A write that is settled holds nothing.
//! - **An API server that answers 429 to a tenth of all requests changes nothing but the time.**
//!
//! Writes
//!
//! - **Every kind of write is waited for.** A write to a subresource counts as one to its object, an eviction and the
//!   deletion of a collection as deletions of what they end.
//! - **Every kind of write whose answer is lost holds its key.**
//! - **An applied configuration creates, changes and takes back what it leaves out.**
//!
//! Live checks
//!
//! - **The writes of many keys to one namespace are checked by one list.** A single object is listed by its name.
//! - **A check reads no page beyond the last object that it is about.** A page has at most 500 objects, and a loop has one
//!   request under way.
//! - **One list shows the outcome of all writes whose answers were lost.**
//!
//! [`pending_writes`] is the state machine; `tracker` connects it to the queue, the caches and the API server.
//! `tests/it/pending_writes_model.rs` visits every state of it with one key, two caches and three writes.

mod live_list;
pub mod pending_writes;
mod primary;
mod tracker;

pub(crate) use live_list::list_objects;
pub(crate) use primary::Primary;
pub(crate) use tracker::Tracker;
