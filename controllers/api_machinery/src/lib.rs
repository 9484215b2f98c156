//! The controllers of the API machinery, a folder for each.
//!
//! A controller registers itself by being linked. Removing one is deleting its folder and its line here.

mod fresh_discovery;
pub mod garbage_collector;
pub mod namespace;
pub mod resourcequota;
pub mod storage_version_migrator;
pub mod storageversion_garbage_collector;
pub mod validatingadmissionpolicy_status;

#[cfg(test)]
mod tests;
