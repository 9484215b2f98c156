//! The controllers of workloads, a folder for each.
//!
//! A controller registers itself by being linked. Removing one is deleting its folder and its line here.

pub mod cronjob;
pub mod daemonset;
pub mod deployment;
pub mod disruption;
pub mod job;
pub mod pod_garbage_collector;
pub mod podgroup_protection;
pub mod replicaset;
pub mod replicationcontroller;
mod shared;
pub mod statefulset;
#[cfg(test)]
mod tests;
pub mod ttl_after_finished;
