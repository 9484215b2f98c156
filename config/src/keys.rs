//! The keys of the configuration file as a tree, and their two spellings.

use std::collections::BTreeMap;

use crate::row::KeyPath;
use crate::table_error::TableError;

/// The keys of one section of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section(BTreeMap<&'static str, Key>);

/// The meaning of a key.
#[derive(Debug, Clone)]
pub(crate) enum Key {
    /// A section with keys of its own.
    Section(Section),
    /// A setting, by its place in the table.
    Setting(usize),
}

impl Section {
    /// The key in its own spelling and its meaning, by either spelling.
    pub(crate) fn find(&self, given: &str) -> Option<(&'static str, &Key)> {
        let exact = self.0.get_key_value(given);
        exact.or_else(|| self.0.iter().find(|(key, _)| lower_camel(key) == given)).map(|(key, meaning)| (*key, meaning))
    }

    /// Every spelling that a file may use.
    pub(crate) fn spellings(&self) -> Vec<String> {
        self.0.keys().flat_map(|key| [(*key).to_owned(), lower_camel(key)]).collect()
    }

    /// The keys in their own spelling, sorted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &Key)> {
        self.0.iter().map(|(key, meaning)| (*key, meaning))
    }

    /// Adds the key of a setting, with the sections on its way.
    pub(crate) fn insert(&mut self, path: KeyPath, setting: usize) -> Result<(), TableError> {
        let mut section = self;
        let mut segments = path.segments().peekable();
        while let Some(segment) = segments.next() {
            if !is_key(segment) {
                return Err(TableError::BadPath { path: path.to_string() });
            }
            let clash = |key: &&str| **key != *segment && lower_camel(key) == lower_camel(segment);
            if let Some(other) = section.0.keys().copied().find(|key| clash(key)) {
                return Err(TableError::SpellingClash { path: path.to_string(), other });
            }
            let is_last = segments.peek().is_none();
            match section.0.get(segment) {
                None => drop(section.0.insert(segment, if is_last { Key::Setting(setting) } else { Key::section() })),
                Some(Key::Setting(_)) if is_last => return Err(TableError::DuplicatePath { path: path.to_string() }),
                Some(Key::Section(_)) if !is_last => {}
                Some(Key::Setting(_) | Key::Section(_)) => {
                    return Err(TableError::SettingIsSection { path: path.to_string() });
                }
            }
            section = match section.0.get_mut(segment) {
                Some(Key::Section(inner)) => inner,
                Some(Key::Setting(_)) | None => break,
            };
        }
        Ok(())
    }
}

impl Key {
    fn section() -> Self {
        Self::Section(Section::default())
    }
}

fn is_key(segment: &str) -> bool {
    segment.starts_with(|c: char| c.is_ascii_alphabetic())
        && segment.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !["apiVersion", "kind"].contains(&lower_camel(segment).as_str())
}

/// The key as it would be spelled in a Kubernetes object.
///
/// The run of capitals at its start is lowered, except for the last of a longer run when a word begins there:
/// `ConcurrentRSSyncs` becomes `concurrentRSSyncs`, `CSRSigningController` becomes `csrSigningController`.
pub(crate) fn lower_camel(key: &str) -> String {
    let capitals = key.bytes().take_while(u8::is_ascii_uppercase).count();
    let word_follows = key.as_bytes().get(capitals).is_some_and(u8::is_ascii_lowercase);
    let lowered = if capitals > 1 && word_follows { capitals - 1 } else { capitals };
    let (head, tail) = key.split_at(lowered);
    head.to_ascii_lowercase() + tail
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_run_of_capitals_is_lowered_up_to_the_next_word() {
        let cases = [
            ("ConcurrentRSSyncs", "concurrentRSSyncs"),
            ("CSRSigningController", "csrSigningController"),
            ("HPAController", "hpaController"),
            ("NodeIPAMController", "nodeIPAMController"),
            ("GCIgnoredResources", "gcIgnoredResources"),
            ("PVClaimBinderSyncPeriod", "pvClaimBinderSyncPeriod"),
            ("Name", "name"),
            ("CIDR", "cidr"),
            ("qps", "qps"),
            ("disableForceDetachOnTimeout", "disableForceDetachOnTimeout"),
        ];
        for (key, lowered) in cases {
            assert_eq!(lower_camel(key), lowered);
        }
    }

    #[test]
    fn clashing_paths_are_refused() {
        let cases = [
            (&["A.B", "A.B"][..], TableError::DuplicatePath { path: "A.B".into() }),
            (&["A.B", "A"], TableError::SettingIsSection { path: "A".into() }),
            (&["A", "A.B"], TableError::SettingIsSection { path: "A.B".into() }),
            (&["A.Name", "A.name"], TableError::SpellingClash { path: "A.name".into(), other: "Name" }),
            (&["Kind"], TableError::BadPath { path: "Kind".into() }),
            (&["A..B"], TableError::BadPath { path: "A..B".into() }),
            (&["A.b-c"], TableError::BadPath { path: "A.b-c".into() }),
        ];
        for (paths, expected) in cases {
            let mut section = Section::default();
            let clash =
                paths.iter().enumerate().find_map(|(row, path)| section.insert(KeyPath::whole(path), row).err());
            assert_eq!(clash, Some(expected), "{paths:?}");
        }
    }

    proptest! {
        #[test]
        fn both_spellings_lead_back_to_the_key(names in prop::collection::btree_set("[A-Z]{1,4}[a-z]{1,3}[A-Z]{0,3}", 1..6)) {
            // The table wants constants; a test may leak a few bytes.
            let names: Vec<&'static str> = names.into_iter().map(|name| &*name.leak()).collect();
            let mut section = Section::default();
            for (row, name) in names.iter().enumerate() {
                // Rows with equal spellings are refused, so that the section has only the first.
                if section.insert(KeyPath::whole(name), row).is_ok() {
                    for spelling in [(*name).to_owned(), lower_camel(name)] {
                        prop_assert!(matches!(section.find(&spelling), Some((key, Key::Setting(found))) if key == *name && *found == row));
                    }
                }
            }
        }
    }
}
