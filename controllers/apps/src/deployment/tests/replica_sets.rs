//! The new replica set, the creation of one, and edits.

use std::collections::BTreeMap;

use kcm_framework::api::View as _;
use kcm_framework::api::views::ReplicaSet;
use serde_json::{Value, json};

use super::fixtures::{DeploymentBuilder, ReplicaSetBuilder, build, deployment, set};
use crate::deployment::annotations::Changes;
use crate::deployment::replica_sets::{Edit, ExistingReplicaSet, NewReplicaSet, ReplicaSets, classify_existing};

fn names(sets: &ReplicaSets) -> (Option<&str>, Vec<&str>) {
    let new = sets.new.as_ref().map(|set| set.metadata.key.name());
    (new, sets.old.iter().map(|set| set.metadata.key.name()).collect())
}

#[test]
fn the_new_set_is_the_oldest_that_has_the_template() {
    let of = |sets: &[ReplicaSetBuilder]| ReplicaSets::of(&deployment("web").build(), build(sets));
    let sets = of(&[
        set("young").created(10),
        set("other").image("image:2").created(50),
        set("old").created(100),
        set("oldest").image("image:3").created(200),
    ]);
    assert_eq!(names(&sets), (Some("old"), vec!["oldest", "other", "young"]));
    assert_eq!(names(&of(&[set("b"), set("a")])), (Some("a"), vec!["b"]), "of equal age the first name");
    assert_eq!(names(&of(&[set("a").image("image:2")])), (None, vec!["a"]));
    assert_eq!(names(&of(&[])), (None, vec![]));
}

#[test]
fn a_template_is_compared_as_the_api_server_returns_it() {
    let like = |change: &dyn Fn(ReplicaSetBuilder) -> ReplicaSetBuilder| {
        let sets = ReplicaSets::of(&deployment("web").build(), build(&[change(set("a"))]));
        sets.new.is_some()
    };
    let spec = "/spec/template/spec";
    for (name, same, is_new) in [
        ("the hash label aside", like(&|set: ReplicaSetBuilder| set), true),
        (
            "absent against null",
            like(&|set: ReplicaSetBuilder| set.with("/spec/template/metadata", "creationTimestamp", Value::Null)),
            true,
        ),
        (
            "absent against empty",
            like(&|set: ReplicaSetBuilder| set.with(spec, "nodeSelector", json!({})).with(spec, "volumes", json!([]))),
            true,
        ),
        ("another image", like(&|set: ReplicaSetBuilder| set.image("image:2")), false),
        (
            "another label",
            like(&|set: ReplicaSetBuilder| set.with("/spec/template/metadata/labels", "app", json!("x"))),
            false,
        ),
        ("an unknown field", like(&|set: ReplicaSetBuilder| set.with(spec, "brandNew", json!(1))), false),
    ] {
        assert_eq!(same, is_new, "{name}");
    }
    let limited = |limit: &str| json!({ "limits": { "cpu": limit } });
    let container = "/spec/template/spec/containers/0";
    let owner = deployment("web").with(container, "resources", limited("1")).build();
    let sets = |limit| ReplicaSets::of(&owner, build(&[set("a").with(container, "resources", limited(limit))]));
    assert!(sets("1000m").new.is_some(), "quantities by value");
    assert!(sets("1001m").new.is_none());
}

#[test]
fn the_next_revision_is_above_all_old_ones() {
    let revision =
        |sets: &[ReplicaSetBuilder]| ReplicaSets::of(&deployment("web").build(), build(sets)).next_revision();
    let old = |name, revision| set(name).image("old").revision(revision);
    assert_eq!(revision(&[]), 1);
    assert_eq!(revision(&[old("a", "3"), old("b", "7"), old("c", "x")]), 8);
    assert_eq!(revision(&[old("a", "3"), set("new").revision("9")]), 4, "the new one does not count");
}

fn created(owner: &DeploymentBuilder) -> (NewReplicaSet, Value) {
    let created = NewReplicaSet::of(&owner.build(), 3, &Changes::new()).unwrap();
    let body = serde_json::from_str(&created.body).unwrap();
    (created, body)
}

