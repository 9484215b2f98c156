//! Reads the table of types. It is part of the program, so a line that does not fit is our mistake and panics; the
//! tests read all of it.

use std::collections::BTreeMap;

use super::{Empty, Field, ListKind, Patch, Struct, StructId, Type, Types};

pub(super) fn types(table: &'static str) -> Types {
    let lines: Vec<&'static str> = table.lines().filter(|line| !line.starts_with('#')).collect();
    let names = lines.iter().filter(|line| !line.starts_with(' ')).map(|line| first_word(line));
    let by_name: BTreeMap<&'static str, usize> = names.enumerate().map(|(at, name)| (name, at)).collect();
    let mut types = Types { structs: Vec::new(), by_kind: BTreeMap::new(), by_name };
    for line in lines {
        if let Some(line) = line.strip_prefix(' ') {
            let field = field(line, &types.by_name);
            types.structs.last_mut().expect("a field must follow a type").fields.push(field);
        } else {
            let begun = begin(line);
            types.by_kind.extend(begun.kind.map(|kind| (kind, types.structs.len())));
            types.structs.push(begun);
        }
    }
    for found in &mut types.structs {
        found.fields.sort_by_key(|field| field.name);
    }
    types
}

fn first_word(line: &'static str) -> &'static str {
    line.split(' ').next().unwrap_or_default()
}

fn begin(line: &'static str) -> Struct {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let mut begun = Struct { name, kind: None, atomic: false, fields: Vec::new() };
    for mark in words {
        match mark.split_once(':') {
            None if mark == "atomic" => begun.atomic = true,
            Some(("kind", kind)) => {
                let parts: Vec<&'static str> = kind.split('/').collect();
                let [group, version, kind] = parts[..] else { panic!("a kind must be group/version/Kind: {line}") };
                begun.kind = Some((group, version, kind));
            }
            _ => panic!("the mark {mark} of a type is not known: {line}"),
        }
    }
    begun
}

fn field(line: &'static str, by_name: &BTreeMap<&'static str, usize>) -> Field {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let of = type_of(words.next().unwrap_or_default(), by_name);
    let mut field = Field {
        name,
        of,
        required: false,
        default: None,
        list: ListKind::Atomic,
        atomic: false,
        patch: Patch::default(),
        empty: Empty::default(),
        go: None,
        number: None,
    };
    for mark in words {
        match mark.split_once(':') {
            // A default may hold a colon, a mark never begins with an equals sign.
            _ if mark.starts_with('=') => {
                field.default = Some(serde_json::from_str(&mark[1..]).expect("a default must be JSON"));
            }
            None if mark.starts_with('#') => field.number = mark.get(1..),
            None if mark == "!" => field.required = true,
            None if mark == "set" => field.list = ListKind::Set,
            None if mark == "atomic" => field.atomic = true,
            None if mark == "omit" => field.empty = Empty::Omitted,
            None if mark == "null" => field.empty = Empty::Null,
            None if mark == "zero" => field.empty = Empty::Zero,
            None if mark == "pointer" => field.empty = Empty::Kept,
            Some(("map", keys)) => field.list = ListKind::Map(keys.split(',').collect()),
            Some(("key", key)) => field.patch.key = Some(key),
            Some(("go", name)) => field.go = Some(name),
            Some(("patch", strategies)) => {
                for strategy in strategies.split(',') {
                    match strategy {
                        "merge" => field.patch.merge = true,
                        "retainKeys" => field.patch.retain_keys = true,
                        // What is done anyhow.
                        "replace" => {}
                        other => panic!("the patch strategy {other} is not known: {line}"),
                    }
                }
            }
            _ => panic!("the mark {mark} of a field is not known: {line}"),
        }
    }
    field
}

fn type_of(text: &str, by_name: &BTreeMap<&'static str, usize>) -> Type {
    let inner = |open: char, close: char| text.strip_prefix(open)?.strip_suffix(close);
    if let Some(item) = inner('[', ']') {
        return Type::List(Box::new(type_of(item, by_name)));
    }
    if let Some(value) = inner('{', '}') {
        return Type::Map(Box::new(type_of(value, by_name)));
    }
    match text {
        "string" => Type::String,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "number" => Type::Number,
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "time" => Type::Time,
        "quantity" => Type::Quantity,
        "int-or-string" => Type::IntOrString,
        "any" => Type::Any,
        name => {
            let at = by_name.get(name).unwrap_or_else(|| panic!("the type {name} is used and not in the table"));
            Type::Struct(StructId(*at))
        }
    }
}
