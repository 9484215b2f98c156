//! The data from which a row of a table is built.

use jiff::Timestamp;
use serde_json::Value;

use super::duration::human_duration;

/// An object, and the time at which its ages are taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(super) object: &'a Value,
    pub(super) now: Timestamp,
}

impl<'a> Row<'a> {
    /// The value at a JSON pointer; null counts as absent.
    pub(super) fn at(&self, pointer: &str) -> Option<&'a Value> {
        self.object.pointer(pointer).filter(|value| !value.is_null())
    }

    pub(super) fn str(&self, pointer: &str) -> Option<&'a str> {
        self.at(pointer)?.as_str()
    }

    /// Returns the string at a JSON pointer, or an empty string.
    pub(super) fn text(&self, pointer: &str) -> &'a str {
        self.str(pointer).unwrap_or_default()
    }

    /// Returns the list at a JSON pointer, or an empty list.
    pub(super) fn list(&self, pointer: &str) -> &'a [Value] {
        self.at(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn int(&self, pointer: &str) -> i64 {
        self.at(pointer).and_then(Value::as_i64).unwrap_or(0)
    }

    pub(super) fn flag(&self, pointer: &str) -> Option<bool> {
        self.at(pointer).and_then(Value::as_bool)
    }

    /// The length of the list or map at a JSON pointer.
    pub(super) fn len(&self, pointer: &str) -> usize {
        match self.at(pointer) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(fields)) => fields.len(),
            Some(_) | None => 0,
        }
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.at("/metadata/deletionTimestamp").is_some()
    }

    pub(super) fn time(&self, pointer: &str) -> Option<Timestamp> {
        self.str(pointer)?.parse().ok()
    }

    /// Formats the time that has passed since `time`.
    pub(super) fn since_time(&self, time: Option<Timestamp>) -> String {
        time.map_or_else(|| "<unknown>".to_owned(), |time| human_duration(self.now.duration_since(time).as_secs()))
    }

    /// The condition of a type.
    pub(super) fn condition(&self, kind: &str) -> Option<&'a Value> {
        self.list("/status/conditions").iter().find(|condition| condition["type"] == *kind)
    }

    /// Returns `true` if the condition of a type is true.
    pub(super) fn is_true(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition["status"] == "True")
    }
}
