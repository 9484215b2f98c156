//! Which revision the template has, and which ones the history limit lets go.

use std::sync::Arc;

use kcm_framework::api::View as _;
use kcm_framework::api::views::ControllerRevision;
use serde_json::{Value, json};

use super::fixtures::{revision, set};
use crate::shared::revisions::RevisionData;
use crate::statefulset::revisions::{Revisions, UpdateRevision, beyond_history_limit, update_revision};

fn stored(name: &str, number: i64, data: &str) -> Arc<ControllerRevision> {
    let json = format!(r#"{{"metadata":{{"name":"{name}"}},"revision":{number},"data":{data}}}"#);
    Arc::new(ControllerRevision::decode(&json).unwrap())
}

fn of(template: &Value) -> RevisionData {
    RevisionData::of(Some(&serde_json::value::to_raw_value(template).unwrap())).unwrap()
}

#[test]
fn the_revision_of_the_template_is_found_renumbered_or_created() {
    let data = |image: &str| of(&json!({ "spec": { "containers": [{ "image": image }] } }));
    let history = |images: &[&str]| -> Vec<_> {
        let numbered = images.iter().zip(1..);
        numbered.map(|(image, number)| stored(&format!("web-{number}"), number, data(image).as_str())).collect()
    };
    for (name, images, expected) in [
        ("none", vec![], "create 1"),
        ("the last", vec!["a", "b"], "web-2"),
        ("another", vec!["a"], "create 2"),
        ("an earlier one", vec!["b", "a"], "renumber web-1 to 3"),
        ("the last of two earlier ones", vec!["b", "b", "a"], "renumber web-2 to 4"),
        ("the last of two", vec!["b", "a", "b"], "web-3"),
    ] {
        let found = match update_revision(&history(&images), &data("b"), true) {
            UpdateRevision::Last(revision) => revision.metadata.key.name().to_owned(),
            UpdateRevision::Renumber { revision, number } => {
                format!("renumber {} to {number}", revision.metadata.key.name())
            }
            UpdateRevision::Create { number } => format!("create {number}"),
        };
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_revision_of_an_earlier_release_is_that_of_the_template_unless_the_gate_is_off() {
    // What Kubernetes 1.33 recorded, and the template that 1.34 serves.
    let recorded = r#"{"spec":{"template":{"$patch":"replace","metadata":{"annotations":{"test":"value"},"creationTimestamp":null,"labels":{"app":"foo"}},"spec":{"containers":[{"image":"test","imagePullPolicy":"Always","name":"test","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}}}"#;
    let served = recorded.replace(r#""creationTimestamp":null,"#, "");
    let served: Value = serde_json::from_str(&served).unwrap();
    let mut template = served["spec"]["template"].clone();
    template.as_object_mut().unwrap().remove("$patch");
    let history = [stored("test-c77f6d978", 1, recorded)];
    let data = of(&template);
    assert!(matches!(update_revision(&history, &data, true), UpdateRevision::Last(_)));
    assert_eq!(update_revision(&history, &data, false), UpdateRevision::Create { number: 2 }, "off is bytes alone");

    // A field with a default that was not recorded.
    let mut old = template.clone();
    old["spec"].as_object_mut().unwrap().remove("schedulerName");
    let history = [stored("old", 1, of(&old).as_str())];
    assert!(matches!(update_revision(&history, &data, true), UpdateRevision::Last(_)));
    let mut changed = template;
    changed["spec"]["schedulerName"] = json!("mine");
    assert_eq!(update_revision(&history, &of(&changed), true), UpdateRevision::Create { number: 2 });
}

#[test]
fn only_the_last_revision_is_compared_by_meaning() {
    let template = json!({ "spec": { "containers": [], "schedulerName": "default-scheduler", "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30, "securityContext": {} } });
    let old = json!({ "spec": { "containers": [] } });
    let other = json!({ "spec": { "containers": [{}] } });
    let history = [stored("a", 1, of(&old).as_str()), stored("b", 2, of(&other).as_str())];
    assert_eq!(update_revision(&history, &of(&template), true), UpdateRevision::Create { number: 3 });
}

#[test]
fn the_current_revision_is_that_of_the_status() {
    let (first, second) = (revision("web-1", "a"), revision("web-2", "b"));
    let history = [stored("web-1", 1, first.data.as_str()), stored("web-2", 2, second.data.as_str())];
    for (name, current, expected) in
        [("named", "web-1", &first), ("not named", "", &second), ("gone", "web-0", &second)]
    {
        let set = set(json!({ "status": { "currentRevision": current } }));
        let revisions = Revisions::new(&set, &history, second.clone(), 0);
        assert_eq!((&revisions.current, &revisions.update), (expected, &second), "{name}");
    }
}

#[test]
fn the_history_limit_lets_the_oldest_go_and_never_a_live_one() {
    let history: Vec<_> = (1..=5).map(|number| stored(&format!("web-{number}"), number, "{}")).collect();
    for (limit, live, expected) in [
        (10, vec![], vec![]),
        (2, vec![], vec!["web-1", "web-2", "web-3"]),
        (2, vec!["web-1", "web-5"], vec!["web-2"]),
        (0, vec!["web-1"], vec!["web-2", "web-3", "web-4", "web-5"]),
        (-1, vec![], vec![]),
    ] {
        let set = set(json!({ "spec": { "revisionHistoryLimit": limit } }));
        let going = beyond_history_limit(&set, &history, |revision| live.contains(&revision.metadata.key.name()));
        let going: Vec<_> = going.iter().map(|revision| revision.metadata.key.name()).collect();
        assert_eq!(going, expected, "{limit} {live:?}");
    }
}
