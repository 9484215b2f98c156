//! Errors in a set of rows.

use std::fmt;

/// A violation that makes a set of rows invalid. It is a mistake in the program, not of an operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// A flag is not lower-case words joined by single dashes, or is taken by the help.
    #[error("the flag --{flag} is not well formed")]
    BadFlag {
        /// The flag without its dashes.
        flag: &'static str,
    },
    /// Two rows have one flag.
    #[error("the flag --{flag} is in the table twice")]
    DuplicateFlag {
        /// The flag without its dashes.
        flag: &'static str,
    },
    /// A one-letter flag is taken, or is no letter.
    #[error("the one-letter flag -{short} of --{flag} is taken or no letter")]
    BadShort {
        /// The letter that is taken or invalid.
        short: char,
        /// The second flag that wants it.
        flag: &'static str,
    },
    /// A row says nothing about itself, or has no section.
    #[error("the flag --{flag} has no help or no section")]
    Undescribed {
        /// The flag without its dashes.
        flag: &'static str,
    },
    /// The validation of a row refuses its own default.
    #[error("the default of --{flag} is refused: the value {reason}")]
    BadDefault {
        /// The flag without its dashes.
        flag: &'static str,
        /// The error of the validation.
        reason: String,
    },
    /// A path is not letters and digits joined by dots, or has a reserved key.
    #[error("the path {path} is not well formed")]
    BadPath {
        /// The malformed path of a setting.
        path: String,
    },
    /// Two rows have one path.
    #[error("the path {path} is in the table twice")]
    DuplicatePath {
        /// The path of both settings.
        path: String,
    },
    /// A path leads through a setting, or ends at a section.
    #[error("the path {path} is a setting in one row and a section in another")]
    SettingIsSection {
        /// The second of the paths.
        path: String,
    },
    /// Two keys of one section are spelled alike in lower camel case.
    #[error("the path {path} has a spelling in common with the key {other}")]
    SpellingClash {
        /// The second of the paths.
        path: String,
        /// The key that was there before.
        other: &'static str,
    },
    /// Two gates have one name.
    #[error("the feature gate {gate} is in the table twice")]
    DuplicateGate {
        /// Name of the feature gate.
        gate: &'static str,
    },
}

/// Every violation in a set of rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct TableErrors(pub Vec<TableError>);

impl fmt::Display for TableErrors {
    /// One violation per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(TableError::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}
