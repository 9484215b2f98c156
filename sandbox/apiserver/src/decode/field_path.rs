//! The path to a field, as messages name it: `spec.containers[0].image`.

use std::fmt;

/// The path of the value that is being read.
#[derive(Debug, Default)]
pub(super) struct FieldPath(String);

impl FieldPath {
    /// Appends a key; returns what [`FieldPath::leave`] takes to remove it.
    pub(super) fn enter(&mut self, key: &str) -> usize {
        let length = self.0.len();
        if length > 0 {
            self.0.push('.');
        }
        self.0.push_str(key);
        length
    }

    /// Appends the position of an item of a list; returns what [`FieldPath::leave`] takes to remove it.
    pub(super) fn enter_item(&mut self, index: usize) -> usize {
        let length = self.0.len();
        let position = format!("[{index}]");
        self.0.push_str(&position);
        length
    }

    /// Removes what was appended.
    pub(super) fn leave(&mut self, length: usize) {
        self.0.truncate(length);
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Notes a field that a strict reader refuses, up to as many as upstream reports.
pub(super) fn note(what: &str, path: &FieldPath, messages: &mut Vec<String>) {
    if messages.len() < 100 {
        messages.push(format!("{what} field {:?}", path.to_string()));
    }
}
