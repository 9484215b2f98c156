//! Read your own writes: a key is not reconciled again before the caches show the writes of its last reconcile.
//!
//! A write with a response is confirmed by the caches. A write whose response was lost is confirmed by a live list,
//! which begins when the request can no longer take effect: after 34 s, or at once where the connection broke and the
//! repetition of the request by the [`Session`](crate::Session) was refused, because the request had taken effect or
//! had become impossible. A repetition that succeeds needs no list.
//!
//! [`pending_writes`] is the state machine; `tracker` connects it to the queue, the caches and the API server.

mod live_list;
pub mod pending_writes;
mod tracker;

pub(crate) use live_list::list_objects;
pub(crate) use tracker::Tracker;
