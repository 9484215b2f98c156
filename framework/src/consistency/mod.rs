//! Read your own writes: a key waits until its own writes have come back through the caches.
//!
//! A write that was answered is waited for in the caches. One whose answer was lost is asked for by a live list, which
//! begins when the request can no longer take effect: after 34 s, or at once where the connection broke and the same
//! request, sent again by the [`Session`](crate::Session), was refused because it had been carried out or had become
//! impossible. A repeat that succeeds leaves nothing to ask.
//!
//! [`pending_writes`] decides, `tracker` connects the decision to the queue, the caches and the API server.

pub mod pending_writes;
mod tracker;

pub(crate) use tracker::Tracker;
