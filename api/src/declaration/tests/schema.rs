//! Upstream's types, from the table of the sandbox.

use std::collections::HashMap;

use crate::protobuf::{Field, Kind, Message, Slot};

const TABLE: &str = include_str!("../../../../sandbox/apiserver/data/schema.txt");

/// A field of one of upstream's types.
#[derive(Debug, Clone, Copy)]
pub(super) struct Upstream {
    /// Its type, in the words of the table.
    pub(super) type_: &'static str,
    /// Whether the Go field is a pointer, which is absent in both forms if it is not set.
    pub(super) is_pointer: bool,
    /// Whether Go has a struct that is no pointer, which is always there.
    pub(super) is_embedded: bool,
    /// Whether JSON has the field even if it is empty.
    pub(super) is_always_written: bool,
    number: (u32, Option<u32>),
}

/// The fields of each type, by name.
pub(super) struct Schema(HashMap<&'static str, HashMap<&'static str, Upstream>>);

impl Schema {
    pub(super) fn read() -> Self {
        let (mut types, mut kinds) = (HashMap::new(), Vec::new());
        let mut fields: &mut HashMap<_, _> = types.entry("").or_default();
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.trim_start().split(' ');
            let name = words.next().expect("a line has a word");
            if line.starts_with(' ') {
                fields.insert(name, field(words.next().expect("a field has a type"), words));
            } else {
                // A kind is found by its group, version and kind too.
                if let Some(kind) = words.find_map(|mark| mark.strip_prefix("kind:")) {
                    kinds.push((kind, name));
                }
                fields = types.entry(name).or_default();
            }
        }
        for (kind, name) in kinds {
            types.insert(kind, types[name].clone());
        }
        Self(types)
    }

    /// The field of that JSON name.
    pub(super) fn field(&self, of: &str, name: &str) -> Upstream {
        let fields = self.0.get(of).unwrap_or_else(|| panic!("upstream has no type {of}"));
        *fields.get(name).unwrap_or_else(|| panic!("upstream's {of} has no field {name:?}"))
    }

    /// Asserts that upstream has each field of the message, with that number and of that type.
    pub(super) fn assert_has(&self, message: &Message, of: &str) {
        self.assert_has_within(message, of, None);
    }

    fn assert_has_within(&self, message: &Message, of: &str, within: Option<u32>) {
        for field in message {
            let Field { number, name, kind, .. } = *field;
            if let (true, Kind::One(message)) = (name.is_empty(), kind) {
                self.assert_has_within(message, of, Some(number));
                continue;
            }
            let upstream = self.field(of, name);
            let expected = within.map_or((number, None), |within| (within, Some(number)));
            assert_eq!(upstream.number, expected, "the number of {name:?} in {of}");
            self.assert_is(kind, upstream.type_, &format!("{name:?} in {of}"));
        }
    }

    fn assert_is(&self, kind: Kind, type_: &str, what: &str) {
        let inner = || &type_[1..type_.len() - 1];
        match kind {
            Kind::Text => assert_eq!(type_, "string", "{what}"),
            Kind::Integer => assert!(["int32", "int64"].contains(&type_), "{what}: {type_}"),
            Kind::Flag => assert_eq!(type_, "bool", "{what}"),
            Kind::Time => assert_eq!(type_, "time", "{what}"),
            Kind::Bytes => assert_eq!(type_, "bytes", "{what}"),
            Kind::IntOrString => assert_eq!(type_, "int-or-string", "{what}"),
            Kind::Quantity => assert_eq!(type_, "quantity", "{what}"),
            Kind::One(message) => self.assert_has(message, type_),
            Kind::List(kind) => {
                assert!(type_.starts_with('['), "{what}: {type_}");
                self.assert_is(*kind, inner(), what);
            }
            Kind::Map(kind) => {
                assert!(type_.starts_with('{'), "{what}: {type_}");
                self.assert_is(*kind, inner(), what);
            }
        }
    }
}

fn field(type_: &'static str, marks: std::str::Split<'static, char>) -> Upstream {
    let mut read =
        Upstream { type_, is_pointer: false, is_embedded: false, is_always_written: false, number: (0, None) };
    for mark in marks {
        match mark {
            "pointer" => read.is_pointer = true,
            "={}" => read.is_embedded = true,
            _ => read.is_always_written |= mark.starts_with('='),
        }
        if let Some(number) = mark.strip_prefix('#') {
            // A struct embedded in an embedded struct has three numbers, and no view.
            let parse = |text: &str| text.parse().unwrap_or_default();
            read.number = match number.split_once('.') {
                Some((within, number)) => (parse(within), Some(parse(number))),
                None => (parse(number), None),
            };
        }
    }
    read
}

/// Returns `true` if a field lies in a message that JSON does not have.
pub(super) fn is_inlined(field: &Field) -> bool {
    field.slot == Slot::Section && field.name.is_empty()
}
