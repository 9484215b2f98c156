//! The controllers of endpoints, endpoint slices and service CIDRs, a folder for each.
//!
//! A controller registers itself by being linked. Removing one is deleting its folder and its line here.

mod shared;
#[cfg(test)]
mod tests;

pub mod endpoints;
pub mod endpointslice;
pub mod endpointslice_mirroring;
pub mod service_cidr;
