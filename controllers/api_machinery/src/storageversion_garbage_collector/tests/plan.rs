//! Which entries stay, and what follows from them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kcm_framework::api::{InternedStr, PartialObjectMeta, View as _};
use serde_json::{Value, json};

use super::{condition, storage_version, view};
use crate::storageversion_garbage_collector::plan::{Plan, can_name_a_lease, is_identity, plan};

const NOW: &str = "2026-01-02T12:00:00Z";
const BEFORE: &str = "2026-01-01T00:00:00Z";

fn planned(object: &Value, gone: &[&str]) -> (Plan, String) {
    let gone: BTreeSet<InternedStr> = gone.iter().map(|server| InternedStr::from(*server)).collect();
    let planned = plan(&view(object), &gone, NOW.parse::<Timestamp>().unwrap()).unwrap();
    let words = planned.explain(&gone);
    (planned, words)
}

/// Returns the status that is written.
fn status(object: &Value, gone: &[&str]) -> Value {
    let (Plan::Update { document, .. }, _) = planned(object, gone) else { panic!("it is updated") };
    let written: Value = serde_json::from_str(document.as_str()).unwrap();
    assert_eq!(written["metadata"], object["metadata"]);
    written["status"].clone()
}

fn servers(status: &Value) -> Vec<&str> {
    let entries = status["storageVersions"].as_array().unwrap();
    assert!(entries.iter().all(|entry| entry["extra"] == 1), "unknown fields stay");
    entries.iter().filter_map(|entry| entry["apiServerID"].as_str()).collect()
}

#[test]
fn v5_entries_without_an_api_server_go_and_the_others_keep_their_order() {
    let three = |status| storage_version("apps.deployments", &[("a", "v1"), ("b", "v2"), ("c", "v1")], status);
    let written = status(&three(json!({})), &["b"]);
    assert_eq!(servers(&written), ["a", "c"]);
    assert_eq!(written["commonEncodingVersion"], "v1");
    assert_eq!(written["conditions"], json!([condition("True", NOW, 3)]));

    let written = status(&three(json!({ "commonEncodingVersion": "v1" })), &["a"]);
    assert_eq!(servers(&written), ["b", "c"]);
    assert_eq!(written.get("commonEncodingVersion"), None);
    assert_eq!(written["conditions"], json!([condition("False", NOW, 3)]));
}

#[test]
fn v5_a_storage_version_without_entries_is_deleted_and_one_that_never_had_any_stays() {
    let one = || storage_version("apps.deployments", &[("a", "v1"), ("a", "v1")], json!({}));
    let deleted = planned(&one(), &["a", "b"]);
    let words = "deletes the storage version, of which no API server exists: a, b".to_owned();
    assert_eq!(deleted, (Plan::Delete, words));
    let mut terminating = one();
    terminating["metadata"]["deletionTimestamp"] = json!(NOW);
    let words = "leaves the storage version, which is being deleted".to_owned();
    assert_eq!(planned(&terminating, &["a"]), (Plan::Terminating, words));
    let words = "keeps all entries, whose API servers exist".to_owned();
    assert_eq!(planned(&one(), &["b"]), (Plan::Keep, words.clone()));
    assert_eq!(planned(&storage_version("apps.deployments", &[], json!({})), &["a"]), (Plan::Keep, words));
}

#[test]
fn v6_the_time_of_the_condition_changes_with_its_status_or_with_the_common_version() {
    let entries: &[(&str, &str)] = &[("a", "v1"), ("b", "v2"), ("c", "v2")];
    let before = |common: Option<&str>, conditions: Value| {
        let mut status = json!({ "conditions": conditions });
        if let Some(common) = common {
            status["commonEncodingVersion"] = json!(common);
        }
        storage_version("apps.deployments", entries, status)
    };
    let other = || json!({ "type": "Other", "status": "True", "extra": 1 });
    for (name, object, gone, expected) in [
        (
            "false to true",
            before(None, json!([other(), condition("False", BEFORE, 1)])),
            "a",
            json!([other(), condition("True", NOW, 3)]),
        ),
        (
            "true to false",
            before(Some("v2"), json!([condition("True", BEFORE, 1), other()])),
            "b",
            json!([condition("False", NOW, 3), other()]),
        ),
        (
            "still false",
            before(None, json!([condition("False", BEFORE, 1)])),
            "b",
            json!([condition("False", BEFORE, 3)]),
        ),
        (
            "another common version",
            before(Some("v1"), json!([condition("True", BEFORE, 1)])),
            "a",
            json!([condition("True", NOW, 3)]),
        ),
        (
            "the same common version",
            before(Some("v2"), json!([condition("True", BEFORE, 1)])),
            "a",
            json!([condition("True", BEFORE, 3)]),
        ),
        ("none yet", before(None, json!([other()])), "a", json!([other(), condition("True", NOW, 3)])),
        ("null", before(None, Value::Null), "a", json!([condition("True", NOW, 3)])),
    ] {
        assert_eq!(status(&object, &[gone])["conditions"], expected, "{name}");
    }
}

#[test]
fn v4_a_lease_counts_if_it_has_the_label_of_kube_apiserver() {
    let lease = |labels: Value| {
        let lease = json!({ "metadata": { "name": "a", "labels": labels } });
        PartialObjectMeta::decode(&lease.to_string()).unwrap().metadata
    };
    assert!(!is_identity(None));
    for (labels, expected) in [
        (json!({ "apiserver.kubernetes.io/identity": "kube-apiserver" }), true),
        (json!({ "apiserver.kubernetes.io/identity": "apiextensions-apiserver" }), false),
        (json!({}), false),
    ] {
        assert_eq!(is_identity(Some(&lease(labels.clone()))), expected, "{labels}");
    }
}

#[test]
fn d6_an_id_that_cannot_name_a_lease_needs_no_request() {
    for (server, expected) in
        [("apiserver-k5x", true), ("", false), ("a/b", false), ("..", false), ("a%2f", false), ("A", false)]
    {
        assert_eq!(can_name_a_lease(server), expected, "{server:?}");
    }
}

#[test]
fn a_plan_in_words_names_the_api_servers() {
    let object = storage_version("apps.deployments", &[("a", "v1"), ("b", "v2"), ("c", "v2")], json!({}));
    let words = "keeps 2 entries and removes the entries of deleted API servers: a";
    assert_eq!(planned(&object, &["a"]).1, words);
}
