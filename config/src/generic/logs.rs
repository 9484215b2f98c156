//! The settings of logs.

use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};
use crate::value::Value;

const SECTION: &str = "Logs";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("log-flush-frequency", SECTION, Initial::Duration(GoDuration::from_secs(5))).help("Longest time for which log lines are buffered.").check(checks::positive),
    Row::new("log-json-info-buffer-size", SECTION, Initial::Quantity("0")).help("Buffer for info messages in JSON format, e.g. 512, 1Ki; 0 for none. Used with --log-json-split-stream. Needs the gate LoggingAlphaOptions.").check(checks::not_negative),
    Row::new("log-json-split-stream", SECTION, Initial::Bool(false)).help("Write errors to standard error and info messages to standard output in JSON format. Needs the gate LoggingAlphaOptions."),
    Row::new("log-text-info-buffer-size", SECTION, Initial::Quantity("0")).help("Buffer for info messages in text format, e.g. 512, 1Ki; 0 for none. Used with --log-text-split-stream. Needs the gate LoggingAlphaOptions.").check(checks::not_negative),
    Row::new("log-text-split-stream", SECTION, Initial::Bool(false)).help("Write errors to standard error and info messages to standard output in text format. Needs the gate LoggingAlphaOptions."),
    Row::new("logging-format", SECTION, Initial::String("text")).help("Format of the log: text or json.").check(format),
    Row::new("v", SECTION, Initial::Level(0)).short('v').path("Logging.verbosity").help("Log verbosity. 0: information; 4: debug messages; 6: traces; 8: HTTP and TLS."),
    Row::new("vmodule", SECTION, Initial::ModuleLevels).path("Logging.vmodule").help("Verbosity of single source files, modules or controllers, e.g. job=4,kcm_informers::*=6. Text format only."),
];

fn format(value: &Value) -> Result<(), String> {
    checks::one_of(value, &["text", "json"])
}
