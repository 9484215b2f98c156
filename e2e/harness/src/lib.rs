//! A real control plane as child processes, and what runs scenarios on it.
//!
//! `cargo xtask e2e` runs the scenarios of `e2e/scenarios`, `cargo xtask bench` the measurements of `e2e/bench`, `cargo
//! xtask failovers` two managers on one lease (`e2e/failovers`). Plain `cargo test` needs neither Go nor a cluster: it
//! tests only the parts of these crates that are pure.
//!
//! ```text
//! binaries ─▶ process ─▶ control_plane ─▶ manager ─▶ scenario ─▶ suite
//! ```
//!
//! - Every program is owned by a guard: dropping the guard ends the program.
//! - After a scenario the logs of our managers are read: a panic or an error that it does not expect fails it.
//! - A scenario waits for a condition with a time limit, and does not sleep in its stead.
//! - A missing program is an error that names the command which builds it, never a skip.
//! - The same scenario with the same assertions runs against our manager and against upstream's.
//!   `e2e/peer-verified.tsv` records what upstream's has passed.

#![allow(clippy::must_use_candidate, reason = "the value of a getter is not ignored by accident")]

pub mod aggregated_api;
pub mod audit;
pub mod balancer;
pub mod binaries;
pub mod cgroup;
pub mod clock;
pub mod control_plane;
pub mod helpers;
pub mod interrupt;
pub mod kubectl;
pub mod manager;
pub mod manager_log;
pub mod nodes;
pub mod peer_metrics;
pub mod peer_verified;
pub mod pki;
pub mod process;
pub mod procfs;
pub mod random;
pub mod requests;
pub mod scenario;
pub mod script;
pub mod subject;
pub mod suite;
pub mod wait;

#[doc(hidden)] // for `scenarios!`
pub use inventory;
