//! The data of revisions and its hash, compared with what Go computes.

use kcm_framework::api::View as _;
use kcm_framework::api::views::ControllerRevision;
use serde_json::json;

use super::{data, raw};
use crate::shared::revisions::{RevisionData, revision_hash, revision_name};

/// Templates, their data, and the hashes of the data.
fn rows() -> Vec<(&'static str, &'static str, [&'static str; 3])> {
    let lines: Vec<&str> = include_str!("go.txt").lines().filter(|line| !line.starts_with('#')).collect();
    lines
        .chunks(3)
        .map(|row| {
            let hashes: Vec<_> = row[2].split(' ').collect();
            (row[0], row[1], hashes.try_into().expect("a row has three hashes"))
        })
        .collect()
}

#[test]
fn data_and_hashes_are_those_that_go_computes() {
    assert_eq!(rows().len(), 4);
    for (template, expected, hashes) in rows() {
        let data = data(template);
        assert_eq!(data.as_str(), expected);
        assert_eq!([None, Some(0), Some(17)].map(|count| revision_hash(&data, count)), hashes, "{template}");
    }
}

#[test]
fn the_first_row_has_the_hash_that_kubernetes_1_34_gave_it() {
    let (template, _, _) = rows()[0];
    assert_eq!(revision_name("test", &revision_hash(&data(template), Some(0))), "test-776999688b");
}

#[test]
fn a_template_of_an_old_api_server_has_the_data_of_a_new_one() {
    let old = r#"{"metadata":{"creationTimestamp":null,"labels":{"app":"foo"}},"spec":{"volumes":[{"ephemeral":{"volumeClaimTemplate":{"metadata":{"creationTimestamp":null}}}}]}}"#;
    let new = old.replace(r#""creationTimestamp":null,"#, "").replace(r#""creationTimestamp":null"#, "");
    assert_eq!(data(old), data(&new));
}

#[test]
fn notation_is_ignored() {
    let one = data(r#"{"spec":{"a":"\u003cA\/","b":[1.0,2]},"metadata":{}}"#);
    assert_eq!(one, data(" { \"metadata\" : { }, \"spec\":{\"b\":[ 1, 2e0 ],\"a\":\"<A/\"} } "));
}

#[test]
fn data_restores_its_template() {
    let template = r#"{"metadata":{"labels":{"a":"<"}},"spec":{"containers":[]}}"#;
    let restored = data(template).template().unwrap();
    let restored: serde_json::Value = serde_json::from_str(restored.get()).unwrap();
    let expected = json!({ "$patch": "replace", "metadata": { "labels": { "a": "<" } }, "spec": { "containers": [] } });
    assert_eq!(restored, expected);
}

#[test]
fn nothing_but_the_template_of_a_revision_is_restored() {
    let recorded = r#"{
        "metadata": {"name": "a"},
        "data": {"metadata": {"labels": {"other": "x"}}, "status": {"replicas": 99},
            "spec": {"replicas": 7, "template": {"$patch": "replace", "spec": {"containers": []}}}}
    }"#;
    let data = RevisionData::of_revision(&ControllerRevision::decode(recorded).unwrap()).unwrap();
    let restored: serde_json::Value = serde_json::from_str(data.template().unwrap().get()).unwrap();
    assert_eq!(restored, json!({ "$patch": "replace", "spec": { "containers": [] } }));
}

#[test]
fn a_template_that_is_no_object_has_no_data() {
    for template in ["[]", "null", "1"] {
        assert!(RevisionData::of(Some(raw(template))).is_err(), "{template}");
    }
    assert!(RevisionData::of(None).is_err());
}

#[test]
fn data_is_compared_byte_for_byte() {
    let proposed = data(r#"{"spec":{"a":"<"}}"#);
    let of =
        |data: &str| ControllerRevision::decode(&format!(r#"{{"metadata":{{"name":"a"}},"data":{data}}}"#)).unwrap();
    assert!(proposed.is_of(&of(proposed.as_str())));
    assert_eq!(RevisionData::of_revision(&of(proposed.as_str())), Some(proposed.clone()));
    assert!(!proposed.is_of(&of(&proposed.as_str().replace("\\u003c", "<"))));
    assert!(!proposed.is_of(&of(r#"{"spec":{"template":{"spec":{"a":"\u003c"},"$patch":"replace"}}}"#)));
}

#[test]
fn a_name_is_at_most_253_bytes_long() {
    assert_eq!(revision_name("web", "abc"), "web-abc");
    let longest = "a".repeat(253);
    assert_eq!(revision_name(&longest, "abc"), format!("{}-abc", "a".repeat(223)));
    assert_eq!(revision_name(&longest[..223], "abc"), format!("{}-abc", "a".repeat(223)));
}