#[test]
fn names_are_cut_to_fit_and_depend_on_the_template_and_the_collisions() {
    let name = |owner: &DeploymentBuilder| created(owner).0.name;
    let web = name(&deployment("web"));
    assert_eq!(name(&deployment("web").replicas(9)), web);
    assert_eq!(name(&deployment("api")).strip_prefix("api"), web.strip_prefix("web"));
    assert_ne!(name(&deployment("web").image("image:2")), web);
    let collided = name(&deployment("web").status(json!({ "collisionCount": 1 })));
    assert_ne!(collided, web);
    assert_ne!(name(&deployment("web").status(json!({ "collisionCount": 2 }))), collided);

    let hash = web.strip_prefix("web-").unwrap();
    assert!(hash.chars().all(|letter| "bcdfghjklmnpqrstvwxz2456789".contains(letter)), "{hash}");
    let long = "a".repeat(250);
    assert_eq!(name(&deployment(&long)), format!("{}-{hash}", &long[..252 - hash.len()]));
}

#[test]
fn the_hash_is_a_label_of_the_set_of_its_pods_and_of_its_selector() {
    let expressions = json!({ "matchExpressions": [{ "key": "app", "operator": "Exists" }] });
    let owner = deployment("web").selector(expressions).with(
        "/spec/template/metadata/labels",
        "pod-template-hash",
        json!("foreign"),
    );
    let (set, body) = created(&owner);
    let hash = set.name.strip_prefix("web-").unwrap();
    let labels = json!({ "app": "web", "pod-template-hash": hash });
    assert_eq!(body["metadata"]["labels"], labels);
    assert_eq!(body["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(
        body["spec"]["selector"],
        json!({
            "matchExpressions": [{ "key": "app", "operator": "Exists" }],
            "matchLabels": { "pod-template-hash": hash },
        })
    );
}

#[test]
fn a_taken_name_is_a_collision_unless_the_replica_set_is_owned_or_adoptable() {
    let owner = deployment("web").build();
    for (name, found, expected) in [
        ("created by a concurrent reconcile", set("a"), ExistingReplicaSet::Owned),
        ("of another template", set("a").image("image:2"), ExistingReplicaSet::Collision),
        ("of another deployment", set("a").owned_by("twin"), ExistingReplicaSet::Collision),
        ("an orphan", set("a").orphan(), ExistingReplicaSet::Adoptable),
        (
            "an orphan that is not selected",
            set("a").orphan().labels(json!({ "app": "x" })),
            ExistingReplicaSet::Collision,
        ),
        ("a terminating orphan", set("a").orphan().terminating(), ExistingReplicaSet::Collision),
        ("an orphan of another template", set("a").orphan().image("image:2"), ExistingReplicaSet::Collision),
    ] {
        assert_eq!(classify_existing(&owner, owner.selector.as_ref().unwrap(), &found.build()), expected, "{name}");
    }
}

#[test]
fn an_edit_changes_its_fields_and_nothing_else() {
    let unknown = set("a").with("/spec", "brandNew", json!({ "x": [1, 2.50] })).annotation("note", "kept");
    let found = unknown.build();
    let mut edit = Edit::of(&found);
    assert!(edit.is_empty());
    assert_eq!(edit.document().unwrap(), found.document);

    edit.replicas = 3;
    edit.min_ready_seconds = 9;
    edit.annotations = BTreeMap::from([("a.b/c".to_owned(), "new".to_owned())]);
    assert!(!edit.is_empty() && edit.is_scale());
    let expected = unknown
        .with("/spec", "replicas", json!(3))
        .with("/spec", "minReadySeconds", json!(9))
        .annotation("a.b/c", "new");
    assert_eq!(ReplicaSet::decode(edit.document().unwrap().as_str()).unwrap().view, expected.build().view);
    assert_eq!(serde_json::from_str::<Value>(edit.document().unwrap().as_str()).unwrap(), expected.0);
}
