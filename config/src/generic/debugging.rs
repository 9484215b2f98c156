//! The settings of profiling.

use crate::checks;
use crate::row::{Initial, Row};

const SECTION: &str = "Debugging";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("contention-profiling", SECTION, Initial::Bool(false))
        .path("Generic.Debugging.enableContentionProfiling")
        .help("Also profile lock contention.")
        .without_effect(),
    Row::new("debug-ui", SECTION, Initial::Bool(false))
        .help("Serve the status page at /debug/ui. Users need access to /debug/*."),
    Row::new("explain-memory", SECTION, Initial::Quantity("2Mi"))
        .help("Memory for the history that `explain` shows. 0 turns it off.")
        .check(checks::not_negative),
    Row::new("profiling", SECTION, Initial::Bool(true))
        .path("Generic.Debugging.enableProfiling")
        .help("Serve CPU and heap profiles at /debug/pprof/, and PUT /debug/flags/v, which changes the log verbosity."),
];
