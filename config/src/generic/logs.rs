//! The settings of logs.

use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};
use crate::value::Value;

const SECTION: &str = "Logs";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("log-flush-frequency", SECTION, Initial::Duration(GoDuration::from_secs(5))).help("How often buffered lines of the log are written.").check(checks::positive),
    Row::new("log-json-info-buffer-size", SECTION, Initial::Quantity("0")).help("How many bytes of info lines the JSON format collects before it writes them, with --log-json-split-stream; as 512, 1Ki, 2Mi. Needs the gate LoggingAlphaOptions.").check(checks::not_negative),
    Row::new("log-json-split-stream", SECTION, Initial::Bool(false)).help("In the JSON format, write errors to standard error and info lines to standard output. Needs the gate LoggingAlphaOptions."),
    Row::new("log-text-info-buffer-size", SECTION, Initial::Quantity("0")).help("How many bytes of info lines the text format collects before it writes them, with --log-text-split-stream; as 512, 1Ki, 2Mi. Needs the gate LoggingAlphaOptions.").check(checks::not_negative),
    Row::new("log-text-split-stream", SECTION, Initial::Bool(false)).help("In the text format, write errors to standard error and info lines to standard output. Needs the gate LoggingAlphaOptions."),
    Row::new("logging-format", SECTION, Initial::String("text")).help("The format of the log: 'text' or 'json'.").check(format),
    Row::new("v", SECTION, Initial::Level(0)).short('v').path("Logging.verbosity").help("How much is logged: higher is more."),
    Row::new("vmodule", SECTION, Initial::ModuleLevels).path("Logging.vmodule").help("The verbosity of single modules or controllers, as pattern=N,other=M; it applies to the text format only."),
];

fn format(value: &Value) -> Result<(), String> {
    checks::one_of(value, &["text", "json"])
}
