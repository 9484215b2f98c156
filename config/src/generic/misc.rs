//! The settings that upstream lists under no other heading.

use crate::row::{Initial, Row};

use super::CONFIG;

const SECTION: &str = "Misc";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new(CONFIG, SECTION, Initial::String(""))
        .help("Configuration file. Environment variables and flags override it."),
    Row::new("kubeconfig", SECTION, Initial::String(""))
        .path("Generic.ClientConnection.kubeconfig")
        .help("Kubeconfig file with the API server's address and credentials. Empty: the service account of this pod."),
    Row::new("master", SECTION, Initial::String(""))
        .help("Address of the API server. Overrides the address in --kubeconfig."),
];
