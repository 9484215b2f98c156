//! The controllers of service accounts, their tokens, the root CA, certificate signing requests and aggregated cluster roles,
//! a folder for each.
//!
//! A controller registers itself by being linked. Removing one is deleting its folder and its line here.

pub mod certificatesigningrequest_approving;
pub mod certificatesigningrequest_cleaner;
pub mod certificatesigningrequest_signing;
pub mod clusterrole_aggregation;
pub mod legacy_serviceaccount_token_cleaner;
pub mod root_ca_certificate_publisher;
pub mod serviceaccount;
pub mod serviceaccount_token;
mod shared;
#[cfg(test)]
mod tests;
