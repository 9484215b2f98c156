//! Event mapping.

use std::time::Duration;

use kcm_framework::Enqueue;
use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::Pod;
use kcm_framework::informers::Change;
use serde_json::json;

use super::fixtures::{PodBuilder, ReplicaSetBuilder, key, pod, replica_set};
use crate::shared::replicas::event_mapping::{keys_for_pod, owners};

fn enqueue(name: &str) -> Enqueue<ObjectKey> {
    enqueue_after(name, 0)
}

fn enqueue_after(name: &str, seconds: u64) -> Enqueue<ObjectKey> {
    Enqueue { key: key(name), after: Duration::from_secs(seconds) }
}

fn added(pod: &PodBuilder) -> Change<Pod> {
    Change::Added(pod.build())
}

fn updated(old: &PodBuilder, new: &PodBuilder) -> Change<Pod> {
    Change::Updated { old: old.build(), new: new.clone().version("21").build() }
}

fn removed(pod: &PodBuilder, final_state_known: bool) -> Change<Pod> {
    Change::Deleted { last: pod.build(), final_state_known }
}

struct Case {
    name: &'static str,
    change: Change<Pod>,
    enqueues: Vec<Enqueue<ObjectKey>>,
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table, a row per case")]
fn changes_of_a_pod_enqueue_its_owner_and_possible_owners() {
    let by_app = |app: &str| json!({ "matchLabels": { "app": app } });
    // `web` and `twin` select the same pods, `slow` waits before a pod is available.
    let known = || {
        vec![
            replica_set("web"),
            replica_set("twin").selector(by_app("web")),
            replica_set("other"),
            replica_set("slow").min_ready_seconds(15),
            replica_set("everything").selector(json!({})),
            replica_set("invalid").selector(json!({ "matchExpressions": [{ "key": "app", "operator": "Like" }] })),
            replica_set("web").namespace("elsewhere"),
        ]
    };
    let orphan = || pod("a").orphan();
    let other_label = json!({ "app": "other" });
    let unrelated = json!({ "app": "nothing" });
    let slow = || pod("a").owned_by("slow");
    let case = |name, change, enqueues| Case { name, change, enqueues };
    for Case { name, change, enqueues } in [
        case("added, owned", added(&pod("a")), vec![enqueue("web")]),
        case("added, owned, already failed", added(&pod("a").phase("Failed")), vec![enqueue("web")]),
        case("added, owned, not selected", added(&pod("a").labels(unrelated.clone())), vec![enqueue("web")]),
        case("added, already terminating: counts as deleted", added(&pod("a").terminating()), vec![enqueue("web")]),
        case("added, orphan already terminating", added(&orphan().terminating()), vec![]),
        case("added, orphan: every match", added(&orphan()), vec![enqueue("web"), enqueue("twin")]),
        case("added, orphan without a match", added(&orphan().labels(unrelated.clone())), vec![]),
        case("added, orphan without labels", added(&orphan().labels(json!({}))), vec![]),
        case(
            "added, of a replica set recreated under the same name",
            added(&pod("a").owner("ReplicaSet", "web", "uid-before")),
            vec![],
        ),
        case("added, owned by another kind", added(&pod("a").owner("Job", "web", "uid-of-web")), vec![]),
        case("added, of an unknown replica set", added(&pod("a").owned_by("missing")), vec![]),
        case("added, owner in another namespace", added(&pod("a").namespace("nowhere")), vec![]),
        case("updated, owned: any change", updated(&pod("a"), &pod("a").restarts(1)), vec![enqueue("web")]),
        case("updated, begins to terminate", updated(&pod("a"), &pod("a").terminating()), vec![enqueue("web")]),
        case(
            "updated, terminating and relabelled",
            updated(&pod("a"), &pod("a").terminating().labels(other_label.clone())),
            vec![enqueue("web")],
        ),
        case(
            "updated, terminating and of another owner",
            updated(&pod("a"), &pod("a").terminating().owned_by("other").labels(other_label.clone())),
            vec![enqueue("web"), enqueue("other")],
        ),
        case(
            "updated, orphan begins to terminate",
            updated(&orphan(), &orphan().terminating().labels(other_label.clone())),
            vec![],
        ),
        case(
            "updated, terminating and ready: readiness does not matter any more",
            updated(&slow(), &slow().terminating().ready(0)),
            vec![enqueue("slow")],
        ),
        case(
            "updated, labels changed: only the owner",
            updated(&pod("a"), &pod("a").labels(other_label.clone())),
            vec![enqueue("web")],
        ),
        case(
            "updated, owner changed: both",
            updated(&pod("a"), &pod("a").owned_by("other")),
            vec![enqueue("web"), enqueue("other")],
        ),
        case(
            "updated, owner recreated under its name",
            updated(&pod("a").owner("ReplicaSet", "web", "uid-before"), &pod("a")),
            vec![enqueue("web")],
        ),
        case(
            "updated, released: the old owner and every match",
            updated(&pod("a"), &orphan()),
            vec![enqueue("web"), enqueue("web"), enqueue("twin")],
        ),
        case(
            "updated, released and relabelled: the old owner and the new match",
            updated(&pod("a"), &orphan().labels(other_label.clone())),
            vec![enqueue("web"), enqueue("other")],
        ),
        case("updated, adopted", updated(&orphan(), &pod("a").owned_by("twin")), vec![enqueue("twin")]),
        case(
            "updated, orphan relabelled: the new match",
            updated(&orphan().labels(other_label), &orphan()),
            vec![enqueue("web"), enqueue("twin")],
        ),
        case("updated, orphan, nothing that matters", updated(&orphan(), &orphan().ready(0)), vec![]),
        case(
            "became ready: again after the period",
            updated(&slow(), &slow().ready(0)),
            vec![enqueue("slow"), enqueue_after("slow", 15)],
        ),
        case("stays ready", updated(&slow().ready(9), &slow().ready(9).restarts(1)), vec![enqueue("slow")]),
        case("stops being ready", updated(&slow().ready(9), &slow()), vec![enqueue("slow")]),
        case("became ready without a period", updated(&pod("a"), &pod("a").ready(0)), vec![enqueue("web")]),
        case("deleted, owned", removed(&pod("a"), true), vec![enqueue("web")]),
        case("deleted, seen in a relist, owned", removed(&pod("a"), false), vec![enqueue("web")]),
        case("deleted, orphan", removed(&orphan(), true), vec![]),
        case("deleted, owner gone", removed(&pod("a").owned_by("missing"), true), vec![]),
    ] {
        let known: Vec<_> = known().iter().map(ReplicaSetBuilder::build).collect();
        assert_eq!(keys_for_pod(&change, &owners(known)), enqueues, "{name}");
    }
}

#[test]
fn of_many_that_select_a_pod_only_its_owner_is_enqueued() {
    let overlapping = (0..10)
        .map(|at| replica_set(&format!("web-{at}")).selector(json!({ "matchLabels": { "app": "web" } })).build());
    let known = owners(overlapping.collect::<Vec<_>>());
    assert_eq!(keys_for_pod(&added(&pod("a").owned_by("web-7")), &known), [enqueue("web-7")]);
}
