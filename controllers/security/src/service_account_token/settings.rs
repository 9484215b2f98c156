//! The settings.

use kcm_config::{Initial, Row, checks};

/// How many secrets are processed at once.
pub(super) const CONCURRENT_SYNCS: &str = "concurrent-serviceaccount-token-syncs";

/// The key that signs tokens.
pub(super) const PRIVATE_KEY_FILE: &str = "service-account-private-key-file";

/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[
    Row::new(CONCURRENT_SYNCS, "Serviceaccount-controller", Initial::Int32(5))
        .path("SAController.ConcurrentSATokenSyncs")
        .help("How many tokens of service accounts are worked on at once. More is faster, and loads the API server and the network more.")
        .check(checks::positive)
        .reloaded(),
    Row::new(PRIVATE_KEY_FILE, "Serviceaccount-controller", Initial::String(""))
        .path("SAController.ServiceAccountKeyFile")
        .help("The private key, RSA or ECDSA in PEM, that signs the tokens of service accounts; without it no token is made in a secret."),
];
