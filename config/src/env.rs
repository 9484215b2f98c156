//! The environment variables of settings.

use std::ffi::OsString;

use crate::did_you_mean::nearest;
use crate::error::{ConfigError, Origin, Problem, Warning, excerpt};
use crate::merge::{Entry, Reading};
use crate::row::{Row, VARIABLE_PREFIX};
use crate::table::Table;

/// Reads the variables that begin with [`VARIABLE_PREFIX`], in the order of their names.
///
/// An unknown variable is rejected when it resembles a known one, and otherwise ignored with a warning: Kubernetes
/// itself puts `KCM_SERVICE_HOST` and the like into pods beside a service named `kcm`.
pub(crate) fn read(table: &Table, variables: &[(OsString, OsString)]) -> Reading {
    let mut reading = Reading::default();
    let mut ours: Vec<_> =
        variables.iter().filter(|(name, _)| name.as_encoded_bytes().starts_with(VARIABLE_PREFIX.as_bytes())).collect();
    ours.sort();
    let known: Vec<(String, &Row)> =
        table.rows().iter().filter_map(|row| row.variable().map(|variable| (variable, row))).collect();
    for (name, value) in ours {
        let (name, value) = (name.to_string_lossy().into_owned(), value.to_str());
        let origin = Origin::Variable(name.clone());
        let Some((_, row)) = known.iter().find(|(variable, _)| *variable == name) else {
            match nearest(&name, known.iter().map(|(variable, _)| variable.as_str())) {
                Some(nearest) => {
                    let problem = Problem::UnknownVariable { nearest: nearest.to_owned() };
                    reading.errors.push(ConfigError { origin, problem });
                }
                None => reading.warnings.push(Warning::IgnoredVariable { name }),
            }
            continue;
        };
        match value.map(|text| (text, row.kind().parse(text))) {
            Some((_, Some(value))) => drop(reading.layer.insert(row.name, Entry { value, origin })),
            Some((text, None)) => {
                let (setting, given) = (row.label(), excerpt(text));
                let problem = Problem::WrongType { setting, given, expected: row.kind().expected().to_owned() };
                reading.errors.push(ConfigError { origin, problem });
            }
            None => reading.errors.push(ConfigError { origin, problem: Problem::NotText }),
        }
    }
    reading
}
