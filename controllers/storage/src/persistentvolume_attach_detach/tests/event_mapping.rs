use std::sync::Arc;

use kcm_framework::api::views::{
    Node, NodeVolumes, PersistentVolume, PersistentVolumeClaim, Pod, PodDeletion, PodInlineVolumes, PodVolumes,
};
use kcm_framework::api::{DecodeContext, Need, Needs, ObjectKey, Uid, View as _};
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use super::super::event_mapping::{key_for_pod, keys_for_node, keys_for_volume, pods_for_claim};
use super::super::events::PodName;
use super::super::reports::Change as ReportChange;
use super::super::state::State;
use super::super::volume::Attachable;
use super::super::world::{MANAGED, Parts};

fn parts() -> Parts {
    let needs: Needs = [
        Need::part::<PodVolumes>(),
        Need::part::<PodInlineVolumes>(),
        Need::part::<PodDeletion>(),
        Need::part::<NodeVolumes>(),
    ]
    .into_iter()
    .collect();
    Parts {
        claims: needs.reader().unwrap(),
        inline: needs.reader().unwrap(),
        deletions: needs.reader().unwrap(),
        nodes: needs.reader().unwrap(),
    }
}

fn pod(node: Option<&str>, phase: &str, volumes: &Value) -> Arc<Pod> {
    let spec = json!({ "nodeName": node, "volumes": volumes });
    let object = json!({ "metadata": { "namespace": "ns", "name": "p" }, "spec": spec, "status": { "phase": phase } });
    Arc::new(Pod::decode(&object.to_string()).unwrap())
}

fn added<T>(object: &Arc<T>) -> Change<T> {
    Change::Added(Arc::clone(object))
}

fn updated<T>(old: &Arc<T>, new: &Arc<T>) -> Change<T> {
    Change::Updated { old: Arc::clone(old), new: Arc::clone(new) }
}

fn deleted<T>(last: &Arc<T>) -> Change<T> {
    Change::Deleted { last: Arc::clone(last), final_state_known: false }
}

fn texts(keys: impl IntoIterator<Item = super::super::key::Key>) -> Vec<String> {
    keys.into_iter().map(|key| key.to_string()).collect()
}

#[test]
fn ad_2_pods_are_enqueued_when_their_needs_change() {
    let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }]);
    let running = pod(Some("n"), "Running", &volumes);
    let waiting = pod(None, "Pending", &volumes);
    let finished = pod(Some("n"), "Failed", &volumes);
    let plain = pod(Some("n"), "Running", &json!([]));
    let inline = pod(Some("n"), "Running", &json!([{ "name": "v", "fc": { "wwids": ["w"] } }]));
    for (name, change, is_enqueued) in [
        ("added", added(&running), true),
        ("added with a volume of its own", added(&inline), true),
        ("not scheduled", added(&waiting), false),
        ("finished before", added(&finished), false),
        ("no volumes", added(&plain), false),
        ("scheduled", updated(&waiting, &running), true),
        ("finished", updated(&running, &finished), true),
        ("another change", updated(&running, &running), false),
        ("T-26: deleted, found by a list", deleted(&running), true),
        ("deleted before it was scheduled", deleted(&waiting), false),
        ("undecodable", Change::Undecodable { last: Arc::clone(&running) }, false),
    ] {
        let key = key_for_pod(&change, parts()).map(|key| key.to_string());
        assert_eq!(key, is_enqueued.then(|| "pod:ns/p".to_owned()), "{name}");
    }
}

