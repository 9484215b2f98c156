//! Requested rollbacks.

use serde_json::{Value, json};

use super::fixtures::{ReplicaSetBuilder, build, deployment, set};
use crate::deployment::events::DeploymentEvent;
use crate::deployment::replica_sets::ReplicaSets;
use crate::deployment::rollback::Rollback;

fn decided(sets: &[ReplicaSetBuilder], revision: i64) -> Rollback {
    let owner = deployment("web").build();
    let sets = ReplicaSets::of(&owner, build(sets));
    let present = sets.new.as_ref().and_then(|set| set.metadata.annotations.get("deployment.kubernetes.io/revision"));
    Rollback::decide(&owner, &sets, present.unwrap_or_default(), revision)
}

#[test]
fn a_rollback_is_to_an_existing_revision_with_another_template() {
    let old = |revision: &str| set(&format!("r{revision}")).image(revision).revision(revision);
    let all = [old("1"), old("2"), set("new").revision("5")];
    let to = |name: &str, revision| Rollback::To { set: old(name).build(), revision };
    for (name, sets, requested, expected) in [
        ("a revision", &all[..], 1, to("1", 1)),
        ("the last one", &all, 0, to("2", 2)),
        ("the present one", &all, 5, Rollback::TemplateUnchanged),
        ("one that does not exist", &all, 3, Rollback::NoSuchRevision),
        ("a negative one", &all, -3, Rollback::NoSuchRevision),
        ("the last of one", &all[2..], 0, Rollback::NoLastRevision),
        ("the last of none", &[], 0, Rollback::NoLastRevision),
        ("one that is not a number", &[set("x").revision("x")], 1, Rollback::NoSuchRevision),
    ] {
        assert_eq!(decided(sets, requested), expected, "{name}");
    }
}

#[test]
fn the_present_revision_is_that_after_this_reconcile() {
    let owner = deployment("web").build();
    let again = ReplicaSets::of(&owner, build(&[set("a").revision("1"), set("b").image("image:2").revision("2")]));
    let to = |revision| Rollback::decide(&owner, &again, "3", revision);
    assert_eq!(to(0), Rollback::To { set: again.old[0].clone(), revision: 2 });
    assert_eq!(to(1), Rollback::NoSuchRevision);
    assert_eq!(to(3), Rollback::TemplateUnchanged);
}

#[test]
fn a_rollback_restores_template_and_annotations_and_removes_the_request() {
    let notes =
        json!({ "cause": "edit", "deprecated.deployment.rollback.to": "1", "deployment.kubernetes.io/revision": "1" });
    let owner = deployment("web").image("image:2").annotations(notes).with("/spec", "brandNew", json!([1]));
    let old = set("a").revision("1").annotation("cause", "create").with("/spec/template/spec", "brandNew", json!(2.50));
    let rollback = Rollback::To { set: old.build(), revision: 1 };
    let document = rollback.document(&owner.build(), "2").unwrap();
    let expected = owner
        .clone()
        .image("image:1")
        .with("/spec/template/spec", "brandNew", json!(2.50))
        .annotations(json!({ "cause": "create", "deployment.kubernetes.io/revision": "2" }));
    assert_eq!(serde_json::from_str::<Value>(document.as_str()).unwrap(), expected.0);
    let event = rollback.event(&owner.build());
    assert_eq!(event, DeploymentEvent::RolledBack { name: "web".to_owned(), revision: 1 });
}

#[test]
fn a_request_that_cannot_be_met_is_removed() {
    let owner = deployment("web").annotations(json!({ "note": "kept", "deprecated.deployment.rollback.to": "7" }));
    for (rollback, event) in [
        (Rollback::NoLastRevision, DeploymentEvent::NoLastRevision),
        (Rollback::NoSuchRevision, DeploymentEvent::NoSuchRevision),
        (Rollback::TemplateUnchanged, DeploymentEvent::TemplateUnchanged { name: "web".to_owned() }),
    ] {
        let document = rollback.document(&owner.build(), "3").unwrap();
        let expected = owner.clone().annotations(json!({ "note": "kept", "deployment.kubernetes.io/revision": "3" }));
        assert_eq!(serde_json::from_str::<Value>(document.as_str()).unwrap(), expected.0);
        assert_eq!(rollback.event(&owner.build()), event);
    }
}
