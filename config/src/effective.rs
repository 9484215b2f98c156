//! The effective settings, each with its origin.

use std::sync::Arc;

use figment::Figment;
use serde::de::DeserializeOwned;

use crate::error::{Origin, Warning};
use crate::gate::Gate;
use crate::gates::Gates;
use crate::merge::{Layer, Merged, key_of, merge};
use crate::row::Row;
use crate::setting::Setting;
use crate::table::Table;
use crate::value::{FromValue, Value};

/// The effective settings: the value of every row and its origin. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Effective {
    table: Table,
    entries: Arc<Layer>,
    tree: Arc<Figment>,
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
        /// The requested flag, without dashes.
        flag: String,
    },
    /// The row has another type than the requested type.
    #[error("--{flag} is a {kind}, and was asked for as {asked}")]
    WrongType {
        /// The requested flag, without dashes.
        flag: &'static str,
        /// The type of the setting.
        kind: &'static str,
        /// The requested Rust type.
        asked: &'static str,
    },
    /// The value does not fit the requested type.
    #[error("cannot read {setting}")]
    Unreadable {
        /// The flag or the path of the setting.
        setting: String,
        /// The error of figment, with the origin of the value.
        #[source]
        source: Box<figment::Error>,
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
        Self { table, entries: Arc::new(merged.entries), tree: Arc::new(merged.tree), gates, warnings, operands }
    }

    /// Returns the value of a setting by its flag (without dashes) or, if only a file can set it, by its path.
    ///
    /// # Errors
    ///
    /// If no row has the flag, or the row has another type.
    pub fn get<T: FromValue>(&self, flag: &str) -> Result<T, AccessError> {
        let row = self.table.find(flag).ok_or_else(|| AccessError::UnknownFlag { flag: flag.to_owned() })?;
        let (kind, asked) = (row.kind().name(), std::any::type_name::<T>());
        self.value(flag).and_then(T::from_value).ok_or(AccessError::WrongType { flag: row.name, kind, asked })
    }

    /// Returns the value of a typed setting.
    ///
    /// # Errors
    ///
    /// If no row has the name of the setting, or its value does not fit `T`.
    pub fn read<T: DeserializeOwned>(&self, setting: &Setting<T>) -> Result<T, AccessError> {
        let name = setting.name();
        let row = self.table.find(name).ok_or_else(|| AccessError::UnknownFlag { flag: name.to_owned() })?;
        let read = self.tree.extract_inner(&key_of(row));
        read.map_err(|source| AccessError::Unreadable { setting: row.label(), source: Box::new(source) })
    }

    /// The rows of all settings.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        self.table.rows()
    }

    /// Returns the value of a setting as data.
    #[must_use]
    pub fn value(&self, flag: &str) -> Option<&Value> {
        self.entries.get(flag).map(|entry| &entry.value)
    }

    /// The origin of the value of a setting.
    #[must_use]
    pub fn origin(&self, flag: &str) -> Option<&Origin> {
        self.entries.get(flag).map(|entry| &entry.origin)
    }

    /// Returns a section of the file, with its defaults, as a struct whose fields are renamed to the keys of the file.
    ///
    /// # Errors
    ///
    /// If no row is in that section, or its values do not fit the struct.
    pub fn section<T: DeserializeOwned>(&self, section: &str) -> Result<T, AccessError> {
        let read = self.tree.extract_inner(section);
        read.map_err(|source| AccessError::Section { section: section.to_owned(), source: Box::new(source) })
    }

    /// Returns `true` if the gate is on.
    #[must_use]
    pub fn enabled(&self, gate: &Gate) -> bool {
        self.gates.enabled(gate)
    }

    /// Returns the state of the feature gates.
    #[must_use]
    pub fn gates(&self) -> &Gates {
        &self.gates
    }

    /// The feature gates that something in the program reads.
    #[must_use]
    pub fn known_gates(&self) -> &[Gate] {
        self.table.gates()
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

    /// The defaults of the same settings.
    #[must_use]
    pub fn defaults(&self) -> Self {
        let merged = merge(self.table.rows(), Default::default());
        Self::new(self.table.clone(), merged, Gates::default(), Vec::new(), Vec::new())
    }

    /// The table that the settings are of.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// The values with their origins, by name.
    pub(crate) fn entries(&self) -> &Layer {
        &self.entries
    }
}
