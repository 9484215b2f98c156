//! Changes of the conditions of a migration.

use kcm_framework::api::Document;
use serde_json::{Value, json};

use super::{BEFORE, NOW, condition, now};
use crate::storage_version_migrator::conditions::{Condition, add_once, set};

fn document(conditions: Value) -> Document {
    let mut document = json!({ "metadata": {}, "status": {} });
    document["status"]["conditions"] = conditions;
    Document::parse(&document.to_string()).unwrap()
}

fn new(status: bool, observed_generation: i64) -> Condition<'static> {
    Condition { type_: "Running", status, reason: "R", message: "M", observed_generation }
}

fn conditions(document: &Document) -> Value {
    serde_json::from_str(document.get(&["status", "conditions"]).unwrap_or("null")).unwrap()
}

#[test]
fn m22_a_condition_is_set_as_upstream_does() {
    let other = || json!({ "type": "Other", "status": "True", "extra": 1 });
    let running = |status, time| condition("Running", status, "R", "M", time);
    let observed = |mut condition: Value| {
        condition["observedGeneration"] = json!(3);
        condition
    };
    for (name, before, new, expected) in [
        ("absent", json!([other()]), new(true, 0), Some(json!([other(), running("True", NOW)]))),
        ("null", Value::Null, new(true, 3), Some(json!([observed(running("True", NOW))]))),
        ("the same", json!([running("True", BEFORE)]), new(true, 0), None),
        (
            "another status",
            json!([running("True", BEFORE), other()]),
            new(false, 0),
            Some(json!([running("False", NOW), other()])),
        ),
        (
            "another message",
            json!([condition("Running", "True", "R", "before", BEFORE)]),
            new(true, 0),
            Some(json!([running("True", BEFORE)])),
        ),
        (
            "the generation goes",
            json!([observed(running("True", BEFORE))]),
            new(true, 0),
            Some(json!([running("True", BEFORE)])),
        ),
        (
            "the generation comes",
            json!([running("True", BEFORE)]),
            new(true, 3),
            Some(json!([observed(running("True", BEFORE))])),
        ),
    ] {
        let mut document = document(before.clone());
        let changed = set(&mut document, &new, now()).unwrap();
        assert_eq!(changed, expected.is_some(), "{name}");
        assert_eq!(conditions(&document), expected.unwrap_or(before), "{name}");
    }
}

#[test]
fn m4_a_condition_that_is_decided_is_not_added_again() {
    for (name, before, is_added) in [
        ("absent", json!([]), true),
        ("true", json!([{ "type": "Running", "status": "True" }]), false),
        ("false", json!([{ "type": "Running", "status": "False" }]), false),
        ("unknown", json!([{ "type": "Running", "status": "Unknown" }]), true),
        ("another", json!([{ "type": "Failed", "status": "True" }]), true),
    ] {
        let mut document = document(before.clone());
        assert_eq!(add_once(&mut document, &new(true, 0), now()).unwrap(), is_added, "{name}");
        let mut expected = before;
        if is_added {
            expected.as_array_mut().unwrap().push(condition("Running", "True", "R", "M", NOW));
        }
        assert_eq!(conditions(&document), expected, "{name}");
    }
}

#[test]
fn conditions_that_are_no_list_are_an_error() {
    let mut document = document(json!("x"));
    assert!(set(&mut document, &new(true, 0), now()).is_err());
    assert!(add_once(&mut document, &new(true, 0), now()).is_err());
}
