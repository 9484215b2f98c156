//! The sandbox behind its socket: authentication, responses to invalid input, and handling of bad clients.
//!
//! Everything here goes over real connections of the loopback interface, on a clock that stands still. If a deadline
//! matters, the clock is released once the connection is in its final state, and jumps to the deadline.

mod connections;
mod requests;
mod stalls;
mod stop;
mod support;
mod tokens;
