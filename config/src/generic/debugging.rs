//! The settings of profiling.

use crate::checks;
use crate::row::{Initial, Row};

const SECTION: &str = "Debugging";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("contention-profiling", SECTION, Initial::Bool(false))
        .path("Generic.Debugging.enableContentionProfiling")
        .help("Also profile lock contention. No effect yet."),
    Row::new("debug-ui", SECTION, Initial::Bool(false))
        .help("Serve the status page /debug/ui on the secure port, to all who may get the paths /debug/*."),
    Row::new("explain-memory", SECTION, Initial::Quantity("2Mi"))
        .help("The memory in which the last decisions about objects are kept, for /debug/controllers/NAME/keys and the sub-command explain; 0 keeps none.")
        .check(checks::not_negative),
    Row::new("profiling", SECTION, Initial::Bool(true))
        .path("Generic.Debugging.enableProfiling")
        .help("Serve CPU and heap profiles under /debug/pprof/ on the secure port, and PUT /debug/flags/v, which changes the verbosity of the log."),
];
