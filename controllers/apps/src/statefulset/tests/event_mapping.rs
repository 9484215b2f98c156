//! The stateful sets that a change enqueues.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::Enqueue;
use kcm_framework::api::views::{PersistentVolumeClaim, Pod, StatefulSet};
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use super::fixtures::{Is, claim_with, pod, pod_with, set};
use crate::statefulset::event_mapping::{keys_for_claim, keys_for_pod, owners};
use crate::tests::cluster::key;

fn sets(min_ready_seconds: i32) -> Vec<Arc<StatefulSet>> {
    let other = json!({
        "metadata": { "name": "other", "uid": "uid-of-other" },
        "spec": { "selector": { "matchLabels": { "app": "other" } } },
    });
    vec![set(json!({ "spec": { "minReadySeconds": min_ready_seconds } })), set(other)]
}

fn of_pod(change: &Change<Pod>, min_ready_seconds: i32) -> Vec<Enqueue<kcm_framework::api::ObjectKey>> {
    keys_for_pod(change, &owners(sets(min_ready_seconds)))
}

#[test]
fn a_change_of_a_pod_enqueues_its_owner_before_and_after_it() {
    let orphan =
        |labels: Value| pod_with(0, Is::Ready, json!({ "metadata": { "ownerReferences": null, "labels": labels } }));
    let updated = |old, new| Change::Updated { old, new };
    let deleted = |last| Change::Deleted { last, final_state_known: true };
    let web = || vec![Enqueue::from(key("web"))];
    for (name, change, expected) in [
        ("added", Change::Added(pod(0, Is::Pending)), web()),
        ("updated", updated(pod(0, Is::Pending), pod(0, Is::Unready)), web()),
        ("deleted", deleted(pod(0, Is::Ready)), web()),
        ("released", updated(pod(0, Is::Ready), orphan(json!({ "app": "x" }))), web()),
        ("an orphan that is selected", Change::Added(orphan(json!({}))), web()),
        ("an orphan of another", Change::Added(orphan(json!({ "app": "other" }))), vec![Enqueue::from(key("other"))]),
        ("an orphan that none selects", Change::Added(orphan(json!({ "app": "x" }))), vec![]),
        ("an orphan that is gone", deleted(orphan(json!({}))), vec![]),
    ] {
        assert_eq!(of_pod(&change, 0), expected, "{name}");
    }
}

#[test]
fn a_pod_that_became_ready_enqueues_its_owner_again_when_it_is_available() {
    let later = Enqueue::after(key("web"), Duration::from_secs(30));
    let became = Change::Updated { old: pod(0, Is::Unready), new: pod(0, Is::Ready) };
    assert_eq!(of_pod(&became, 30), [Enqueue::from(key("web")), later]);
    assert_eq!(of_pod(&became, 0).len(), 1);
    let stays = Change::Updated { old: pod(0, Is::Ready), new: pod(0, Is::Ready) };
    assert_eq!(of_pod(&stays, 30).len(), 1);
}

#[test]
fn only_the_end_of_a_claim_enqueues_those_that_select_it() {
    let claim = claim_with("data-web-0", json!({ "metadata": { "labels": { "app": "web" } } }));
    let keys = |change: &Change<PersistentVolumeClaim>| keys_for_claim(change, &owners(sets(0)));
    assert_eq!(keys(&Change::Deleted { last: Arc::clone(&claim), final_state_known: false }), [key("web")]);
    assert!(keys(&Change::Added(Arc::clone(&claim))).is_empty());
    assert!(keys(&Change::Updated { old: Arc::clone(&claim), new: claim }).is_empty());
}