#[test]
fn ad_5_claims_and_volumes_enqueue_their_pods() {
    let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }]);
    let running = pod(Some("n"), "Running", &volumes);
    let finished = pod(Some("n"), "Failed", &volumes);
    let claim = |phase: &str| {
        let metadata = json!({ "namespace": "ns", "name": "c" });
        let object = json!({ "metadata": metadata, "spec": { "volumeName": "pv" }, "status": { "phase": phase } });
        Arc::new(PersistentVolumeClaim::decode(&object.to_string()).unwrap())
    };
    let (bound, pending) = (claim("Bound"), claim("Pending"));
    let pods_of = |of: &ObjectKey| {
        assert_eq!(*of, ObjectKey::namespaced("ns", "c"));
        vec![Arc::clone(&running), Arc::clone(&finished)]
    };
    for (name, change, expected) in [
        ("bound", updated(&pending, &bound), &["pod:ns/p"][..]),
        ("bound before", added(&bound), &["pod:ns/p"]),
        ("pending", added(&pending), &[]),
        ("no change", updated(&bound, &bound), &[]),
        ("deleted", deleted(&bound), &[]),
    ] {
        assert_eq!(texts(pods_for_claim(&change, parts(), pods_of)), expected, "{name}");
    }

    let volume = |claim: Value| {
        let spec = json!({ "claimRef": claim, "csi": { "driver": "d", "volumeHandle": "h" } });
        let object = json!({ "metadata": { "name": "pv" }, "spec": spec });
        Arc::new(PersistentVolume::decode(&object.to_string()).unwrap())
    };
    let of_claim = volume(json!({ "namespace": "ns", "name": "c", "uid": "u" }));
    let free = volume(Value::Null);
    let key = "volume:kubernetes.io/csi/d^h";
    for (name, change, expected) in [
        ("added", added(&of_claim), &["pod:ns/p", key][..]),
        ("reserved", updated(&free, &of_claim), &["pod:ns/p", key]),
        ("free", added(&free), &[key]),
        ("no change", updated(&of_claim, &of_claim), &[]),
        ("deleted", deleted(&of_claim), &[key]),
    ] {
        assert_eq!(texts(keys_for_volume(&change, parts(), pods_of)), expected, "{name}");
    }
}

#[test]
fn b_10_nodes_enqueue_what_changes_on_them() {
    let node = |ready: &str, attached: &[&str], in_use: &[&str]| {
        let attached: Vec<_> = attached.iter().map(|name| json!({ "name": name, "devicePath": "" })).collect();
        let conditions = json!([{ "type": "Ready", "status": ready }]);
        let status = json!({ "conditions": conditions, "volumesAttached": attached, "volumesInUse": in_use });
        let annotations = json!({ MANAGED: "true" });
        let object = json!({ "metadata": { "name": "n", "annotations": annotations }, "status": status });
        let needs: Needs = [Need::part::<NodeVolumes>(), Need::annotation::<Node>(MANAGED)].into_iter().collect();
        let context = Arc::new(DecodeContext::new::<Node>(Arc::default(), &needs));
        Arc::new(context.scope(|| Node::decode(&object.to_string())).unwrap())
    };
    let (a, b, wanted) = ("kubernetes.io/csi/d^a", "kubernetes.io/csi/d^b", "kubernetes.io/csi/d^wanted");
    let (key_a, key_b, key_wanted) = (&*format!("volume:{a}"), &*format!("volume:{b}"), &*format!("volume:{wanted}"));
    let unused = node("True", &[], &[]);
    let one = node("True", &[a, "vendor/driver/pv"], &[]);
    let used = node("True", &[a], &[a]);
    let two = node("True", &[a, b], &[a]);
    let lost = node("Unknown", &[a, b], &[a]);
    let state = State::default();
    let volume = Attachable {
        unique_name: wanted.to_owned(),
        spec_name: "pv".to_owned(),
        is_shared: true,
        inline: None,
        is_migrated: false,
    };
    let pod = PodName { namespace: "ns".to_owned(), name: "p".to_owned() };
    state.desired.lock().add(&Uid::from("1"), &pod, "n", vec![volume]);
    for (name, change, expected) in [
        ("added", added(&one), &[key_a, key_wanted][..]),
        ("reported", updated(&unused, &one), &[key_a]),
        ("used", updated(&one, &used), &[key_a]),
        ("another one", updated(&used, &two), &[key_b]),
        ("withdrawn", updated(&two, &used), &[key_b]),
        ("heartbeat", updated(&two, &two), &[]),
        ("not ready", updated(&two, &lost), &[key_a, key_b, key_wanted]),
        ("deleted", deleted(&lost), &[key_a, key_b, key_wanted, "node:n"]),
    ] {
        assert_eq!(texts(keys_for_node(&change, parts(), &state)), expected, "{name}");
    }
    let is_absent = |node: &str| node == "n";
    assert!(state.memories.idle(a, is_absent).is_empty(), "it was used when the node was deleted");
    assert_eq!(state.memories.idle(b, is_absent), ["n".to_owned()].into());
    keys_for_node(&deleted(&one), parts(), &state);
    assert!(state.memories.idle("vendor/driver/pv", is_absent).is_empty(), "no key would forget it");
    assert!(state.memories.idle(b, |_| false).is_empty(), "the node was created again");
    state.reports.request("n", a, ReportChange::Report);
    assert_eq!(texts(keys_for_node(&updated(&two, &two), parts(), &state)), ["node:n"], "a patch may be shown");
}
