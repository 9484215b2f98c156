//! The hash of a template.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::daemonset::template_hash::template_hash;

/// Pod templates and their hashes: without a collision count, and with 0 and 7. The last one has every field.
///
/// Printed by `e2e/template-hashes`, with the types of `k8s.io/api` v0.37.2.
const HASHES: &str = include_str!("template_hashes.tsv");

fn raw(template: &Value) -> Box<RawValue> {
    to_raw_value(template).expect("it is JSON")
}

#[test]
fn it_is_that_of_the_go_types() {
    for row in HASHES.lines() {
        let (template, hashes) = row.split_once('\t').expect("a row has columns");
        let raw = RawValue::from_string(template.to_owned()).expect("it is JSON");
        let found = [None, Some(0), Some(7)].map(|count| template_hash(&raw, count).expect("Go can hold it"));
        assert_eq!(found.join("\t"), hashes, "{template}");
    }
}

#[test]
fn what_the_go_types_cannot_hold_has_no_hash() {
    let with_limit = |limit: &str| json!({ "spec": { "containers": [{ "name": "c", "resources": { "limits": { "memory": limit } } }] } });
    assert!(template_hash(&raw(&with_limit("16Gi")), None).is_some());
    let rows = [
        ("no object", json!([])),
        ("a string in place of a number", json!({ "spec": { "priority": "1" } })),
        ("a string in place of an object", json!({ "spec": { "securityContext": "none" } })),
        ("a list in place of a map", json!({ "metadata": { "labels": [] } })),
        ("a time", json!({ "metadata": { "creationTimestamp": "2026-01-01T00:00:00Z" } })),
        ("managed fields", json!({ "metadata": { "managedFields": [{}] } })),
        ("more than 64 bits", with_limit("9223372036854775808")),
        ("a power of two that Go keeps as a decimal", with_limit("100Ti")),
        ("a fraction", with_limit("1.5")),
        ("no quantity", with_limit("much")),
        ("an empty quantity", with_limit("")),
        ("an exponent beyond 32 bits", with_limit("1e99999999999")),
        ("a number below one billionth", with_limit("1e-12")),
    ];
    for (name, template) in rows {
        assert_eq!(template_hash(&raw(&template), None), None, "{name}");
    }
}

#[test]
fn fields_of_later_releases_do_not_change_it() {
    let known = raw(&json!({ "spec": { "hostNetwork": true } }));
    let unknown = raw(&json!({ "spec": { "hostNetwork": true, "newField": { "a": 1 } } }));
    assert_eq!(template_hash(&known, None), template_hash(&unknown, None));
}
