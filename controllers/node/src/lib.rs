//! The controllers of Nodes: their health, their pod CIDRs, and eviction from Nodes that fail, a folder for each.
//!
//! A controller registers itself by being linked. Removing one is deleting its folder and its line here.

pub mod node_ipam;
pub mod node_lifecycle;
mod shared;
pub mod taint_eviction;
pub mod ttl;

#[cfg(test)]
mod tests;
