//! The controllers of service accounts, their tokens, the root CA and aggregated cluster roles, a folder for each.
//!
//! A controller registers itself by being linked. Removing one is deleting its folder and its line here.

pub mod cluster_role_aggregation;
pub mod legacy_token_cleaner;
pub mod root_ca_publisher;
pub mod service_account;
pub mod service_account_token;
mod shared;
#[cfg(test)]
mod tests;
