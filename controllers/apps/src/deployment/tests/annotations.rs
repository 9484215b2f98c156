//! Annotations of revisions, sizes and users.

use serde_json::{Value, json};

use super::fixtures::{deployment, set};
use crate::deployment::annotations::{
    DESIRED_REPLICAS, new_replica_set_annotations, replicas_annotations, revision_of, rollback_to, rolled_back, size_of,
};

const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";

struct Case {
    name: &'static str,
    /// Of the deployment.
    of_deployment: Value,
    /// Of the replica set.
    set: Value,
    revision: i64,
    changes: Value,
}

#[test]
fn the_new_replica_set_gets_the_next_revision_and_the_annotations_of_the_deployment() {
    for Case { name, of_deployment, set: of_set, revision, changes } in [
        Case {
            name: "a replica set that is created",
            of_deployment: json!({}),
            set: json!({}),
            revision: 1,
            changes: json!({ REVISION: "1" }),
        },
        Case {
            name: "nothing new",
            of_deployment: json!({}),
            set: json!({ REVISION: "3" }),
            revision: 3,
            changes: json!({}),
        },
        Case {
            name: "a revision never decreases",
            of_deployment: json!({}),
            set: json!({ REVISION: "7" }),
            revision: 3,
            changes: json!({}),
        },
        Case {
            name: "a set that was rolled back to keeps its history",
            of_deployment: json!({}),
            set: json!({ REVISION: "1" }),
            revision: 3,
            changes: json!({ REVISION: "3", HISTORY: "1" }),
        },
        Case {
            name: "a longer history",
            of_deployment: json!({}),
            set: json!({ REVISION: "3", HISTORY: "1" }),
            revision: 5,
            changes: json!({ REVISION: "5", HISTORY: "1,3" }),
        },
        Case {
            name: "with a revision that is not a number nothing changes",
            of_deployment: json!({ "note": "new" }),
            set: json!({ REVISION: "x" }),
            revision: 5,
            changes: json!({}),
        },
        Case {
            name: "an empty revision counts as none",
            of_deployment: json!({}),
            set: json!({ REVISION: "" }),
            revision: 1,
            changes: json!({ REVISION: "1" }),
        },
        Case {
            name: "annotations are copied, and those that the deployment does not have stay",
            of_deployment: json!({ "a": "new", "b": "same" }),
            set: json!({ REVISION: "1", "a": "old", "b": "same", "c": "kept" }),
            revision: 1,
            changes: json!({ "a": "new" }),
        },
        Case {
            name: "annotations of the controller are not copied",
            of_deployment: json!({
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                REVISION: "9",
                HISTORY: "8",
                "deployment.kubernetes.io/desired-replicas": "9",
                "deployment.kubernetes.io/max-replicas": "9",
                "deprecated.deployment.rollback.to": "9",
            }),
            set: json!({ REVISION: "1" }),
            revision: 1,
            changes: json!({}),
        },
    ] {
        let (owner, of_set) = (
            deployment("web").annotations(of_deployment).build(),
            set("a").with("/metadata", "annotations", of_set).build(),
        );
        let changed =
            new_replica_set_annotations(&owner.document.annotations(), &of_set.document.annotations(), revision);
        assert_eq!(json!(changed), changes, "{name}");
    }
}

#[test]
fn a_history_is_cut_at_two_thousand_characters_oldest_first() {
    let history = |text: &str, before: &str| {
        let owner = deployment("web").build();
        let set = set("a").annotation(HISTORY, text).revision(before).build();
        new_replica_set_annotations(&owner.document.annotations(), &set.document.annotations(), 10_000)
            .remove(HISTORY)
            .unwrap()
    };
    // 399 entries of four digits and their commas are 1995 characters; with one more it is 2000, and not more.
    let long = |count: usize| (1000..1000 + count).map(|revision| revision.to_string()).collect::<Vec<_>>().join(",");
    assert_eq!(history(&long(399), "9999"), format!("{},9999", long(399)));
    assert_eq!(history(&long(399), "9999").len(), 1999);
    assert_eq!(history(&format!("7,{}", long(399)), "9999"), format!("{},9999", long(399)), "the oldest is removed");
    assert_eq!(history(&"1".repeat(3000), "9999"), "9999", "an entry that is too long is removed");
}

#[test]
fn revisions_and_sizes_are_parsed() {
    for (text, revision, size) in [
        ("0", Some(0), Some(0)),
        ("42", Some(42), Some(42)),
        ("-1", Some(-1), None),
        ("+1", Some(1), None),
        ("2147483648", Some(2_147_483_648), None),
        ("", None, None),
        ("x", None, None),
    ] {
        let set = set("a").annotation(REVISION, text).annotation(DESIRED_REPLICAS, text).build();
        assert_eq!(revision_of(&set.metadata), revision, "{text:?}");
        assert_eq!(size_of(&set.metadata, DESIRED_REPLICAS), size, "{text:?}");
        let owner = deployment("web").annotations(json!({ "deprecated.deployment.rollback.to": text })).build();
        assert_eq!(rollback_to(&owner.metadata), revision, "{text:?}");
    }
    assert_eq!(revision_of(&set("a").build().metadata), Some(0), "0 without the annotation");
    assert_eq!(rollback_to(&deployment("web").build().metadata), None);
    assert_eq!(
        json!(replicas_annotations(4, 5)),
        json!({ "deployment.kubernetes.io/desired-replicas": "4", "deployment.kubernetes.io/max-replicas": "5" })
    );
}

#[test]
fn a_rollback_restores_the_annotations_of_the_replica_set() {
    let owner = deployment("web").annotations(json!({
        "kubernetes.io/change-cause": "edit",
        "lost": "x",
        REVISION: "2",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "deprecated.deployment.rollback.to": "1",
    }));
    let set = set("a").revision("1").sizes(1, 2).annotation("kubernetes.io/change-cause", "create");
    assert_eq!(
        json!(rolled_back(&owner.build().document.annotations(), &set.build().document.annotations())),
        json!({
            "kubernetes.io/change-cause": "create",
            REVISION: "2",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
        })
    );
}
