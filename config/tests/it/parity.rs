//! Names, types, defaults and sections are upstream's.

use std::collections::{BTreeMap, BTreeSet};

use kcm_config::{Gate, GateStage, Kind, Row, Table, Value, Versions, gates, generic};

const FLAGS: &str = include_str!("../data/flags.tsv");
const DEFAULTS: &str = include_str!("../data/config-defaults.json");
const GATES: &str = include_str!("../data/feature-gates.tsv");

/// The flags that upstream does not have.
fn ours() -> BTreeSet<&'static str> {
    include_str!("../data/own-flags.tsv").lines().skip(1).filter_map(|line| line.split('\t').nth(1)).collect()
}

/// Keys that upstream does not have. It has no key for logs, and only a setting with a key can change while the program
/// runs.
const OUR_KEYS: &[&str] = &["Logging.verbosity", "Logging.vmodule"];

/// A tab-separated table by one of its columns.
fn by_column(table: &'static str, column: usize) -> BTreeMap<&'static str, Vec<&'static str>> {
    let rows = table.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.map(|row| (row[column], row)).collect()
}

fn upstream_default(value: &Value, kind: Kind) -> String {
    match (kind, value) {
        (Kind::Strings | Kind::Int32s | Kind::Map | Kind::CertKeys, value) => format!("[{value}]"),
        (_, value) => value.to_string(),
    }
}

#[test]
fn every_flag_of_upstream_s_has_its_section_type_and_default() {
    let upstream = by_column(FLAGS, 1);
    for row in generic::rows().filter(|row| row.flag().is_some() && !ours().contains(row.name)) {
        let fields = upstream.get(row.name).unwrap_or_else(|| panic!("upstream has no --{}", row.name));
        let short = row.short.map(String::from).unwrap_or_default();
        let default = upstream_default(&row.initial.value(), row.kind());
        let ours = [row.section, row.name, &short, row.kind().name(), &default];
        assert_eq!(fields[..5], ours, "--{}", row.name);
    }
}

#[test]
fn what_is_ours_alone_is_not_upstream_s() {
    let upstream = by_column(FLAGS, 1);
    for flag in ours() {
        assert!(!upstream.contains_key(flag), "--{flag}");
    }
}

#[test]
fn every_key_is_one_that_configz_prints_with_the_same_default() {
    let defaults: serde_json::Value = serde_json::from_str(DEFAULTS).expect("the reference is JSON");
    for row in generic::rows() {
        let Some(path) = row.path.map(|path| path.to_string()) else { continue };
        let upstream = defaults.pointer(&format!("/{}", path.replace('.', "/")));
        if OUR_KEYS.contains(&&*path) {
            assert_eq!(upstream, None, "{path}");
            continue;
        }
        let upstream = upstream.unwrap_or_else(|| panic!("/configz prints no {path}"));
        if !NULLS.contains(&&*path) {
            assert_eq!(*upstream, json(&row), "{path}");
        }
    }
}

/// Empty lists that `/configz` prints as null.
const NULLS: &[&str] = &["Generic.LeaderMigration.controllerLeaders"];

fn json(row: &Row) -> serde_json::Value {
    match row.initial.value() {
        Value::Bool(value) => value.into(),
        Value::Int32(value) => value.into(),
        // `/configz` prints 20, not 20.0.
        Value::Float32(value) => serde_json::from_str(&value.to_string()).expect("a finite number is JSON"),
        Value::Duration(value) => value.to_string().into(),
        Value::String(value) => value.into(),
        Value::Strings(value) => value.into(),
        Value::Int(value) => value.into(),
        Value::Float64(value) => value.into(),
        Value::Int32s(value) => value.into(),
        Value::Map(pairs) => json_map(pairs),
        Value::Objects(items) => items.into_iter().map(json_map).collect(),
        value @ (Value::Ip(_) | Value::CertKeys(_) | Value::Quantity(_) | Value::ModuleLevels(_)) => {
            panic!("no setting of /configz is {value:?}")
        }
    }
}

fn json_map(pairs: BTreeMap<String, String>) -> serde_json::Value {
    serde_json::Value::Object(pairs.into_iter().map(|(key, value)| (key, value.into())).collect())
}

#[test]
fn every_key_of_configz_has_one_lower_camel_form_in_its_section() {
    let defaults: serde_json::Value = serde_json::from_str(DEFAULTS).expect("the reference is JSON");
    let mut paths = Vec::new();
    leaves(&defaults, "", &mut paths);
    let rows = paths.into_iter().filter(|path| !["kind", "apiVersion"].contains(&path.as_str())).enumerate();
    // Rows hold constants; a test may leak a few bytes.
    let rows = rows.map(|(number, path)| {
        let flag: &'static str = format!("f{number}").leak();
        Row::new(flag, "Test", kcm_config::Initial::Bool(false)).path(path.leak()).help("A key of upstream.")
    });
    assert_eq!(Table::new(rows).err(), None);
}

fn leaves(value: &serde_json::Value, path: &str, found: &mut Vec<String>) {
    match value.as_object() {
        Some(section) => {
            for (key, inner) in section {
                leaves(inner, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, found);
            }
        }
        None => found.push(path.to_owned()),
    }
}

#[test]
fn every_gate_has_upstream_s_stage_default_lock_and_requirements() {
    let ours = gates::upstream().map(|known| {
        let gate = known.at(Versions::default()).expect("it is there now");
        let (stage, default) = (stage_of(&gate), gate.default.to_string());
        let locked = if gate.locked { "locked" } else { "" };
        let requires: Vec<&str> = known.requires().collect();
        [known.name, stage, &default, locked, &requires.join(",")].join("\t")
    });
    assert_eq!(ours.collect::<Vec<_>>(), GATES.lines().skip(1).collect::<Vec<_>>());
    assert_eq!(GATES.lines().count(), 255);
}

fn stage_of(gate: &Gate) -> &'static str {
    match gate.stage {
        GateStage::Alpha => "Alpha",
        GateStage::Beta => "Beta",
        GateStage::Ga => "GA",
        GateStage::Deprecated => "Deprecated",
    }
}

#[test]
fn what_is_read_here_is_upstream_s_gate() {
    for gate in gates::KNOWN {
        let known = gates::upstream().find(|known| known.name == gate.name);
        let known = known.unwrap_or_else(|| panic!("upstream has no gate {}", gate.name));
        assert_eq!(known.at(Versions::default()), Some(*gate));
        assert!(known.is_read, "{}", gate.name);
    }
}
