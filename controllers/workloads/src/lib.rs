//! The built-in controllers, one folder each.
//!
//! Each registers itself by being linked: a host that depends on this crate writes `use kcm_controllers as _;`.
//! A controller is removed by deleting its folder and its line here.

#[cfg(test)]
mod cluster;
pub mod deployment;
pub mod replicaset;
mod shared;
