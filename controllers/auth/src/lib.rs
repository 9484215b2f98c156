//! The controllers of service accounts, tokens, bootstrap tokens, certificates, the root CA and aggregated cluster roles, a
//! folder for each.
//!
//! A controller registers itself by being linked. Removing one is deleting its folder and its line here.

pub mod bootstrap_signer;
pub mod certificatesigningrequest_approving;
pub mod certificatesigningrequest_cleaner;
pub mod certificatesigningrequest_signing;
pub mod clusterrole_aggregation;
pub mod kube_apiserver_serving_clustertrustbundle_publisher;
pub mod legacy_serviceaccount_token_cleaner;
pub mod podcertificaterequest_cleaner;
pub mod root_ca_certificate_publisher;
pub mod serviceaccount;
pub mod serviceaccount_token;
mod shared;
#[cfg(test)]
mod tests;
pub mod token_cleaner;
