//! The owner references of claims.

use kcm_framework::api::views::PersistentVolumeClaim;
use kcm_framework::api::{Document, View as _};
use serde_json::{Value, json};

use super::fixtures::{Claims, claim, merge, set, with_claims};
use crate::statefulset::claim_work::PodClaims;
use crate::statefulset::retention::ClaimOwners;

fn reference(kind: &str, name: &str, uid: &str, controller: bool) -> Value {
    let api_version = if kind == "Pod" { "v1" } else { "apps/v1" };
    let mut reference = json!({ "apiVersion": api_version, "kind": kind, "name": name, "uid": uid });
    if controller {
        reference["controller"] = json!(true);
        reference["blockOwnerDeletion"] = json!(true);
    }
    reference
}

fn by_set() -> Value {
    reference("StatefulSet", "web", "uid-of-web", true)
}

fn by_pod() -> Value {
    reference("Pod", "web-1", "uid-of-web-1", true)
}

/// When deleted, when scaled, and whether the pod `web-1` is in the range of ordinals.
type Policy = (&'static str, &'static str, bool);

struct Judged {
    up_to_date: bool,
    stale: bool,
    conflicting: bool,
    updated: Value,
}

fn judge((when_deleted, when_scaled, in_range): Policy, owners: &Value) -> Judged {
    let mut changes = with_claims(when_deleted, when_scaled);
    changes["spec"]["replicas"] = json!(if in_range { 2 } else { 1 });
    let (set, uid) = (set(changes), kcm_framework::api::Uid::from("uid-of-web-1"));
    let of_pod = ClaimOwners::of(&set, "web-1", 1, Some(&uid));
    let json = json!({ "metadata": { "name": "data-web-1", "ownerReferences": owners }, "spec": { "unknown": 1 } });
    let claim = PersistentVolumeClaim::decode(&json.to_string()).unwrap();
    let updated: Document = of_pod.update(&claim.metadata, &claim.document).unwrap();
    let updated: Value = serde_json::from_str(updated.as_str()).unwrap();
    assert_eq!(updated["spec"], json["spec"], "other fields stay");
    Judged {
        up_to_date: of_pod.are_up_to_date(&claim.metadata),
        stale: of_pod.is_stale(&claim.metadata),
        conflicting: of_pod.has_other_controller(&claim.metadata),
        updated: updated["metadata"]["ownerReferences"].clone(),
    }
}

#[test]
fn each_policy_has_its_owners_and_an_update_sets_them() {
    let policies: [(Policy, Value); 8] = [
        (("Retain", "Retain", true), Value::Null),
        (("Retain", "Retain", false), Value::Null),
        (("Delete", "Retain", true), json!([by_set()])),
        (("Delete", "Retain", false), json!([by_set()])),
        (("Retain", "Delete", true), Value::Null),
        (("Retain", "Delete", false), json!([by_pod()])),
        (("Delete", "Delete", true), json!([by_set()])),
        (("Delete", "Delete", false), json!([by_pod()])),
    ];
    for (policy, wanted) in policies {
        for present in [json!([]), json!([by_set()]), json!([by_pod()]), json!([by_set(), by_pod()])] {
            let judged = judge(policy, &present);
            let is_wanted = if wanted.is_null() { present == json!([]) } else { present == wanted };
            assert_eq!(judged.up_to_date, is_wanted, "{policy:?} {present}");
            assert_eq!(judged.updated, wanted, "{policy:?} {present}");
            assert!(!judged.stale && !judged.conflicting);
        }
    }
}

#[test]
fn a_policy_that_is_not_known_retains() {
    assert!(judge(("Keep", "Keep", false), &json!([])).up_to_date);
}

#[test]
fn references_to_earlier_objects_of_the_same_name_are_left_to_the_garbage_collector() {
    for owner in [reference("StatefulSet", "web", "earlier", true), reference("Pod", "web-1", "earlier", true)] {
        for policy in [("Delete", "Delete", true), ("Retain", "Retain", true), ("Retain", "Delete", false)] {
            let judged = judge(policy, &json!([owner]));
            assert!(judged.up_to_date, "{policy:?} {owner}");
            let (is_pod, deletes) = (owner["kind"] == "Pod", policy.1 == "Delete");
            assert_eq!(judged.stale, is_pod && deletes, "{policy:?} {owner}");
        }
    }
}

#[test]
fn a_claim_of_another_controller_is_left_to_it() {
    let other = reference("ReplicaSet", "other", "uid-of-other", true);
    let deletes = ("Delete", "Delete", true);
    let judged = judge(deletes, &json!([other]));
    assert!(judged.conflicting && judged.up_to_date);
    let judged = judge(deletes, &json!([other, by_set()]));
    assert!(judged.conflicting && !judged.up_to_date);
    assert_eq!(judged.updated, json!([other]), "ours are removed");
    assert!(!judge(("Retain", "Retain", true), &json!([other])).conflicting, "nothing is to be deleted");
}

#[test]
fn owners_that_do_not_control_the_claim_stay() {
    let other = reference("ConfigMap", "other", "uid-of-other", false);
    let judged = judge(("Delete", "Retain", true), &json!([other]));
    assert!(!judged.conflicting && !judged.up_to_date);
    assert_eq!(judged.updated, json!([other, by_set()]));
    let judged = judge(("Delete", "Retain", true), &json!([reference("StatefulSet", "web", "uid-of-web", false)]));
    assert!(!judged.up_to_date, "an owner that is no controller is repaired");
    assert_eq!(judged.updated, json!([by_set()]));
}

