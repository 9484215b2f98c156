//! Rows of horizontal pod autoscalers.

use serde_json::Value;

use super::phrase::{self, NONE, text_of};
use super::row::Row;

/// Highest number of metrics in a cell.
const SHOWN: usize = 2;
const UNKNOWN: &str = "<unknown>";

pub(super) fn metrics(row: &Row<'_>) -> String {
    let specs = row.list("/spec/metrics");
    if specs.is_empty() {
        return NONE.to_owned();
    }
    let statuses = row.list("/status/currentMetrics");
    let shown: Vec<String> =
        specs.iter().enumerate().take(SHOWN).map(|(at, spec)| metric(spec, statuses.get(at))).collect();
    let list = shown.join(", ");
    if specs.len() > SHOWN { format!("{list} + {} more...", specs.len() - SHOWN) } else { list }
}

/// A metric as it is, and as it should be.
fn metric(spec: &Value, status: Option<&Value>) -> String {
    let source = match text_of(spec, "type") {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => return "<unknown type>".to_owned(),
    };
    let target = &spec[source]["target"];
    let current = status.and_then(|status| status.get(source)).map(|source| &source["current"]);
    let is_average = !target["averageValue"].is_null();
    let amounts = |field: &str| format!("{}/{}", amount(current, field), amount(Some(target), field));
    match source {
        "pods" => amounts("averageValue"),
        "object" | "external" if is_average => format!("{} (avg)", amounts("averageValue")),
        "object" | "external" => amounts("value"),
        _ if is_average => format!("{}: {}", text_of(&spec[source], "name"), amounts("averageValue")),
        _ => {
            let share = |value: Option<&Value>, absent: &str| {
                let share = value.and_then(|value| value["averageUtilization"].as_i64());
                share.map_or_else(|| absent.to_owned(), |share| format!("{share}%"))
            };
            let name = text_of(&spec[source], "name");
            format!("{name}: {}/{}", share(current, UNKNOWN), share(Some(target), "<auto>"))
        }
    }
}

fn amount(values: Option<&Value>, field: &str) -> String {
    let amount = values.and_then(|values| values.get(field)).filter(|amount| !amount.is_null());
    amount.map_or_else(|| UNKNOWN.to_owned(), phrase::quantity)
}
