//! Read your own writes: a key waits until its own writes have come back through the caches.
//!
//! [`marks`] decides, `tracker` connects the decision to the queue, the caches and the API server.

pub mod marks;
mod tracker;

pub(crate) use tracker::Tracker;
