//! The table of settings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::gate::Gate;
use crate::help;
use crate::keys::Section;
use crate::row::{Row, printable};
use crate::table_error::{TableError, TableErrors};

/// Every setting of a program and every gate it knows, checked against each other. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Table {
    rows: Arc<[Row]>,
    gates: Arc<[Gate]>,
    keys: Arc<Section>,
}

impl Table {
    /// Makes a table of these rows, with the gates [`crate::gates::KNOWN`].
    ///
    /// # Errors
    ///
    /// Every violation at once: see [`TableError`].
    pub fn new(rows: impl IntoIterator<Item = Row>) -> Result<Self, TableErrors> {
        Self::with_gates(rows, crate::gates::KNOWN.iter().copied())
    }

    /// A table of these rows and gates.
    ///
    /// # Errors
    ///
    /// Every violation at once: see [`TableError`].
    pub fn with_gates(
        rows: impl IntoIterator<Item = Row>,
        gates: impl IntoIterator<Item = Gate>,
    ) -> Result<Self, TableErrors> {
        Self::checked(rows.into_iter().collect(), gates.into_iter().collect())
    }

    fn checked(rows: Arc<[Row]>, all_gates: Arc<[Gate]>) -> Result<Self, TableErrors> {
        let mut errors = Vec::new();
        let mut keys = Section::default();
        let mut flags = BTreeSet::new();
        let mut shorts = BTreeSet::from(['h']);
        for (number, row) in rows.iter().enumerate() {
            let flag = row.name;
            if row.flag().is_some_and(|flag| !is_flag(flag)) {
                errors.push(TableError::BadFlag { flag });
            }
            if !flags.insert(flag) {
                errors.push(TableError::DuplicateFlag { flag });
            }
            if let Some(short) = row.short
                && !(short.is_ascii_alphabetic() && shorts.insert(short))
            {
                errors.push(TableError::BadShort { short, flag });
            }
            if row.help.is_empty() || row.section.is_empty() {
                errors.push(TableError::Undescribed { flag });
            }
            if let Some(Err(reason)) = row.check.map(|check| check(&row.initial.value())) {
                errors.push(TableError::BadDefault { flag, reason });
            }
            if let Some(Err(error)) = row.path.map(|path| keys.insert(path, number)) {
                errors.push(error);
            }
        }
        let mut gates = BTreeSet::new();
        errors.extend(
            all_gates
                .iter()
                .filter(|gate| !gates.insert(gate.name))
                .map(|gate| TableError::DuplicateGate { gate: gate.name }),
        );
        if errors.is_empty() {
            Ok(Self { rows, gates: all_gates, keys: Arc::new(keys) })
        } else {
            Err(TableErrors(errors))
        }
    }

    /// Returns the rows, in the given order.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the gates, in the given order.
    #[must_use]
    pub fn gates(&self) -> &[Gate] {
        &self.gates
    }

    /// Returns the row with this flag or, if only a file can set it, this path.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Returns the row with this path in the file.
    pub(crate) fn with_path(&self, path: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.path.is_some_and(|own| own.is(path)))
    }

    pub(crate) fn flags(&self) -> impl Iterator<Item = &'static str> {
        self.rows.iter().filter_map(Row::flag)
    }

    pub(crate) fn row(&self, number: usize) -> &Row {
        self.rows.get(number).expect("the keys name rows of this table")
    }

    pub(crate) fn keys(&self) -> &Section {
        &self.keys
    }

    /// Returns the help: every flag that is not deprecated, under the headings that upstream prints. Lines are wrapped
    /// to `width` columns, if there is one.
    #[must_use]
    pub fn help(&self, width: Option<usize>) -> String {
        help::render(&self.rows, width)
    }

    /// The settings as tables in Markdown, one per section.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut sections: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in self.rows.iter() {
            sections.entry(row.section).or_default().push(row);
        }
        let pages = sections.into_iter().map(|(section, rows)| {
            let rows: String = rows.into_iter().map(markdown_row).collect();
            format!("## {section}\n\n{MARKDOWN_HEAD}{rows}\n")
        });
        pages.collect()
    }
}

const MARKDOWN_HEAD: &str = "\
| flag | type | default | variable | key in the file | what it does |
| --- | --- | --- | --- | --- | --- |
";

fn markdown_row(row: &Row) -> String {
    let code = |text: &str| format!("`{text}`");
    let (kind, default) = (row.kind().name(), printable(&row.initial.value()));
    let flag = row.flag().map(|flag| code(&format!("--{flag}"))).unwrap_or_default();
    let variable = row.variable().as_deref().map(code).unwrap_or_default();
    let path = row.path.map(|path| code(&path.to_string())).unwrap_or_default();
    let help = row.help.to_string().replace('|', "\\|");
    let deprecated = row.deprecated.map(|advice| format!(" Deprecated: {advice}.")).unwrap_or_default();
    let note = row.suffix();
    format!("| {flag} | {kind} | `{default}` | {variable} | {path} | {help}{note}{deprecated} |\n")
}

fn is_flag(flag: &str) -> bool {
    flag.starts_with(|c: char| c.is_ascii_lowercase())
        && flag.split('-').all(|word| !word.is_empty())
        && flag.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && !["help", "version"].contains(&flag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks;
    use crate::gate::GateStage;
    use crate::row::Initial;

    fn row(flag: &'static str) -> Row {
        Row::new(flag, "Test", Initial::Int32(0)).help("A setting.")
    }

    #[test]
    fn every_violation_is_returned_at_once() {
        let rows = [
            row("twice").path("A.B"),
            row("twice").path("A.B"),
            row("help"),
            row("under_score"),
            row("a--b"),
            row("x").short('h'),
            row("y").short('-'),
            row("quiet").help(""),
            row("zero").check(checks::positive),
            row("deep").path("A.B.C"),
        ];
        let gate = Gate { name: "G", default: false, stage: GateStage::Alpha, locked: false };
        let TableErrors(errors) = Table::with_gates(rows, [gate, gate]).expect_err("nearly every row is wrong");
        assert_eq!(
            errors,
            [
                TableError::DuplicateFlag { flag: "twice" },
                TableError::DuplicatePath { path: "A.B".into() },
                TableError::BadFlag { flag: "help" },
                TableError::BadFlag { flag: "under_score" },
                TableError::BadFlag { flag: "a--b" },
                TableError::BadShort { short: 'h', flag: "x" },
                TableError::BadShort { short: '-', flag: "y" },
                TableError::Undescribed { flag: "quiet" },
                TableError::BadDefault { flag: "zero", reason: "must be greater than zero".to_owned() },
                TableError::SettingIsSection { path: "A.B.C".into() },
                TableError::DuplicateGate { gate: "G" },
            ]
        );
    }
}
