//! The parser of the command line, compatible with pflag.
//!
//! A parser of its own, because libraries stop at the first error, while all are reported here, and manifests rely on
//! pflag's grammar (`--controllers -foo` takes its value from the next argument, even if that begins with a dash; `_`
//! stands for `-`; a boolean takes a value only after `=`).

use std::ffi::OsString;

use crate::did_you_mean::nearest;
use crate::error::{ConfigError, Origin, Problem, excerpt};
use crate::merge::{Entry, Reading};
use crate::removed;
use crate::row::Row;
use crate::table::Table;
use crate::value::{Kind, Value, parse_bool};

/// The parsed command line.
pub(crate) struct CommandLine {
    pub(crate) reading: Reading,
    pub(crate) asks_for_help: bool,
    pub(crate) asks_for_version: Option<VersionRequest>,
    /// Positional arguments; empty if the command takes none.
    pub(crate) operands: Vec<String>,
}

/// Form of the output of `--version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionRequest {
    /// `--version`: as a sentence.
    Short,
    /// `--version=raw`: with all facts of the build.
    Raw,
}

/// Parses the arguments after the name of the program. Positional arguments are operands or errors.
pub(crate) fn read(table: &Table, arguments: &[OsString], takes_operands: bool) -> CommandLine {
    let mut scan = Scan {
        table,
        rest: arguments,
        line: CommandLine {
            reading: Reading::default(),
            asks_for_help: false,
            asks_for_version: None,
            operands: Vec::new(),
        },
        takes_operands,
        bare_boolean: None,
    };
    while let Some((argument, rest)) = scan.rest.split_first() {
        scan.rest = rest;
        scan.argument(argument);
    }
    scan.line
}

struct Scan<'a> {
    table: &'a Table,
    rest: &'a [OsString],
    line: CommandLine,
    takes_operands: bool,
    /// The boolean flag before the next word, which may be meant as its value.
    bare_boolean: Option<String>,
}

impl<'a> Scan<'a> {
    fn argument(&mut self, argument: &'a OsString) {
        let after = self.bare_boolean.take();
        let Some(text) = argument.to_str() else {
            return self.error(&argument.to_string_lossy(), Problem::NotText);
        };
        if text == "--" {
            for positional in std::mem::take(&mut self.rest) {
                self.positional(&positional.to_string_lossy(), None);
            }
        } else if let Some(long) = text.strip_prefix("--") {
            self.long(text, long);
        } else if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            self.letters(text, letters);
        } else {
            self.positional(text, after);
        }
    }

    fn positional(&mut self, text: &str, after: Option<String>) {
        if self.takes_operands {
            self.line.operands.push(text.to_owned());
        } else {
            self.error(text, Problem::Positional { after });
        }
    }

    fn long(&mut self, argument: &'a str, long: &'a str) {
        let (name, value) = split_value(long);
        let typed = value.map_or(argument, |value| &argument[..argument.len() - value.len() - 1]);
        let normalized = name.replace('_', "-");
        if normalized == "help" {
            self.line.asks_for_help = true;
        } else if normalized == "version" {
            self.version(typed, value.unwrap_or("true"));
        } else if let Some(row) = self.table.find(&normalized).filter(|row| row.flag().is_some()) {
            self.flag(row, typed, value);
        } else if let Some(advice) = removed::advice(&normalized) {
            self.skip_value(value);
            self.error(typed, Problem::RemovedFlag { advice });
        } else {
            let nearest = nearest(&normalized, self.table.flags()).map(|flag| format!("--{flag}"));
            self.skip_value(value);
            self.error(typed, Problem::UnknownFlag { nearest });
        }
    }

    fn version(&mut self, typed: &str, value: &str) {
        let (setting, given) = ("--version".to_owned(), excerpt(value));
        match (value, parse_bool(value)) {
            ("raw", _) => self.line.asks_for_version = Some(VersionRequest::Raw),
            (_, Some(asks)) => self.line.asks_for_version = asks.then_some(VersionRequest::Short),
            (_, None) if value.starts_with('v') => {
                let reason = "cannot change the version that is reported; --version=raw prints it".to_owned();
                self.error(typed, Problem::Refused { setting, given, reason });
            }
            (_, None) => {
                let expected = "true, false or raw".to_owned();
                self.error(typed, Problem::WrongType { setting, given, expected });
            }
        }
    }

    /// `-v=2`, `-v2`, `-v 2`, or several letters that take no value.
    fn letters(&mut self, argument: &'a str, letters: &'a str) {
        let mut rest = letters;
        while let Some(letter) = rest.chars().next() {
            let before = rest;
            rest = &rest[letter.len_utf8()..];
            if letter == 'h' {
                self.line.asks_for_help = true;
                continue;
            }
            let Some(row) = self.table.rows().iter().find(|row| row.short == Some(letter)) else {
                let long = split_value(before).0.replace('_', "-");
                let nearest = nearest(&long, self.table.flags()).map(|flag| format!("--{flag}"));
                self.skip_value(split_value(letters).1);
                return self.error(split_value(argument).0, Problem::UnknownShorthand { letter, nearest });
            };
            let typed = &argument[..argument.len() - rest.len()];
            let attached = match rest.strip_prefix('=') {
                // `-v=` is a value of one character, as in pflag.
                Some(value) if !value.is_empty() => Some(value),
                _ if row.kind() != Kind::Bool && !rest.is_empty() => Some(rest),
                _ => None,
            };
            self.flag(row, typed, attached);
            if attached.is_some() {
                return;
            }
        }
    }

    /// Parses a known flag: takes its value and adds it to the layer.
    fn flag(&mut self, row: &Row, typed: &str, attached: Option<&str>) {
        let expected = row.kind().expected().to_owned();
        let text = match (attached, row.kind()) {
            (Some(value), _) => value,
            (None, Kind::Bool) => {
                self.bare_boolean = Some(typed.to_owned());
                "true"
            }
            (None, _) => match self.rest.split_first() {
                Some((next, rest)) => {
                    self.rest = rest;
                    let Some(value) = next.to_str() else { return self.error(typed, Problem::NotText) };
                    value
                }
                None => return self.error(typed, Problem::MissingValue { expected }),
            },
        };
        if let Some(value) = row.kind().parse(text) {
            return self.add(row, typed, value);
        }
        let (setting, given) = (row.label(), excerpt(text));
        self.error(typed, Problem::WrongType { setting, given, expected });
    }

    /// Adds a value: the last one counts, except that lists and maps grow.
    fn add(&mut self, row: &Row, typed: &str, value: Value) {
        let origin = Origin::Argument(typed.to_owned());
        let layer = &mut self.line.reading.layer;
        let value = match layer.remove(row.name) {
            Some(before) => before.value.and(value),
            None => value,
        };
        layer.insert(row.name, Entry { value, origin });
    }

    /// Skips the word after an unknown flag, which is likely its value and not a second error.
    fn skip_value(&mut self, attached: Option<&str>) {
        if attached.is_none()
            && let Some((next, rest)) = self.rest.split_first()
            && !next.as_encoded_bytes().starts_with(b"-")
        {
            self.rest = rest;
        }
    }

    fn error(&mut self, typed: &str, problem: Problem) {
        let origin = Origin::Argument(typed.to_owned());
        self.line.reading.errors.push(ConfigError { origin, problem });
    }
}

fn split_value(argument: &str) -> (&str, Option<&str>) {
    match argument.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (argument, None),
    }
}
