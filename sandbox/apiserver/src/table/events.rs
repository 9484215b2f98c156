//! Events.

use serde_json::Value;

use super::Columns;
use super::column::{NAME, Row, text};
use super::phrase::or;

pub(super) const EVENTS: Columns = &[
    text("Last Seen", "How long ago it last happened.", |row| last_seen(row).into()),
    text("Type", "Whether it is a warning.", |row| row.text("/type")),
    text("Reason", "What happened, in a word.", |row| row.text("/reason")),
    text("Object", "What it happened to.", object),
    text("Subobject", "The part that it happened to.", |row| row.text("/involvedObject/fieldPath")).wide(),
    text("Source", "Who says so.", source).wide(),
    text("Message", "What happened.", |row| row.str("/message").unwrap_or_default().trim().into()),
    text("First Seen", "How long ago it first happened.", |row| first_seen(row).into()).wide(),
    text("Count", "How often it happened.", |row| match (row.at("/series"), row.int("/count")) {
        (Some(_), _) => row.number("/series/count"),
        // An event that stands alone carries no count.
        (None, 0) => 1.into(),
        (None, count) => count.into(),
    })
    .wide(),
    NAME.wide(),
];

fn first_seen(row: &Row<'_>) -> String {
    row.since_time(row.time("/firstTimestamp").or_else(|| row.time("/eventTime")))
}

fn last_seen(row: &Row<'_>) -> String {
    if row.at("/series").is_some() {
        return row.since("/series/lastObservedTime");
    }
    match row.time("/lastTimestamp") {
        Some(last) => row.since_time(Some(last)),
        None => first_seen(row),
    }
}

fn object(row: &Row<'_>) -> Value {
    let kind = row.str("/involvedObject/kind").unwrap_or_default().to_lowercase();
    match row.str("/involvedObject/name") {
        None | Some("") => kind.into(),
        Some(name) => format!("{kind}/{name}").into(),
    }
}

/// Who reported, as events of either form say it.
fn source(row: &Row<'_>) -> Value {
    let either = |old, new| or(row.str(old).unwrap_or_default(), row.str(new).unwrap_or_default());
    let component = either("/source/component", "/reportingComponent");
    match either("/source/host", "/reportingInstance") {
        "" => component.into(),
        instance => format!("{component}, {instance}").into(),
    }
}
