//! The controllers that are linked, and those that are known, against upstream's.

#![cfg(feature = "builtin")]

use std::collections::{BTreeMap, BTreeSet};

use kcm_config::Kind;
use kcm_controller_manager::UPSTREAM;
use kcm_controllers as _;
use kcm_framework::{Registry, Selection, StartGroup};

/// A row of `data/controllers.tsv`.
struct Upstream<'a> {
    name: &'a str,
    aliases: Vec<&'a str>,
    on_by_default: bool,
    gates: Vec<&'a str>,
    group: StartGroup,
    service_account: &'a str,
}

fn table() -> Vec<Upstream<'static>> {
    let rows = include_str!("data/controllers.tsv").lines().skip(1);
    rows.map(|line| {
        let [name, aliases, default, gates, special, service_account] =
            line.split('\t').collect::<Vec<_>>().try_into().expect("every row has six columns");
        let list = |text: &'static str| text.split(',').filter(|item| !item.is_empty()).collect();
        Upstream {
            name,
            aliases: list(aliases),
            on_by_default: default == "on",
            gates: list(gates),
            group: if special == "first" { StartGroup::First } else { StartGroup::Rest },
            service_account,
        }
    })
    .collect()
}

#[test]
fn every_controller_of_upstream_is_known_with_its_aliases() {
    let table = table();
    assert_eq!(table.len(), 52);
    let known: Vec<_> = UPSTREAM.iter().map(|(name, aliases)| (*name, aliases.to_vec())).collect();
    assert_eq!(known, table.into_iter().map(|row| (row.name, row.aliases)).collect::<Vec<_>>());
}

/// Linkers drop what nothing refers to: naming the facade must link the controllers of every area.
#[test]
fn the_controllers_of_every_area_are_linked() {
    let linked = Registry::linked().expect("the built-in controllers are linked");
    for (area, name) in [("workloads", "deployment-controller"), ("workloads", "replicaset-controller")] {
        assert!(linked.find(name).is_some(), "{name} of {area} is not linked");
    }
}

#[test]
fn every_linked_controller_is_upstreams_in_all_that_operators_see() {
    let linked = Registry::linked().expect("the built-in controllers are linked");
    let star = Selection::parse(["*"], &linked, &[]).expect("the star is known");
    let table = table();
    assert!(linked.iter().len() > 0);
    for controller in linked.iter() {
        let name = controller.name();
        let row = table.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("upstream has no {name}"));
        let gates: BTreeSet<&str> = controller.gates().iter().map(|gate| gate.name).collect();
        assert_eq!(controller.other_names(), row.aliases, "{name}");
        assert_eq!(gates, row.gates.iter().copied().collect(), "{name}");
        assert_eq!(controller.group(), row.group, "{name}");
        assert_eq!(controller.account(), row.service_account, "{name}");
        assert_eq!(star.enables(controller), row.on_by_default || row.group == StartGroup::First, "{name}");
    }
}

#[test]
fn every_flag_of_a_controller_has_upstream_s_section_type_and_default() {
    let flags = include_str!("../../config/tests/data/flags.tsv").lines().skip(1);
    let flags: BTreeMap<&str, Vec<&str>> =
        flags.map(|line| line.split('\t').collect::<Vec<_>>()).map(|row| (row[1], row)).collect();
    let linked = Registry::linked().expect("the built-in controllers are linked");
    let rows: Vec<_> = linked.iter().flat_map(kcm_framework::ControllerDescriptor::rows).collect();
    assert!(!rows.is_empty());
    for row in rows {
        let upstream = flags.get(row.name).unwrap_or_else(|| panic!("upstream has no --{}", row.name));
        let short = row.short.map(String::from).unwrap_or_default();
        let default = match (row.kind(), row.initial.value()) {
            (Kind::Strings, value) => format!("[{value}]"),
            (_, value) => value.to_string(),
        };
        assert_eq!(upstream[..5], [row.section, row.name, &short, row.kind().name(), &default], "--{}", row.name);
    }
}
