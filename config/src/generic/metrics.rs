//! The settings of metrics.

use crate::checks;
use crate::row::{Initial, Row};
use crate::value::Value;

const SECTION: &str = "Metrics";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("allow-metric-labels", SECTION, Initial::Map).help("Allowed values of a metric's label, as METRIC,LABEL=VALUE,VALUE. Other values are exposed as \"unexpected\".").check(labels),
    Row::new("allow-metric-labels-manifest", SECTION, Initial::String("")).help("YAML file whose allowListMapping replaces --allow-metric-labels. Only one of the two may be given."),
    Row::new("disabled-metrics", SECTION, Initial::Strings(&[])).help("Metrics that are not exposed, by their full names.").check(metric_names),
    Row::new("show-hidden-metrics-for-version", SECTION, Initial::String("")).help("Expose the metrics that are hidden since this version, e.g. 1.35. Only the previous minor version is accepted.")
        .check(previous_minor),
];

fn labels(value: &Value) -> Result<(), String> {
    let Value::Map(pairs) = value else { return Ok(()) };
    let bad = pairs
        .keys()
        .find(|key| !key.split_once(',').is_some_and(|(metric, label)| is_metric(metric) && is_name(label)));
    bad.map_or(Ok(()), |key| Err(format!("must have keys as METRIC,LABEL, and has {key:?}")))
}

fn metric_names(value: &Value) -> Result<(), String> {
    let Value::Strings(names) = value else { return Ok(()) };
    let bad = names.iter().find(|name| !is_metric(name));
    bad.map_or(Ok(()), |name| Err(format!("must be names of metrics, and {name:?} is none")))
}

fn is_metric(name: &str) -> bool {
    is_name(&name.replace(':', "_"))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Upstream accepts no other version, so that metrics hidden in the next version are no surprise.
fn previous_minor(value: &Value) -> Result<(), String> {
    checks::one_of(value, &["1.35", ""])
}
