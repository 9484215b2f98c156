//! Event mapping.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{Deployment, ReplicaSet};
use kcm_framework::informers::Change;
use serde_json::json;

use super::fixtures::{DeploymentBuilder, ReplicaSetBuilder, deployment, key, pod_in, pod_of, set};
use crate::deployment::event_mapping::{ReplicaSetLister, key_for_pod, owners};

/// `web` and `twin` select the same replica sets, `elsewhere` as well, but in another namespace.
fn known() -> Vec<Arc<Deployment>> {
    let all = [
        deployment("web"),
        deployment("twin"),
        deployment("other").selector(json!({ "matchLabels": { "app": "other" } })),
        deployment("everything").selector(json!({})),
        deployment("nothing").with("/spec", "selector", json!(null)),
        deployment("elsewhere").with("/metadata", "namespace", json!("elsewhere")),
    ];
    all.iter().map(DeploymentBuilder::build).collect()
}

fn updated(old: &ReplicaSetBuilder, new: &ReplicaSetBuilder) -> Change<ReplicaSet> {
    Change::Updated { old: old.build(), new: new.clone().version("21").build() }
}

struct Case {
    name: &'static str,
    change: Change<ReplicaSet>,
    enqueues: &'static [&'static str],
}

#[test]
fn changes_of_a_replica_set_enqueue_its_owner_and_possible_owners() {
    let own = || set("a");
    let orphan = || set("a").orphan();
    let other = || json!({ "app": "other" });
    let added = |set: ReplicaSetBuilder| Change::Added(set.build());
    let removed = |set: ReplicaSetBuilder, final_state_known| Change::Deleted { last: set.build(), final_state_known };
    for Case { name, change, enqueues } in [
        Case { name: "added", change: added(own()), enqueues: &["web"] },
        Case { name: "added while terminating", change: added(own().terminating()), enqueues: &["web"] },
        Case {
            name: "added, of a deployment recreated under the same name",
            change: added(own().owner("Deployment", "web", "before")),
            enqueues: &[],
        },
        Case {
            name: "added, of another kind",
            change: added(own().owner("Rollout", "web", "uid-of-web")),
            enqueues: &[],
        },
        Case { name: "added, of an unknown deployment", change: added(own().owned_by("gone")), enqueues: &[] },
        Case { name: "an orphan enqueues all that match", change: added(orphan()), enqueues: &["web", "twin"] },
        Case { name: "an orphan without labels", change: added(orphan().labels(json!({}))), enqueues: &[] },
        Case { name: "a terminating orphan", change: added(orphan().terminating()), enqueues: &[] },
        Case { name: "updated", change: updated(&own(), &own()), enqueues: &["web"] },
        Case { name: "relabelled", change: updated(&own(), &own().labels(other())), enqueues: &["web"] },
        Case {
            name: "of another owner",
            change: updated(&own(), &own().owned_by("other")),
            enqueues: &["web", "other"],
        },
        Case { name: "released", change: updated(&own(), &orphan()), enqueues: &["web", "web", "twin"] },
        Case { name: "adopted", change: updated(&orphan(), &own()), enqueues: &["web"] },
        Case { name: "an orphan, otherwise changed", change: updated(&orphan(), &orphan()), enqueues: &[] },
        Case {
            name: "an orphan, relabelled",
            change: updated(&orphan(), &orphan().labels(other())),
            enqueues: &["other"],
        },
        Case { name: "deleted", change: removed(own(), true), enqueues: &["web"] },
        Case { name: "deleted, seen in a relist", change: removed(own(), false), enqueues: &["web"] },
        Case { name: "a deleted orphan", change: removed(orphan(), true), enqueues: &[] },
    ] {
        let expected: Vec<_> = enqueues.iter().map(|name| key(name)).collect();
        assert_eq!(owners(known()).keys(&change), expected, "{name}");
    }
}

struct FakeReplicaSets {
    sets: Vec<Arc<ReplicaSet>>,
    others_run: bool,
}

impl ReplicaSetLister for FakeReplicaSets {
    fn replica_set(&self, key: &ObjectKey) -> Option<Arc<ReplicaSet>> {
        self.sets.iter().find(|set| set.metadata.key == *key).cloned()
    }

    fn has_running_pods(&self, _: &ReplicaSet) -> bool {
        self.others_run
    }
}

#[test]
fn only_the_last_pod_that_may_run_enqueues_and_only_a_deployment_that_recreates() {
    let pod = || pod_of("a");
    let removed = || Change::Deleted { last: pod(), final_state_known: true };
    let updated = |old, new| Change::Updated { old: pod_in("a", old), new: pod_in("a", new) };
    let recreate = || deployment("web").recreate();
    for (name, change, owner, owners_set, others_run, enqueues) in [
        ("the last one", removed(), recreate(), set("a"), false, true),
        (
            "the last one, deletion seen in a relist",
            Change::Deleted { last: pod(), final_state_known: false },
            recreate(),
            set("a"),
            false,
            true,
        ),
        ("others may run", removed(), recreate(), set("a"), true, false),
        ("the last one, finished", updated("Running", "Succeeded"), recreate(), set("a"), false, true),
        ("finished while others may run", updated("Running", "Failed"), recreate(), set("a"), true, false),
        ("finished before", updated("Failed", "Failed"), recreate(), set("a"), false, false),
        ("its node is lost", updated("Running", "Unknown"), recreate(), set("a"), false, false),
        ("of a rolling update", removed(), deployment("web"), set("a"), false, false),
        ("added", Change::Added(pod()), recreate(), set("a"), false, false),
        ("changed", updated("Running", "Running"), recreate(), set("a"), false, false),
        ("of a deleted replica set", removed(), recreate(), set("b"), false, false),
        (
            "of a set recreated under the same name",
            removed(),
            recreate(),
            set("a").with("/metadata", "uid", json!("new")),
            false,
            false,
        ),
        ("of an orphan", removed(), recreate(), set("a").orphan(), false, false),
        ("of a deleted deployment", removed(), recreate().uid("new"), set("a"), false, false),
    ] {
        let replica_sets = FakeReplicaSets { sets: vec![owners_set.build()], others_run };
        let expected = enqueues.then(|| key("web"));
        assert_eq!(key_for_pod(&change, &owners(vec![owner.build()]), &replica_sets), expected, "{name}");
    }
}
