//! PVCP-2: the claims that a change of a Pod enqueues.

use std::sync::Arc;

use kcm_framework::api::views::{Pod, PodDeletion, PodVolumes};
use kcm_framework::api::{Need, Needs, ObjectKey, View as _};
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use crate::persistentvolumeclaim_protection::event_mapping::keys_for_pod;
use crate::persistentvolumeclaim_protection::usage::PodReader;

/// A Pod on a Node that runs and uses the claim `data`, with these changes.
fn pod(changes: &[(&str, Value)]) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": { "name": "web", "namespace": "shop", "uid": "1" },
        "spec": { "nodeName": "n1", "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }] },
        "status": { "phase": "Running" },
    });
    for (path, value) in changes {
        *pod.pointer_mut(path).unwrap() = value.clone();
    }
    Arc::new(Pod::decode(&pod.to_string()).unwrap())
}

fn updated(old: &[(&str, Value)], new: &[(&str, Value)]) -> Change<Pod> {
    Change::Updated { old: pod(old), new: pod(new) }
}

#[test]
fn pvcp_2_a_pod_enqueues_its_claims_when_its_use_of_them_may_have_changed() {
    let needs: Needs = [Need::part::<PodVolumes>(), Need::part::<PodDeletion>()].into_iter().collect();
    let reader = PodReader { volumes: needs.reader().unwrap(), deletions: needs.reader().unwrap() };
    let phase = |phase: &str| ("/status/phase", json!(phase));
    let (unscheduled, other_uid) = (("/spec/nodeName", json!("")), ("/metadata/uid", json!("2")));
    let no_claims = ("/spec/volumes", json!([{ "name": "v", "emptyDir": {} }]));
    let both = ["data", "data"];
    for (name, change, expected) in [
        ("added", Change::Added(pod(&[])), &["data"][..]),
        ("added without claims", Change::Added(pod(std::slice::from_ref(&no_claims))), &[]),
        ("a running pod is updated", updated(&[], &[]), &[]),
        ("it finishes", updated(&[], &[phase("Succeeded")]), &["data"]),
        ("a finished pod is updated", updated(&[phase("Failed")], &[phase("Failed")]), &[]),
        ("it is scheduled", updated(std::slice::from_ref(&unscheduled), &[]), &["data"]),
        ("deleted", Change::Deleted { last: pod(&[]), final_state_known: true }, &["data"]),
        ("the deletion was missed", Change::Deleted { last: pod(&[]), final_state_known: false }, &["data"]),
        ("recreated, and only the old pod uses it", updated(&[], &[other_uid.clone(), no_claims]), &["data"]),
        ("recreated, and both pods use it", updated(&[], &[other_uid]), &both),
        ("it cannot be decoded", Change::Undecodable { last: pod(&[]) }, &[]),
    ] {
        let expected: Vec<ObjectKey> = expected.iter().map(|claim| ObjectKey::namespaced("shop", *claim)).collect();
        assert_eq!(keys_for_pod(&change, reader), expected, "{name}");
    }
}
