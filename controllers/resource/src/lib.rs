//! The controllers of devices: their claims, eviction from tainted devices, and the status of their pools, a folder for
//! each.
//!
//! A controller registers itself by being linked. Removing one is deleting its folder and its line here.

pub mod device_taint_eviction;
pub mod resourceclaim;
mod shared;

#[cfg(test)]
mod tests;
