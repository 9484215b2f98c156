//! Scenarios and measurements against a real Kubernetes API server.
//!
//! `cargo xtask e2e` runs the scenarios, `cargo xtask bench` the measurements. Plain `cargo test`
//! needs neither Go nor a cluster: it tests only the parts of this crate that are pure.
//!
//! ```text
//! binaries ─▶ process ─▶ control_plane ─▶ manager ─▶ scenario ─▶ scenarios
//!                                                         └────▶ suite
//! ```
//!
//! - Every program started is the child of a guard: it ends with the guard, at the latest.
//! - What is waited for is a condition with a time limit; nothing sleeps and hopes.
//! - A missing program is an error that names the command which builds it, never a skip.
//! - The same scenario with the same assertions runs against our manager and against upstream's.

#![allow(clippy::must_use_candidate, reason = "the value of a getter is not ignored by accident")]

pub mod bench;
pub mod binaries;
mod clock;
pub mod control_plane;
mod helpers;
pub mod interrupt;
mod kubectl;
pub mod manager;
pub mod manager_log;
pub mod nodes;
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
