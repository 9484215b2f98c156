//! A column, and what its cells are made from.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::duration::human_duration;
use super::phrase;

/// An object at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(super) object: &'a Value,
    pub(super) now: Timestamp,
}

/// A column: its definition as clients get it, and how its cells are found.
#[derive(Debug, Serialize)]
pub(crate) struct Column {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    format: &'static str,
    description: &'static str,
    priority: u8,
    #[serde(skip)]
    cell: fn(&Row<'_>) -> Value,
}

pub(super) const NAME: Column =
    Column { format: "name", ..text("Name", "Name of the object, unique in its namespace.", name) };
pub(super) const AGE: Column = text("Age", "How long ago the object was made.", age);
pub(super) const CREATED_AT: Column = date("Created At", "When the object was made.", |row| {
    // A time that is not there is the zero time.
    row.text_or("/metadata/creationTimestamp", "0001-01-01T00:00:00Z")
});

pub(super) fn name(row: &Row<'_>) -> Value {
    row.text("/metadata/name")
}

pub(super) fn age(row: &Row<'_>) -> Value {
    row.since("/metadata/creationTimestamp").into()
}

/// The age of a custom object, which has no zero value.
pub(super) fn age_or_null(row: &Row<'_>) -> Value {
    row.at("/metadata/creationTimestamp").map_or(Value::Null, |_| age(row))
}

type Cell = fn(&Row<'_>) -> Value;

pub(super) const fn text(name: &'static str, description: &'static str, cell: Cell) -> Column {
    Column { name, kind: "string", format: "", description, priority: 0, cell }
}

pub(super) const fn integer(name: &'static str, description: &'static str, cell: Cell) -> Column {
    Column { kind: "integer", ..text(name, description, cell) }
}

pub(super) const fn boolean(name: &'static str, description: &'static str, cell: Cell) -> Column {
    Column { kind: "boolean", ..text(name, description, cell) }
}

pub(super) const fn date(name: &'static str, description: &'static str, cell: Cell) -> Column {
    Column { kind: "date", ..text(name, description, cell) }
}

impl Column {
    /// Shown only where a client asks for a wide table.
    pub(super) const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    /// A text that is a name as far as clients are concerned.
    pub(super) const fn named(self) -> Self {
        Self { format: "name", ..self }
    }

    pub(super) fn cell(&self, row: &Row<'_>) -> Value {
        (self.cell)(row)
    }
}

impl<'a> Row<'a> {
    /// The value at a JSON pointer; null counts as absent.
    pub(super) fn at(&self, pointer: &str) -> Option<&'a Value> {
        self.object.pointer(pointer).filter(|value| !value.is_null())
    }

    pub(super) fn str(&self, pointer: &str) -> Option<&'a str> {
        self.at(pointer)?.as_str()
    }

    /// The list at a JSON pointer, empty where there is none.
    pub(super) fn list(&self, pointer: &str) -> &'a [Value] {
        self.at(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn int(&self, pointer: &str) -> i64 {
        self.at(pointer).and_then(Value::as_i64).unwrap_or(0)
    }

    pub(super) fn flag(&self, pointer: &str) -> bool {
        self.at(pointer).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The text at a JSON pointer as a cell, empty where there is none.
    pub(super) fn text(&self, pointer: &str) -> Value {
        self.text_or(pointer, "")
    }

    /// The text at a JSON pointer as a cell; `absent` only where there is none.
    pub(super) fn text_or(&self, pointer: &str, absent: &str) -> Value {
        self.str(pointer).unwrap_or(absent).into()
    }

    /// The text at a JSON pointer as a cell; `absent` also where it is empty.
    pub(super) fn filled_or(&self, pointer: &str, absent: &str) -> Value {
        self.str(pointer).filter(|text| !text.is_empty()).unwrap_or(absent).into()
    }

    /// The number at a JSON pointer as a cell, 0 where there is none.
    pub(super) fn number(&self, pointer: &str) -> Value {
        self.int(pointer).into()
    }

    /// The length of the list or map at a JSON pointer.
    pub(super) fn len(&self, pointer: &str) -> usize {
        match self.at(pointer) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(fields)) => fields.len(),
            Some(_) | None => 0,
        }
    }

    pub(super) fn count(&self, pointer: &str) -> Value {
        self.len(pointer).into()
    }

    /// The name, and whether an annotation makes the object the default of its kind.
    pub(super) fn name_of_default(&self, annotations: &[&str]) -> Value {
        let set = |annotation: &&str| {
            self.at("/metadata/annotations").and_then(|all| all.get(*annotation)).is_some_and(|value| value == "true")
        };
        let name = self.str("/metadata/name").unwrap_or_default();
        if annotations.iter().any(set) { format!("{name} (default)").into() } else { name.into() }
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.at("/metadata/deletionTimestamp").is_some()
    }

    pub(super) fn time(&self, pointer: &str) -> Option<Timestamp> {
        self.str(pointer)?.parse().ok()
    }

    /// How long ago the time at a JSON pointer was.
    pub(super) fn since(&self, pointer: &str) -> String {
        self.since_time(self.time(pointer))
    }

    pub(super) fn since_time(&self, time: Option<Timestamp>) -> String {
        time.map_or_else(|| "<unknown>".to_owned(), |time| human_duration(self.now.duration_since(time).as_secs()))
    }

    /// The condition of a type.
    pub(super) fn condition(&self, kind: &str) -> Option<&'a Value> {
        self.list("/status/conditions").iter().find(|condition| condition["type"] == *kind)
    }

    /// Whether the condition of a type is true.
    pub(super) fn is_true(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition["status"] == "True")
    }

    /// A field of the items of a list, joined by commas.
    pub(super) fn joined(&self, pointer: &str, field: &str) -> Value {
        phrase::joined(self.list(pointer), field).into()
    }
}
