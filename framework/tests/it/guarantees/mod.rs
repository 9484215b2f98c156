//! The guarantees on the page of this crate, one test a sentence, on an API server in this process.
//!
//! Time is paused: waiting costs nothing, and what must happen at once is asserted to take none.

#![expect(clippy::unwrap_used, reason = "a test fails where its helper does")]

mod answers;
mod control_loop;
mod controller_states;
mod declared_writes;
mod endless_responses;
mod events;
mod explain;
mod informers;
mod initialization;
mod live_checks;
mod loops;
mod lost_answers;
mod manager;
mod metrics;
mod outages;
mod ownership;
mod pages;
mod parts;
mod read_your_own_writes;
mod repeats;
mod selection;
mod sends;
mod session;
mod stalls;
mod standby;
mod supervision;
mod support;
mod takeover;
mod visible;
mod workers;
mod writes;
