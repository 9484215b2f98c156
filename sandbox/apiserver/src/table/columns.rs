//! The columns of each resource, as `data/columns.txt` has them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Serialize;
use serde_json::Value;

use super::formatting::{self, Arguments, Formatting};
use super::row::Row;
use crate::kinds::Kind;

/// A column: its definition as clients get it, and how its cells are found.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Column {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    format: &'static str,
    description: &'static str,
    priority: u8,
    #[serde(skip)]
    formatting: Formatting,
    #[serde(skip)]
    arguments: Arguments,
}

impl Column {
    pub(super) fn cell(&self, row: &Row<'_>) -> Value {
        (self.formatting)(row, &self.arguments)
    }
}

type Columns = BTreeMap<&'static str, Vec<Column>>;

static COLUMNS: LazyLock<Columns> = LazyLock::new(|| parse(include_str!("../../data/columns.txt")));

/// The columns of a resource, or of its subresource.
pub(super) fn of(kind: &Kind, subresource: Option<&str>) -> &'static [Column] {
    let key = match subresource {
        Some("scale") => "scale".to_owned(),
        _ if kind.is_custom() => "custom".to_owned(),
        _ => kind.resource.to_string(),
    };
    COLUMNS.get(&*key).or_else(|| COLUMNS.get("*")).map_or(&[], Vec::as_slice)
}

/// Reads the file. It is part of the program, so that an error in it is a programming error, which the tests find.
fn parse(file: &'static str) -> Columns {
    let mut columns = Columns::new();
    let mut resources: Vec<&'static str> = Vec::new();
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(line) = line.strip_prefix(' ') else {
            resources = line.split(' ').collect();
            continue;
        };
        let column = if line.contains('|') {
            column(line).unwrap_or_else(|| panic!("not a column: {line}"))
        } else {
            let shared = columns.get("shared").into_iter().flatten().find(|column| column.name == line);
            shared.unwrap_or_else(|| panic!("no shared column: {line}")).clone()
        };
        for resource in &resources {
            columns.entry(*resource).or_default().push(column.clone());
        }
    }
    columns
}

fn column(line: &'static str) -> Option<Column> {
    let fields: Vec<&'static str> = line.split('|').map(str::trim).collect();
    let [name, kind, formatting, description] = fields[..] else { return None };
    let (kind, marks) = kind.split_once(' ').unwrap_or((kind, ""));
    let (formatting, arguments) = formatting.split_once(' ').unwrap_or((formatting, ""));
    Some(Column {
        name,
        kind,
        format: if marks.contains("name") { "name" } else { "" },
        description,
        priority: marks.contains("wide").into(),
        formatting: formatting::of(formatting)?,
        arguments: Arguments::of(arguments),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_file_is_read() {
        assert!(COLUMNS.len() > 50 && COLUMNS.values().all(|columns| !columns.is_empty()));
    }

    #[test]
    fn every_resource_of_the_file_is_served() {
        let kinds = crate::kinds::Kinds::built_in(true);
        let served = |key: &str| kinds.iter().any(|kind| kind.resource.to_string() == key);
        for key in COLUMNS.keys().filter(|key| !["shared", "scale", "custom", "*"].contains(key)) {
            assert!(served(key), "{key}");
        }
    }
}
