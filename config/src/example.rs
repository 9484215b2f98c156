//! The annotated example of a configuration file.

use crate::file::{API_VERSION, KIND};
use crate::keys::{Key, Section};
use crate::render::yaml;
use crate::row::Row;
use crate::table::Table;

/// The width of a line of comments.
const WIDTH: usize = 100;

impl Table {
    /// A configuration file with every key at its default, each explained by a comment. It loads.
    #[must_use]
    pub fn example_file(&self) -> String {
        let mut lines = vec![format!("apiVersion: {API_VERSION}"), format!("kind: {KIND}")];
        self.example_section(self.keys(), "", &mut lines);
        lines.join("\n") + "\n"
    }

    fn example_section(&self, section: &Section, indent: &str, lines: &mut Vec<String>) {
        for (key, meaning) in section.iter() {
            match meaning {
                Key::Section(inner) => {
                    lines.push(format!("{indent}{key}:"));
                    self.example_section(inner, &format!("{indent}  "), lines);
                }
                Key::Setting(row) => {
                    let row = self.row(*row);
                    lines.extend(wrapped(&explanation(row), &format!("{indent}# ")));
                    lines.push(format!("{indent}{key}: {}", yaml(&row.initial.value())));
                }
            }
        }
    }
}

/// Explains a setting, its flag and its type.
fn explanation(row: &Row) -> String {
    let deprecated = row.deprecated.map(|advice| format!(" Deprecated: {advice}.")).unwrap_or_default();
    let flag = row.flag().map_or_else(|| "no flag".to_owned(), |flag| format!("--{flag}"));
    format!("{}{}{deprecated} ({flag}, {})", row.help, row.suffix(), row.kind().name())
}

/// Lines of at most [`WIDTH`] characters, unless a word is longer.
fn wrapped(text: &str, prefix: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= WIDTH) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(format!("{prefix}{word}")),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Initial;

    #[test]
    fn every_key_is_explained_and_has_its_default() {
        const HELP: &str = "What it does, in a sentence that is long enough to be wrapped where the line would else be \
                            longer than all others.";
        let rows = [
            Row::new("a-b", "A", Initial::Strings(&["*"])).path("A.B").help(HELP).deprecated("do not"),
            Row::new("c", "A", Initial::Int32(1)).help("No key."),
            Row::in_file("A.C.D", "A", Initial::Bool(true)).help("Only a key."),
        ];
        let table = Table::with_gates(rows, []).expect("the rows make a table");
        let expected = "\
apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1
kind: KubeControllerManagerConfiguration
A:
  # What it does, in a sentence that is long enough to be wrapped where the line would else be
  # longer than all others. Deprecated: do not. (--a-b, strings)
  B: [\"*\"]
  C:
    # Only a key. (no flag, bool)
    D: true
";
        assert_eq!(table.example_file(), expected);
    }
}
