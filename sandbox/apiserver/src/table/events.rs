//! Events.

use serde_json::Value;

use super::phrase::or;
use super::row::Row;

pub(super) fn first_seen(row: &Row<'_>) -> String {
    row.since_time(row.time("/firstTimestamp").or_else(|| row.time("/eventTime")))
}

pub(super) fn last_seen(row: &Row<'_>) -> String {
    if row.at("/series").is_some() {
        return row.since_time(row.time("/series/lastObservedTime"));
    }
    match row.time("/lastTimestamp") {
        Some(last) => row.since_time(Some(last)),
        None => first_seen(row),
    }
}

pub(super) fn object(row: &Row<'_>) -> Value {
    let kind = row.text("/involvedObject/kind").to_lowercase();
    match row.str("/involvedObject/name") {
        None | Some("") => kind.into(),
        Some(name) => format!("{kind}/{name}").into(),
    }
}

/// The component that reported, which each form of events has in a field of its own.
pub(super) fn source(row: &Row<'_>) -> Value {
    let either = |old, new| or(row.text(old), row.text(new));
    let component = either("/source/component", "/reportingComponent");
    match either("/source/host", "/reportingInstance") {
        "" => component.into(),
        instance => format!("{component}, {instance}").into(),
    }
}

pub(super) fn count(row: &Row<'_>) -> i64 {
    match (row.at("/series"), row.int("/count")) {
        (Some(_), _) => row.int("/series/count"),
        // An event that stands alone carries no count.
        (None, 0) => 1,
        (None, count) => count,
    }
}