#[test]
fn a_new_claim_has_the_owner_that_its_policy_wants() {
    for (policy, expected) in [
        (("Retain", "Retain"), false),
        (("Delete", "Retain"), true),
        (("Retain", "Delete"), false),
        (("Delete", "Delete"), true),
    ] {
        let set = set(with_claims(policy.0, policy.1));
        let owner = ClaimOwners::of(&set, "web-0", 0, None).of_new_claim();
        assert_eq!(owner.is_some(), expected, "{policy:?}");
        if let Some(owner) = owner {
            let owners = serde_json::to_value([owner]).unwrap();
            assert_eq!(owners, json!([by_set()]));
            assert!(ClaimOwners::of(&set, "web-0", 0, None).are_up_to_date(&claim("data-web-0", owners).metadata));
        }
    }
}

#[test]
fn a_pod_waits_for_a_claim_of_an_earlier_pod_beside_any_other_claims() {
    #[derive(Clone, Copy)]
    enum Claim {
        Missing,
        Exists,
        Stale,
        OfPod,
    }
    use Claim::{Exists, Missing, OfPod, Stale};
    for (name, claims, has_pod, expected) in [
        ("all are missing", vec![Missing, Missing], true, false),
        ("no claims", vec![], true, false),
        ("one exists", vec![Missing, Exists], true, false),
        ("both refer to the pod", vec![OfPod, OfPod], true, false),
        ("one is stale and one exists", vec![Stale, Exists], true, true),
        ("one is stale and one is missing", vec![Stale, Missing], true, true),
        ("one refers to the pod and one is stale", vec![OfPod, Stale], true, true),
        ("one refers to a pod that does not exist yet", vec![OfPod], false, true),
    ] {
        let template = |at: usize| json!({ "metadata": { "name": format!("claim-{at}") } });
        let templates: Vec<_> = (0..claims.len()).map(template).collect();
        let mut changes = with_claims("Retain", "Delete");
        merge(&mut changes, json!({ "spec": { "volumeClaimTemplates": templates } }));
        let set = set(changes);
        let owned = |uid: &str| json!([reference("Pod", "web-3", uid, false)]);
        let existing = claims.iter().enumerate().filter_map(|(at, state)| {
            let owners = match state {
                Missing => return None,
                Exists => json!([]),
                Stale => owned("stale"),
                OfPod => owned("uid-of-web-3"),
            };
            Some(claim(&format!("claim-{at}-web-3"), owners))
        });
        let existing = Claims::of(existing);
        let uid = kcm_framework::api::Uid::from("uid-of-web-3");
        let claims = PodClaims::of(&set, "web-3", 3, has_pod.then_some(&uid), &existing);
        assert_eq!(claims.is_stale(), expected, "{name}");
    }
}

#[test]
fn any_controller_but_the_set_and_the_pod_is_another_one() {
    let custom = |controller: Value| {
        let mut owner = json!({ "apiVersion": "chipmunks/v1", "kind": "Custom", "name": "simon", "uid": "other" });
        merge(&mut owner, json!({ "controller": controller }));
        owner
    };
    let own = || by_pod();
    for (name, owners, expected) in [
        ("a custom controller", json!([custom(json!(true))]), true),
        ("a custom owner that controls nothing", json!([custom(json!(false))]), false),
        ("a custom owner that does not say", json!([custom(Value::Null)]), false),
        ("another pod", json!([reference("Pod", "simon", "other", true)]), true),
        ("another set", json!([reference("Set", "simon", "other", true)]), true),
        ("the set", json!([by_set()]), false),
        ("an earlier set of the name", json!([reference("StatefulSet", "web", "earlier", true)]), true),
        ("the pod", json!([own()]), false),
        ("an earlier pod of the name", json!([reference("Pod", "web-1", "earlier", true)]), true),
        ("the pod and another controller", json!([own(), custom(json!(true))]), true),
        ("the pod and an owner that controls nothing", json!([own(), custom(json!(false))]), false),
    ] {
        assert_eq!(judge(("Delete", "Delete", true), &owners).conflicting, expected, "{name}");
    }
}

/// Upstream's case is `TestNonController`.
#[test]
fn an_own_reference_without_control_is_found_by_its_uid() {
    let set = set(with_claims("Delete", "Delete"));
    let pod_uid = kcm_framework::api::Uid::from("uid-of-web-1");
    let by = |owner: Value, controller: Value| {
        let mut owner = owner;
        merge(&mut owner, json!({ "controller": controller }));
        owner
    };
    let (yes, no, unset) = (|| json!(true), || json!(false), || Value::Null);
    for (name, owners, expected) in [
        ("set and pod controller", json!([by(by_pod(), yes()), by(by_set(), yes())]), false),
        ("set controller, pod noncontroller", json!([by(by_pod(), unset()), by(by_set(), yes())]), true),
        ("set noncontroller, pod controller", json!([by(by_pod(), yes()), by(by_set(), unset())]), true),
        ("set controller", json!([by(by_set(), yes())]), false),
        ("pod controller", json!([by(by_pod(), yes())]), false),
        ("nothing", json!([]), false),
        ("set noncontroller", json!([by(by_set(), unset())]), true),
        ("set noncontroller with ptr", json!([by(by_set(), no())]), true),
        ("pod noncontroller", json!([by(by_pod(), unset())]), true),
        ("other noncontroller", json!([by(reference("Pod", "web-1", "not-matching", false), unset())]), false),
    ] {
        let owners_of = ClaimOwners::of(&set, "web-1", 1, Some(&pod_uid));
        assert_eq!(owners_of.own_without_control(&claim("data-web-1", owners).metadata), expected, "{name}");
    }
}
