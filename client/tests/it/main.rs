//! The tests of the crate from outside, in one program.

mod api_client;
mod client_builder;
mod connections;
mod probe;
mod stack;
