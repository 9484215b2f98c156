//! The settings that upstream lists under no other heading.

use crate::row::{Initial, Row};

use super::CONFIG;

const SECTION: &str = "Misc";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new(CONFIG, SECTION, Initial::String(""))
        .help("A configuration file. The environment and flags override what it says."),
    Row::new("kubeconfig", SECTION, Initial::String(""))
        .path("Generic.ClientConnection.kubeconfig")
        .help("The kubeconfig file with the API server's address and credentials; in a cluster it may be left out."),
    Row::new("master", SECTION, Initial::String(""))
        .help("The address of the API server, in place of the one in --kubeconfig."),
];
