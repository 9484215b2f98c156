//! Short descriptions of common types and fields, for `kubectl explain`.
//!
//! A type begins a line of `data/descriptions.txt`, its fields are indented: name, colon, text.

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(super) const TABLE: &str = include_str!("../../../data/descriptions.txt");

/// Descriptions by type and field; the empty field name is the type itself.
static DESCRIPTIONS: LazyLock<BTreeMap<&'static str, BTreeMap<&'static str, &'static str>>> = LazyLock::new(|| {
    let mut descriptions: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    let mut current = "";
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, text) = line.split_once(':').expect("a description must be a name, a colon and a text");
        if let Some(field) = name.strip_prefix(' ') {
            descriptions.entry(current).or_default().insert(field, text.trim());
        } else {
            current = name;
            let described = descriptions.entry(current).or_default();
            if !text.trim().is_empty() {
                described.insert("", text.trim());
            }
        }
    }
    descriptions
});

pub(super) fn of_type(name: &str) -> Option<&'static str> {
    of_field(name, "")
}

pub(super) fn of_field(name: &str, field: &str) -> Option<&'static str> {
    // Fields that all kinds share are described once.
    let shared = || DESCRIPTIONS.get("*").and_then(|fields| fields.get(field)).filter(|_| !field.is_empty());
    DESCRIPTIONS.get(name).and_then(|fields| fields.get(field)).or_else(shared).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn descriptions_are_of_types_and_fields_that_there_are() {
        for (name, fields) in DESCRIPTIONS.iter().filter(|(name, _)| **name != "*") {
            let of = schema::types().named(name).unwrap_or_else(|| panic!("{name} must be a type"));
            for field in fields.keys().filter(|field| !field.is_empty()) {
                assert!(of.field(field).is_some(), "{name} must have a field {field}");
            }
        }
    }

    #[test]
    fn every_served_kind_is_described_in_one_sentence() {
        for kind in crate::kinds::Kinds::built_in(false).iter() {
            let resource = &kind.resource;
            let of = schema::types().of_kind(&resource.group, &resource.version, &resource.kind);
            let text = of.and_then(|of| of_type(of.name));
            assert!(text.is_some_and(|text| text.ends_with('.')), "{resource} must be described");
        }
    }
}
