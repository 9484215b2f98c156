//! The kinds that rules lead to.

use std::cell::Cell;

use crate::validatingadmissionpolicy_status::kinds::{
    Checked, Kind, Lookup, Resource, Role, Rule, kinds_of, params_of, type_name,
};

fn rule(groups: &[&str], versions: &[&str], resources: &[&str]) -> Rule {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Rule { api_groups: owned(groups), api_versions: owned(versions), resources: owned(resources) }
}

fn kind(group: &str, version: &str, kind: &str) -> Kind {
    Kind { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
}

/// Kinds are named as their resources here. Resources with `two` have a second kind, and `nope` is unknown.
fn lookup(resource: &Resource) -> Lookup {
    let Resource { group, version, resource } = resource;
    match resource.as_str() {
        "nope" => Lookup::Unknown,
        "two" => Lookup::Found(vec![kind(group, version, "two"), kind("other", version, "two")]),
        name => Lookup::Found(vec![kind(group, version, name)]),
    }
}

fn kinds(rules: &[Rule]) -> Vec<String> {
    kinds_of(rules, lookup, || {}).kinds.iter().map(ToString::to_string).collect()
}

#[test]
fn sorts_kinds_by_group_version_and_kind() {
    let rules = [rule(&["apps", ""], &["v2", "v1"], &["b", "a"]), rule(&[""], &["v1"], &["a"])];
    let expected = [
        "/v1, Kind=a",
        "/v1, Kind=b",
        "/v2, Kind=a",
        "/v2, Kind=b",
        "apps/v1, Kind=a",
        "apps/v1, Kind=b",
        "apps/v2, Kind=a",
        "apps/v2, Kind=b",
    ];
    assert_eq!(kinds(&rules), expected);
}

#[test]
fn skips_rules_and_resources_with_wildcards() {
    for (name, rules, expected) in [
        ("no rules", vec![], vec![]),
        ("a group with a wildcard", vec![rule(&["apps", "*"], &["v1"], &["a"])], vec![]),
        ("a version with a wildcard", vec![rule(&["apps"], &["v1", "*"], &["a"])], vec![]),
        ("a resource with a wildcard", vec![rule(&["g"], &["v1"], &["*", "a"])], vec!["g/v1, Kind=a"]),
        ("a subresource", vec![rule(&["g"], &["v1"], &["a/status", "a"])], vec!["g/v1, Kind=a"]),
        ("an empty list", vec![rule(&[], &["v1"], &["a"]), rule(&["g"], &["v1"], &[])], vec![]),
        (
            "several kinds of a resource",
            vec![rule(&["g"], &["v1"], &["two"])],
            vec!["g/v1, Kind=two", "other/v1, Kind=two"],
        ),
    ] {
        assert_eq!(kinds(&rules), expected, "{name}");
    }
}

#[test]
fn ends_with_the_tenth_kind_of_a_rule() {
    let nine = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let later = rule(&["later"], &["v1"], &["a"]);
    assert_eq!(kinds(&[rule(&["g"], &["v1"], &nine), later.clone()]).len(), 10);
    let ten = [&nine[..], &["j", "k"]].concat();
    let found = kinds(&[rule(&["g"], &["v1"], &ten), later.clone()]);
    assert_eq!((found.len(), found.last().map(String::as_str)), (10, Some("g/v1, Kind=j")));
    // Duplicates count.
    assert_eq!(kinds(&[rule(&["g"], &["v1"], &["a"; 10]), later]), ["g/v1, Kind=a"]);
}

#[test]
fn asks_discovery_again_once() {
    let refreshed = Cell::new(0);
    let rules = [rule(&["g"], &["v1"], &["nope", "a"]), rule(&["h"], &["v1"], &["nope"])];
    let asked = Cell::new(0);
    let checked = kinds_of(
        &rules,
        |resource| {
            asked.set(asked.get() + 1);
            lookup(resource)
        },
        || refreshed.set(refreshed.get() + 1),
    );
    assert_eq!((refreshed.get(), asked.get()), (1, 4));
    let unknown =
        |group: &str| Resource { group: group.to_owned(), version: "v1".to_owned(), resource: "nope".to_owned() };
    let expected = Checked { kinds: [kind("g", "v1", "a")].into(), unknown: [unknown("g"), unknown("h")].into() };
    assert_eq!(checked, expected);
}

#[test]
fn finds_a_resource_after_discovery_was_refreshed() {
    let refreshed = Cell::new(false);
    let found = |resource: &Resource| if refreshed.get() { lookup(resource) } else { Lookup::Unknown };
    let checked = kinds_of(&[rule(&["g"], &["v1"], &["a"])], found, || refreshed.set(true));
    assert_eq!((checked.kinds.len(), checked.unknown.len()), (1, 0));
}

#[test]
fn reads_the_version_of_parameters() {
    for (version, name, expected) in [
        ("v1", "ConfigMap", Some(kind("", "v1", "ConfigMap"))),
        ("example.com/v1", "Limits", Some(kind("example.com", "v1", "Limits"))),
        ("", "Limits", Some(kind("", "", "Limits"))),
        ("/", "Limits", Some(kind("", "", "Limits"))),
        ("a/b/c", "Limits", None),
        ("", "", None),
    ] {
        assert_eq!(params_of(version, name), expected, "{version} {name}");
    }
}

#[test]
fn names_types_by_kind_and_role() {
    let named = |group: &str, role| type_name(&kind(group, "v1", "Deployment"), role);
    let name = named("apps", Role::Object);
    assert_eq!(name.len(), "Deployment".len() + 9);
    assert!(name.starts_with("Deployment") && name[10..].bytes().all(|b| b.is_ascii_digit()));
    assert_eq!(name, named("apps", Role::Object));
    for other in [named("other", Role::Object), named("apps", Role::Params)] {
        assert_ne!(name, other);
    }
}
