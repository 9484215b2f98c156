//! Scenarios and measurements against a real Kubernetes API server.
//!
//! `cargo xtask e2e` runs the scenarios, `cargo xtask bench` the measurements, `cargo xtask failovers` what two managers
//! do with one lease. Plain `cargo test`
//! needs neither Go nor a cluster: it tests only the parts of this crate that are pure.
//!
//! ```text
//! binaries ─▶ process ─▶ control_plane ─▶ manager ─▶ scenario ─▶ scenarios
//!                                                         └────▶ suite
//! ```
//!
//! - Every program is owned by a guard: dropping the guard ends the program.
//! - After a scenario the logs of our managers are read: a panic or an error that it does not expect fails it.
//! - A scenario waits for a condition with a time limit, and does not sleep in its stead.
//! - A missing program is an error that names the command which builds it, never a skip.
//! - The same scenario with the same assertions runs against our manager and against upstream's.
//!   `peer-verified.tsv` records what upstream's has passed.

#![allow(clippy::must_use_candidate, reason = "the value of a getter is not ignored by accident")]

mod aggregated_api;
pub mod audit;
pub mod bench;
pub mod binaries;
pub mod cgroup;
mod clock;
pub mod control_plane;
pub mod failovers;
mod helpers;
pub mod interrupt;
mod kubectl;
pub mod manager;
pub mod manager_log;
pub mod nodes;
mod peer_metrics;
mod peer_verified;
pub mod pki;
pub mod process;
pub mod procfs;
pub mod random;
pub mod requests;
pub mod scenario;
pub mod scenarios;
pub mod subject;
pub mod suite;
pub mod wait;
