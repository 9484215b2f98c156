//! The controllers of workloads, a folder for each.
//!
//! Each registers itself by being linked. A controller is removed by deleting its folder and its line here.

#[cfg(test)]
mod cluster;
pub mod deployment;
pub mod replicaset;
mod shared;
