use std::collections::BTreeSet;

use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};
use kcm_framework::api::{ObjectKey, Uid, View as _};
use serde_json::{Value, json};

use super::super::claim::{NotAttached, Owner, attachable, volume_name};
use super::super::desired::{Desired, users_elsewhere};
use super::super::events::PodName;
use super::super::volume::Attachable;

fn volume(name: &str, spec_name: &str) -> Attachable {
    Attachable {
        unique_name: name.to_owned(),
        spec_name: spec_name.to_owned(),
        is_shared: false,
        inline: None,
        is_migrated: false,
    }
}

fn pod(name: &str) -> PodName {
    PodName { namespace: "ns".to_owned(), name: name.to_owned() }
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn nodes(desired: &Desired, volume: &str) -> Vec<String> {
    desired.wanted(volume).into_keys().collect()
}

#[test]
fn ad_3_b_14_pods_need_volumes_until_they_go() {
    let (one, two) = (Uid::from("1"), Uid::from("2"));
    let mut desired = Desired::default();
    assert_eq!(desired.add(&one, &pod("a"), "n1", vec![volume("v", "pv"), volume("w", "pw")]), names(&["v", "w"]));
    assert_eq!(desired.add(&one, &pod("a"), "n1", vec![volume("v", "pv")]), names(&[]), "known already");
    assert_eq!(desired.add(&two, &pod("b"), "n2", vec![volume("v", "pv")]), names(&["v"]));
    assert_eq!(nodes(&desired, "v"), ["n1", "n2"]);
    assert_eq!(users_elsewhere(&desired.wanted("v"), "n2"), [pod("a")]);
    assert_eq!(desired.remove(&one), names(&["v", "w"]), "T-16: without claims and volumes");
    assert_eq!(nodes(&desired, "v"), ["n2"]);
    assert_eq!(nodes(&desired, "w"), [""; 0]);
    assert_eq!(desired.remove(&one), names(&[]), "a second deletion");
    assert_eq!(users_elsewhere(&desired.wanted("v"), "n2"), []);
}

#[test]
fn ad_6_a_volume_that_is_not_attached_any_more_leaves_its_pods() {
    let one = Uid::from("1");
    let mut desired = Desired::default();
    desired.add(&one, &pod("a"), "n", vec![volume("v", "pv"), volume("w", "pw")]);
    assert_eq!(desired.retain(&one, |name| name == "v"), names(&["w"]));
    assert_eq!((desired.on_node("n"), desired.volumes()), (vec!["v".to_owned()], names(&["v"])));
    assert_eq!(desired.uid(&pod("a").key()), Some(one.clone()), "it needs the other one");
    assert_eq!(desired.retain(&one, |_| false), names(&["v"]));
    assert_eq!((desired.on_node("n"), desired.uid(&pod("a").key())), (Vec::new(), None));
}

#[test]
fn t_17_a_pair_keeps_its_first_volume() {
    let mut desired = Desired::default();
    desired.add(&Uid::from("1"), &pod("a"), "n", vec![volume("v", "first")]);
    desired.add(&Uid::from("2"), &pod("b"), "n", vec![volume("v", "second")]);
    let wanted = desired.wanted("v").remove("n").unwrap();
    assert_eq!((wanted.volume.spec_name.as_str(), wanted.pods.len()), ("first", 2));
}

#[test]
fn ad_4_claims_lead_to_their_volume() {
    let claim = |phase: &str, volume: &str, owner: &str| {
        let owners = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": true }]);
        let metadata = json!({ "namespace": "ns", "name": "c", "uid": "cu", "ownerReferences": owners });
        let object = json!({ "metadata": metadata, "spec": { "volumeName": volume }, "status": { "phase": phase } });
        PersistentVolumeClaim::decode(&object.to_string()).unwrap()
    };
    let key = || ObjectKey::namespaced("ns", "c");
    let pod_key = ObjectKey::namespaced("ns", "p");
    let owner = |uid| Some(Owner { key: &pod_key, uid });
    let (own, other) = (Uid::from("pu"), Uid::from("other"));
    let not_bound = || Err(NotAttached::NotBound { claim: key() });
    for (name, claim, owner, expected) in [
        ("bound", claim("Bound", "pv", "pu"), None, Ok("pv")),
        ("own", claim("Bound", "pv", "pu"), owner(&own), Ok("pv")),
        (
            "of another pod",
            claim("Bound", "pv", "pu"),
            owner(&other),
            Err(NotAttached::NotOwner { claim: key(), pod: pod_key.clone() }),
        ),
        ("pending", claim("Pending", "pv", "pu"), None, not_bound()),
        ("lost", claim("Lost", "pv", "pu"), None, not_bound()),
        ("no volume", claim("Bound", "", "pu"), None, not_bound()),
    ] {
        assert_eq!(volume_name(&claim, owner), expected, "{name}");
    }
    let error = NotAttached::NotOwner { claim: key(), pod: pod_key.clone() };
    assert_eq!(error.to_string(), "PVC ns/c was not created for pod ns/p (pod is not owner)");

    let volume = |reference: Value, source: Value| {
        let object = json!({ "metadata": { "name": "pv" }, "spec": { "claimRef": reference, "csi": source } });
        PersistentVolume::decode(&object.to_string()).unwrap()
    };
    let csi = || json!({ "driver": "d", "volumeHandle": "h" });
    let bound = claim("Bound", "pv", "pu");
    let of = |uid: &str| json!({ "namespace": "ns", "name": "c", "uid": uid });
    let found = attachable(&bound, &volume(of("cu"), csi())).map(|volume| volume.unique_name);
    assert_eq!(found, Ok("kubernetes.io/csi/d^h".to_owned()));
    let foreign = || Err(NotAttached::OtherClaim { volume: "pv".to_owned(), claim: key() });
    assert_eq!(attachable(&bound, &volume(of("old"), csi())), foreign(), "an earlier claim");
    assert_eq!(attachable(&bound, &volume(Value::Null, csi())), foreign(), "no claim");
    let no_plugin = Err(NotAttached::NoPlugin { volume: "pv".to_owned() });
    assert_eq!(attachable(&bound, &volume(of("cu"), Value::Null)), no_plugin, "no plugin");
}
