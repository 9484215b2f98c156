//! The effective settings, each with its origin.

use std::collections::BTreeMap;

use figment::Figment;
use serde::de::DeserializeOwned;

use crate::error::{Origin, Warning};
use crate::file::{API_VERSION, KIND};
use crate::gates::{Gate, Gates};
use crate::keys::{Key, Section};
use crate::merge::{Layer, Merged};
use crate::row::{Row, printable};
use crate::table::Table;
use crate::value::{FromValue, Value};

/// The effective settings: the value of every row and its origin.
#[derive(Debug, Clone)]
pub struct Effective {
    table: Table,
    entries: Layer,
    tree: Figment,
    gates: Gates,
    warnings: Vec<Warning>,
    operands: Vec<String>,
}

/// An access that does not fit the table. It is a mistake of a programmer, not of an operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// No row has this flag.
    #[error("no setting has the flag --{flag}")]
    UnknownFlag {
        /// The requested flag.
        flag: String,
    },
    /// The row is of another type than it was asked for.
    #[error("--{flag} is a {kind}, and was asked for as {asked}")]
    WrongType {
        /// The requested flag.
        flag: &'static str,
        /// The type of the setting.
        kind: &'static str,
        /// The requested Rust type.
        asked: &'static str,
    },
    /// The section is not there, or its values do not fit the struct.
    #[error("cannot read the section {section}")]
    Section {
        /// The requested dotted path.
        section: String,
        /// The error of figment.
        #[source]
        source: Box<figment::Error>,
    },
}

impl Effective {
    pub(crate) fn new(
        table: Table,
        merged: Merged,
        gates: Gates,
        warnings: Vec<Warning>,
        operands: Vec<String>,
    ) -> Self {
        Self { table, entries: merged.entries, tree: merged.tree, gates, warnings, operands }
    }

    /// The value of a setting, by its flag (without dashes) or, where only a file can set it, its path.
    ///
    /// # Errors
    ///
    /// When no row has the flag, or the row is of another type.
    pub fn get<T: FromValue>(&self, flag: &str) -> Result<T, AccessError> {
        let row = self.table.find(flag).ok_or_else(|| AccessError::UnknownFlag { flag: flag.to_owned() })?;
        let (kind, asked) = (row.kind().name(), std::any::type_name::<T>());
        self.value(flag).and_then(T::from_value).ok_or(AccessError::WrongType { flag: row.name, kind, asked })
    }

    /// The rows of all settings.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        self.table.rows()
    }

    /// The value of a setting as data.
    #[must_use]
    pub fn value(&self, flag: &str) -> Option<&Value> {
        self.entries.get(flag).map(|entry| &entry.value)
    }

    /// The origin of the value of a setting.
    #[must_use]
    pub fn origin(&self, flag: &str) -> Option<&Origin> {
        self.entries.get(flag).map(|entry| &entry.origin)
    }

    /// A section of the file, defaults included, as a struct whose fields are renamed to the keys of the file.
    ///
    /// # Errors
    ///
    /// When no row is in that section, or its values do not fit the struct.
    pub fn section<T: DeserializeOwned>(&self, section: &str) -> Result<T, AccessError> {
        let read = self.tree.extract_inner(section);
        read.map_err(|source| AccessError::Section { section: section.to_owned(), source: Box::new(source) })
    }

    /// Whether a gate is on.
    #[must_use]
    pub fn enabled(&self, gate: &Gate) -> bool {
        self.gates.enabled(gate)
    }

    /// The feature gates.
    #[must_use]
    pub fn gates(&self) -> &Gates {
        &self.gates
    }

    /// The warnings for the operator.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The positional arguments of the command line, in order; empty unless
    /// [`Sources::with_operands`](crate::Sources::with_operands) accepts them.
    #[must_use]
    pub fn operands(&self) -> &[String] {
        &self.operands
    }

    /// Every setting with its value and its origin, aligned, sorted by name.
    #[must_use]
    pub fn render(&self) -> String {
        let lines: Vec<[String; 3]> = self
            .entries
            .iter()
            .map(|(name, entry)| {
                let label = self.table.find(name).map_or_else(|| (*name).to_owned(), Row::label);
                [label, printable(&entry.value), entry.origin.to_string()]
            })
            .collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let (flags, values) = (width(0), width(1));
        let aligned = |[flag, value, origin]: &[String; 3]| format!("{flag:flags$}  {value:values$}  {origin}\n");
        lines.iter().map(aligned).collect()
    }

    /// The settings as a configuration file. Loading it gives the same values; what has no key in the file is not in
    /// it.
    #[must_use]
    pub fn render_yaml(&self) -> String {
        let mut lines = vec![format!("apiVersion: {API_VERSION}"), format!("kind: {KIND}")];
        self.render_section(self.table.keys(), "", &mut lines);
        lines.join("\n") + "\n"
    }

    fn render_section(&self, section: &Section, indent: &str, lines: &mut Vec<String>) {
        for (key, meaning) in section.iter() {
            match meaning {
                Key::Section(inner) => {
                    lines.push(format!("{indent}{key}:"));
                    self.render_section(inner, &format!("{indent}  "), lines);
                }
                Key::Setting(row) => {
                    let value = self.value(self.table.row(*row).name).expect("every row has a value");
                    lines.push(format!("{indent}{key}: {}", yaml(value)));
                }
            }
        }
    }
}

fn yaml(value: &Value) -> String {
    match value {
        Value::Bool(_) | Value::Int32(_) | Value::Int(_) | Value::Float32(_) | Value::Float64(_) => value.to_string(),
        Value::Duration(duration) => quoted(&duration.to_string()),
        Value::String(text) => quoted(text),
        Value::Strings(items) => list(items.iter().map(|item| quoted(item))),
        Value::Ip(value) => quoted(&value.to_string()),
        Value::Quantity(value) => quoted(&value.to_string()),
        Value::Int32s(items) => list(items.iter().map(ToString::to_string)),
        Value::CertKeys(items) => list(items.iter().map(|item| quoted(&item.to_string()))),
        Value::ModuleLevels(items) => list(items.iter().map(|item| quoted(&item.to_string()))),
        Value::Map(pairs) => map(pairs),
        Value::Objects(items) => list(items.iter().map(map)),
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn map(pairs: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{}: {}", quoted(key), quoted(value))).collect();
    format!("{{{}}}", pairs.join(", "))
}

/// Text in double quotes, with every character escaped that some YAML reader does not take as it is.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        ' '..='~' => c.to_string(),
        '\u{a0}'..='\u{d7ff}' if !matches!(c, '\u{2028}' | '\u{2029}') => c.to_string(),
        _ => format!("\\U{:08x}", u32::from(c)),
    });
    format!("\"{}\"", escaped.collect::<String>())
}
