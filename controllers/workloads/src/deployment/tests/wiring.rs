//! Which change wakes which deployment.

use std::sync::Arc;

use kcm_api::ObjectKey;
use kcm_api::views::{Deployment, ReplicaSet};
use kcm_informers::{Change, Origin};
use serde_json::json;

use super::fixtures::{DeploymentBuilder, SetBuilder, deployment, key, pod_in, pod_of, set};
use crate::deployment::wiring::{Deployments, Family, keys_for_deployment, keys_for_pod, keys_for_replica_set};

struct Known(Vec<Arc<Deployment>>);

impl Deployments for Known {
    fn get(&self, key: &ObjectKey) -> Option<Arc<Deployment>> {
        self.0.iter().find(|known| known.metadata.key == *key).cloned()
    }

    fn in_namespace(&self, namespace: &str) -> Vec<Arc<Deployment>> {
        self.0.iter().filter(|known| known.metadata.key.namespace() == Some(namespace)).cloned().collect()
    }
}

/// `web` and `twin` select the same replica sets, `elsewhere` as well, but in another namespace.
fn known() -> Known {
    let all = [
        deployment("web"),
        deployment("twin"),
        deployment("other").selector(json!({ "matchLabels": { "app": "other" } })),
        deployment("everything").selector(json!({})),
        deployment("nothing").with("/spec", "selector", json!(null)),
        deployment("elsewhere").with("/metadata", "namespace", json!("elsewhere")),
    ];
    Known(all.iter().map(DeploymentBuilder::build).collect())
}

fn updated(old: &SetBuilder, new: &SetBuilder) -> Change<ReplicaSet> {
    Change::Updated { old: old.build(), new: new.clone().version("21").build() }
}

#[test]
fn changes_of_a_deployment_wake_it() {
    let web = || deployment("web").build();
    let same = || Change::Updated { old: web(), new: web() };
    let changed = || Change::Updated { old: web(), new: deployment("web").version("11").build() };
    for (name, change, origin, wakes) in [
        ("added", Change::Added(web()), Origin::Live, true),
        ("there at the start", Change::Added(web()), Origin::Initial, true),
        ("updated", changed(), Origin::Live, true),
        ("shown again by a list", same(), Origin::Live, false),
        ("resync", same(), Origin::Resync, true),
        ("deleted", Change::Deleted { last: web(), final_state_known: true }, Origin::Live, true),
        ("gone in a relist", Change::Deleted { last: web(), final_state_known: false }, Origin::Live, true),
    ] {
        let expected = if wakes { vec![key("web")] } else { vec![] };
        assert_eq!(keys_for_deployment(&change, origin), expected, "{name}");
    }
}

struct Case {
    name: &'static str,
    change: Change<ReplicaSet>,
    wakes: &'static [&'static str],
}

#[test]
fn changes_of_a_replica_set_wake_the_deployments_that_it_bears_on() {
    let own = || set("a");
    let orphan = || set("a").orphan();
    let other = || json!({ "app": "other" });
    let added = |set: SetBuilder| Change::Added(set.build());
    let removed = |set: SetBuilder, final_state_known| Change::Deleted { last: set.build(), final_state_known };
    for Case { name, change, wakes } in [
        Case { name: "added", change: added(own()), wakes: &["web"] },
        Case { name: "added while terminating", change: added(own().terminating()), wakes: &["web"] },
        Case { name: "added by the dead", change: added(own().owner("Deployment", "web", "before")), wakes: &[] },
        Case { name: "added by another kind", change: added(own().owner("Rollout", "web", "uid-of-web")), wakes: &[] },
        Case { name: "added by a stranger", change: added(own().owned_by("gone")), wakes: &[] },
        Case { name: "an orphan wakes all that match", change: added(orphan()), wakes: &["web", "twin"] },
        Case { name: "an orphan without labels", change: added(orphan().labels(json!({}))), wakes: &[] },
        Case { name: "an orphan that goes", change: added(orphan().terminating()), wakes: &[] },
        Case { name: "updated", change: updated(&own(), &own()), wakes: &["web"] },
        Case { name: "shown again", change: Change::Updated { old: own().build(), new: own().build() }, wakes: &[] },
        Case { name: "relabelled", change: updated(&own(), &own().labels(other())), wakes: &["web"] },
        Case { name: "of another owner", change: updated(&own(), &own().owned_by("other")), wakes: &["web", "other"] },
        Case { name: "released", change: updated(&own(), &orphan()), wakes: &["web", "web", "twin"] },
        Case { name: "adopted", change: updated(&orphan(), &own()), wakes: &["web"] },
        Case { name: "an orphan, otherwise changed", change: updated(&orphan(), &orphan()), wakes: &[] },
        Case {
            name: "an orphan, relabelled",
            change: updated(&orphan(), &orphan().labels(other())),
            wakes: &["other"],
        },
        Case { name: "deleted", change: removed(own(), true), wakes: &["web"] },
        Case { name: "gone in a relist", change: removed(own(), false), wakes: &["web"] },
        Case { name: "a deleted orphan", change: removed(orphan(), true), wakes: &[] },
    ] {
        let expected: Vec<_> = wakes.iter().map(|name| key(name)).collect();
        assert_eq!(keys_for_replica_set(&change, &known()), expected, "{name}");
    }
}

struct Kin {
    sets: Vec<Arc<ReplicaSet>>,
    others_run: bool,
}

impl Family for Kin {
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
    for (name, change, owner, owners_set, others_run, wakes) in [
        ("the last one", removed(), recreate(), set("a"), false, true),
        (
            "the last one, gone in a relist",
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
        ("of a replica set that is gone", removed(), recreate(), set("b"), false, false),
        ("of a namesake", removed(), recreate(), set("a").with("/metadata", "uid", json!("new")), false, false),
        ("of an orphan", removed(), recreate(), set("a").orphan(), false, false),
        ("of a deployment that is gone", removed(), recreate().uid("new"), set("a"), false, false),
    ] {
        let family = Kin { sets: vec![owners_set.build()], others_run };
        let expected = if wakes { vec![key("web")] } else { vec![] };
        assert_eq!(keys_for_pod(&change, &Known(vec![owner.build()]), &family), expected, "{name}");
    }
}
