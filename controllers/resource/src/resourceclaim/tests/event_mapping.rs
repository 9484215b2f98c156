//! Keys that changes enqueue.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::Uid;
use kcm_framework::api::views::{Pod, PodClaims, PodGroup, ResourceClaim};
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use super::{claim_view, needs, pod_view};
use crate::resourceclaim::deleted::DeletedConsumers;
use crate::resourceclaim::event_mapping::{Users, keys_for_claim, keys_for_group, keys_for_pod, keys_for_template};
use crate::resourceclaim::template::ClaimTemplate;
use crate::tests::{key, view};

fn pod(uid: &str, spec: &Value, status: &Value) -> Value {
    json!({ "metadata": { "namespace": "shop", "name": "web", "uid": uid }, "spec": spec, "status": status })
}

fn spec() -> Value {
    json!({ "resourceClaims": [{ "name": "gpu", "resourceClaimName": "c" }] })
}

fn users() -> Users {
    Users { pods: vec![key("web")], groups: vec![key("g")] }
}

fn keys(keys: &[crate::resourceclaim::key::Key]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

#[test]
fn s66_a_pod_enqueues_itself_and_the_claims_that_it_does_not_need() {
    let added = |pod: Value| Change::Added(pod_view(&pod));
    let updated = |old: Value, new: Value| Change::Updated { old: pod_view(&old), new: pod_view(&new) };
    let deleted = |pod: Value, final_state_known| Change::<Pod>::Deleted { last: pod_view(&pod), final_state_known };
    let running = || pod("u", &spec(), &json!({}));
    let extended = || json!({ "extendedResourceClaimStatus": { "resourceClaimName": "e" } });
    let mut terminating = running();
    terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut labeled = running();
    labeled["metadata"]["labels"] = json!({ "a": "b" });
    let succeeded = || pod("u", &spec(), &json!({ "phase": "Succeeded" }));
    for (name, change, expected, is_kept) in [
        ("without claims", added(pod("u", &json!({}), &json!({}))), &[][..], false),
        ("added", added(running()), &["pod:shop/web"], false),
        ("added with an extended claim", added(pod("u", &json!({}), &extended())), &["pod:shop/web"], false),
        ("finished", updated(running(), succeeded()), &["claim:shop/c", "pod:shop/web"], false),
        ("finished when it starts", added(succeeded()), &["claim:shop/c", "pod:shop/web"], false),
        ("terminating and not scheduled", updated(running(), terminating), &["claim:shop/c", "pod:shop/web"], false),
        ("other labels", updated(running(), labeled), &[], false),
        ("recreated", updated(running(), pod("v", &spec(), &json!({}))), &["claim:shop/c", "pod:shop/web"], true),
        ("deleted", deleted(pod("u", &spec(), &extended()), true), &["claim:shop/c", "claim:shop/e"], true),
        ("missing in a list", deleted(running(), false), &["claim:shop/c"], false),
    ] {
        let (seen, needs) = (DeletedConsumers::default(), needs());
        let found = keys_for_pod(&change, needs.reader::<PodClaims>().unwrap(), &seen, |_| true);
        assert_eq!(keys(&found), expected, "{name}");
        assert_eq!(seen.contains(&Uid::from("u")), is_kept, "{name}");
    }
    let needs = needs();
    let idle =
        keys_for_pod(&added(running()), needs.reader::<PodClaims>().unwrap(), &DeletedConsumers::default(), |_| false);
    assert_eq!(keys(&idle), [""; 0], "a pod without work is not enqueued");
}

#[test]
fn s68_claims_and_templates_enqueue_their_users() {
    let claim = || claim_view(&json!({ "metadata": { "namespace": "shop", "name": "c" } }));
    let of_claim = |change: Change<ResourceClaim>| keys(&keys_for_claim(&change, |_| users()));
    let all = ["claim:shop/c", "podgroup:shop/g", "pod:shop/web"];
    assert_eq!(of_claim(Change::Added(claim())), all);
    assert_eq!(of_claim(Change::Updated { old: claim(), new: claim() }), all);
    assert_eq!(of_claim(Change::Deleted { last: claim(), final_state_known: true }), all);
    assert_eq!(of_claim(Change::Undecodable { last: claim() }), [""; 0]);
    let template = || view::<ClaimTemplate>(&json!({ "metadata": { "namespace": "shop", "name": "t" } }), &needs());
    let of_template = |change: Change<ClaimTemplate>| keys(&keys_for_template(&change, |_| users()));
    assert_eq!(of_template(Change::Added(template())), all[1..]);
    assert_eq!(of_template(Change::Updated { old: template(), new: template() }), all[1..]);
    assert_eq!(of_template(Change::Deleted { last: template(), final_state_known: true }), [""; 0]);
}

#[test]
fn s68_a_group_enqueues_itself_its_pods_and_the_claims_that_it_leaves() {
    let group = |uid: &str| {
        let metadata = json!({ "namespace": "shop", "name": "g", "uid": uid });
        view::<PodGroup>(&json!({ "metadata": metadata, "spec": spec() }), &needs())
    };
    let of_group = |change: Change<PodGroup>, seen: &DeletedConsumers| {
        keys(&keys_for_group(&change, seen, |_| true, |_: &ObjectKey| vec![key("web")]))
    };
    let seen = DeletedConsumers::default();
    assert_eq!(of_group(Change::Added(group("u")), &seen), ["podgroup:shop/g", "pod:shop/web"]);
    assert!(!seen.contains(&Uid::from("u")));
    let recreated = Change::Updated { old: group("t"), new: group("u") };
    assert_eq!(of_group(recreated, &seen), ["claim:shop/c", "podgroup:shop/g", "pod:shop/web"]);
    assert!(seen.contains(&Uid::from("t")));
    let deleted = Change::Deleted { last: group("u"), final_state_known: true };
    assert_eq!(of_group(deleted, &seen), ["claim:shop/c", "pod:shop/web"]);
    assert!(seen.contains(&Uid::from("u")));
}

#[test]
fn the_uids_of_the_last_500_deletions_are_kept() {
    let seen = DeletedConsumers::default();
    for number in 0..501 {
        seen.insert(&Uid::from(&*format!("u{number}")));
    }
    assert!(!seen.contains(&Uid::from("u0")));
    assert!(seen.contains(&Uid::from("u1")) && seen.contains(&Uid::from("u500")));
}
