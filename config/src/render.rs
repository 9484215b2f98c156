//! Effective settings as text: aligned lines, a configuration file, and JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Number, json};

use crate::effective::Effective;
use crate::file::{API_VERSION, KIND};
use crate::keys::{Key, Section};
use crate::merge::Entry;
use crate::row::{Row, printable};
use crate::value::Value;

impl Effective {
    /// Returns every setting with its value and its origin, aligned, sorted by name. Settings without effect are
    /// labelled.
    #[must_use]
    pub fn render(&self) -> String {
        let lines: Vec<[String; 3]> = self
            .entries()
            .iter()
            .map(|(name, entry)| {
                [self.label(name), printable(&entry.value), format!("{}{}", entry.origin, self.suffix(name))]
            })
            .collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let (flags, values) = (width(0), width(1));
        let aligned = |[flag, value, origin]: &[String; 3]| format!("{flag:flags$}  {value:values$}  {origin}\n");
        lines.iter().map(aligned).collect()
    }

    /// Returns the settings as a configuration file. Loading it gives the same values. Settings without a key are left
    /// out.
    #[must_use]
    pub fn render_yaml(&self) -> String {
        self.yaml_file(|_, _| String::new())
    }

    /// Returns the settings as a configuration file, each with its origin as a comment. Settings without a key follow
    /// as comments.
    #[must_use]
    pub fn render_yaml_with_origins(&self) -> String {
        let comment =
            |row: &Row, entry: &Entry| format!("  # {}{}", in_a_comment(&entry.origin.to_string()), row.suffix());
        let file = self.yaml_file(comment);
        let outside = self.table().rows().iter().filter(|row| row.path.is_none());
        let mut lines: Vec<String> = outside
            .filter_map(|row| {
                let entry = self.entries().get(row.name)?;
                let (value, origin) = (quoted(&entry.value.to_string()), in_a_comment(&entry.origin.to_string()));
                Some(format!("# {}={value}  # {origin}{}\n", row.label(), row.suffix()))
            })
            .collect();
        lines.sort();
        format!("{file}# No keys of this file:\n{}", lines.concat())
    }

    /// The settings as a configuration file in JSON, indented; upstream's `/configz` prints an equal object for equal
    /// settings.
    #[must_use]
    pub fn render_json(&self) -> String {
        let mut file =
            Map::from_iter([("apiVersion".to_owned(), API_VERSION.into()), ("kind".to_owned(), KIND.into())]);
        file.append(&mut self.json_section(self.table().keys()));
        indented(&file.into())
    }

    /// Every setting with its value and its origin, as a list of objects with `name`, `path`, `value`, `origin` and
    /// `note`, sorted by name. The note is `null`, or "No effect yet.".
    #[must_use]
    pub fn render_json_with_origins(&self) -> String {
        let setting = |(name, entry): (&&'static str, &Entry)| {
            let path = self.table().find(name).and_then(|row| row.path).map(|path| path.to_string());
            let (value, origin) = (json_value(&entry.value), entry.origin.to_string());
            let note = self.table().find(name).and_then(Row::note);
            json!({ "name": self.label(name), "path": path, "value": value, "origin": origin, "note": note })
        };
        indented(&self.entries().iter().map(setting).collect())
    }

    fn label(&self, name: &str) -> String {
        self.table().find(name).map_or_else(|| name.to_owned(), Row::label)
    }

    fn entry(&self, row: &Row) -> &Entry {
        self.entries().get(row.name).expect("every row has a value")
    }

    fn suffix(&self, name: &str) -> String {
        self.table().find(name).map(Row::suffix).unwrap_or_default()
    }

    fn yaml_file(&self, comment: impl Fn(&Row, &Entry) -> String) -> String {
        let mut lines = vec![format!("apiVersion: {API_VERSION}"), format!("kind: {KIND}")];
        self.yaml_section(self.table().keys(), "", &comment, &mut lines);
        lines.join("\n") + "\n"
    }

    fn yaml_section(
        &self,
        section: &Section,
        indent: &str,
        comment: &impl Fn(&Row, &Entry) -> String,
        lines: &mut Vec<String>,
    ) {
        for (key, meaning) in section.iter() {
            match meaning {
                Key::Section(inner) => {
                    lines.push(format!("{indent}{key}:"));
                    self.yaml_section(inner, &format!("{indent}  "), comment, lines);
                }
                Key::Setting(row) => {
                    let row = self.table().row(*row);
                    let entry = self.entry(row);
                    lines.push(format!("{indent}{key}: {}{}", yaml(&entry.value), comment(row, entry)));
                }
            }
        }
    }

    fn json_section(&self, section: &Section) -> Map<String, serde_json::Value> {
        let entry = |(key, meaning): (&'static str, &Key)| {
            let value = match meaning {
                Key::Section(inner) => self.json_section(inner).into(),
                Key::Setting(row) => json_value(&self.entry(self.table().row(*row)).value),
            };
            (key.to_owned(), value)
        };
        section.iter().map(entry).collect()
    }
}

fn indented(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

/// Escapes text so that it does not end its comment.
fn in_a_comment(text: &str) -> String {
    text.replace(|character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}'), "?")
}

/// The value as the file takes it.
fn json_value(value: &Value) -> serde_json::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Int32(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        // The shortest number that stands for the same value: 20 and not 20.0, 0.1 and not 0.10000000149011612.
        Value::Float32(_) | Value::Float64(_) => {
            value.to_string().parse::<Number>().map_or(serde_json::Value::Null, Into::into)
        }
        Value::String(text) => text.as_str().into(),
        Value::Duration(_) | Value::Ip(_) | Value::Quantity(_) => value.to_string().into(),
        Value::Strings(items) => items.as_slice().into(),
        Value::Int32s(items) => items.as_slice().into(),
        Value::CertKeys(items) => items.iter().map(ToString::to_string).collect(),
        Value::ModuleLevels(items) => items.iter().map(ToString::to_string).collect(),
        Value::Map(pairs) => json_map(pairs),
        Value::Objects(items) => items.iter().map(json_map).collect(),
    }
}

fn json_map(pairs: &BTreeMap<String, String>) -> serde_json::Value {
    pairs.iter().map(|(key, value)| (key.clone(), value.as_str())).collect()
}

/// The value as YAML takes it on one line.
pub(crate) fn yaml(value: &Value) -> String {
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

/// Quotes text, and escapes every character that some YAML reader would change.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        ' '..='~' => c.to_string(),
        '\u{a0}'..='\u{d7ff}' if !matches!(c, '\u{2028}' | '\u{2029}') => c.to_string(),
        _ => format!("\\U{:08x}", u32::from(c)),
    });
    format!("\"{}\"", escaped.collect::<String>())
}
