//! Leader election: only the manager that holds a `Lease` acts.
//!
//! ```text
//!  watch of the lease ──▶ elector (pure) ──request──▶ keeper ──▶ API server
//!                            ▲                          │
//!                            └──────── answer ──────────┤
//!                                                       ├──▶ Leadership: whether this manager leads
//!                                                       ├──▶ fence: until when its writes may be sent
//!                                                       └──▶ report: events and metrics
//! ```
//!
//! # Upstream
//! `client-go/tools/leaderelection` and its `Lease` lock: record, times, order of requests and events are the same, so
//! that ours and upstream's binary take turns on one lease.

mod elector;
mod ended;
mod fences;
mod health;
mod identity;
mod keeper;
mod lead;
mod leadership;
mod lease_object;
mod migration;
mod migration_config;
mod observer;
mod report;
mod request_connection;
mod settings;
mod suspension;
#[cfg(test)]
mod tests;
mod thread;
mod watchdog;

pub(crate) use elector::{Elector, Timing};
pub(crate) use ended::Ended;
pub(crate) use health::LeaderHealth;
pub(crate) use identity::identity;
pub(crate) use keeper::{Keeper, KeeperOptions};
pub(crate) use lead::Candidate;
pub(crate) use leadership::Leadership;
pub(crate) use migration_config::{MigrationConfig, Owner};
pub(crate) use observer::watch_lease;
pub(crate) use report::LeaseMetrics;
pub(crate) use settings::{Election, LeaderElection, MigrationSettings, Policy};
pub(crate) use watchdog::Watchdog;
