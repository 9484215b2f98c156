//! The tests of the crate from outside, in one program: linking takes longer than most of them.

mod correlate;
mod discovery;
mod events;
mod guarantees;
mod ownership;
mod pending_writes;
mod pending_writes_model;
mod scale_client;
