//! Leader election: of several managers one acts, the holder of a `Lease`.
//!
//! ```text
//!  watch of the lease ──▶ elector (pure) ──request──▶ keeper ──▶ API server
//!                            ▲                          │
//!                            └──────── answer ──────────┤
//!                                                       ├──▶ Leadership: whether this manager leads
//!                                                       └──▶ fence: until when its writes may be sent
//! ```
//!
//! # Upstream
//! `client-go/tools/leaderelection` and its `Lease` lock: record, times, order of requests and events are the same, so
//! that ours and upstream's binary take turns on one lease.

mod elector;
mod identity;
mod keeper;
mod lead;
mod lease_object;
mod observer;
mod settings;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod thread;

pub(crate) use elector::{Elector, Timing};
pub(crate) use identity::identity;
pub(crate) use keeper::{Keeper, Leadership};
pub(crate) use lead::{Ended, Policy, run};
pub(crate) use observer::watch_lease;
pub(crate) use settings::LeaderElection;
pub(crate) use thread::Options;
