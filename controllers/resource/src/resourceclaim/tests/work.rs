//! Pods and groups with work.

use std::sync::Arc;

use kcm_framework::api::views::{PodClaims, PodGroup, ResourceClaim};
use kcm_framework::informers::Lookup;
use serde_json::{Value, json};

use super::{claim_view, needs, pod_view};
use crate::resourceclaim::work::{Features, group_has_work, pod_has_work};
use crate::tests::view;

const DEFAULT: Features = Features { admin_access: true, prioritized_list: true, groups: false, group_claims: false };
const WITH_GROUPS: Features = Features { groups: true, group_claims: true, ..DEFAULT };

fn template_entry() -> Value {
    json!([{ "name": "gpu", "resourceClaimTemplateName": "t" }])
}

fn pod(spec: &Value, status: &Value) -> Value {
    json!({ "metadata": { "namespace": "shop", "name": "web", "uid": "u" }, "spec": spec, "status": status })
}

fn named() -> Value {
    json!({ "resourceClaimStatuses": [{ "name": "gpu", "resourceClaimName": "web-gpu" }] })
}

fn claim(owner: &str, status: &Value) -> Arc<ResourceClaim> {
    let owner = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": owner, "controller": true }]);
    claim_view(
        &json!({ "metadata": { "namespace": "shop", "name": "web-gpu", "ownerReferences": owner }, "status": status }),
    )
}

fn group(claims: &Value, statuses: &Value) -> Arc<PodGroup> {
    let metadata = json!({ "namespace": "shop", "name": "g", "uid": "gu" });
    view(
        &json!({ "metadata": metadata, "spec": { "resourceClaims": claims }, "status": { "resourceClaimStatuses": statuses } }),
        &needs(),
    )
}

fn found<V>(object: Option<&Arc<V>>) -> Lookup<V> {
    object.map_or(Lookup::Absent, |object| Lookup::Found(Arc::clone(object)))
}

#[test]
fn s67_a_pod_has_work_if_a_claim_is_missing_or_not_reserved() {
    let node = |mut spec: Value| {
        spec["nodeName"] = json!("n");
        spec
    };
    let of_template = || json!({ "resourceClaims": template_entry() });
    let of_user = || json!({ "resourceClaims": [{ "name": "gpu", "resourceClaimName": "web-gpu" }] });
    let with_phase = |mut status: Value, phase: &str| {
        status["phase"] = json!(phase);
        status
    };
    let allocated = json!({ "allocation": {} });
    let reserved = json!({ "allocation": {}, "reservedFor": [{ "resource": "pods", "name": "web", "uid": "u" }] });
    let empty = json!({});
    for (name, pod, claim, has_work) in [
        ("no name yet", pod(&of_template(), &json!({})), None, true),
        (
            "empty name",
            pod(&of_template(), &json!({ "resourceClaimStatuses": [{ "name": "gpu", "resourceClaimName": "" }] })),
            None,
            true,
        ),
        ("not needed", pod(&of_template(), &json!({ "resourceClaimStatuses": [{ "name": "gpu" }] })), None, false),
        ("unknown field", pod(&json!({ "resourceClaims": [{ "name": "gpu" }] }), &json!({})), None, true),
        ("missing", pod(&of_template(), &named()), None, true),
        ("missing, of the user", pod(&of_user(), &json!({})), None, false),
        ("not scheduled", pod(&of_template(), &named()), Some(claim("u", &allocated)), false),
        ("scheduled, not allocated", pod(&node(of_template()), &named()), Some(claim("u", &empty)), false),
        ("scheduled, not reserved", pod(&node(of_template()), &named()), Some(claim("u", &allocated)), true),
        ("scheduled, not reserved, of the user", pod(&node(of_user()), &json!({})), Some(claim("v", &allocated)), true),
        ("reserved", pod(&node(of_template()), &named()), Some(claim("u", &reserved)), false),
        ("of another owner", pod(&node(of_template()), &named()), Some(claim("v", &allocated)), false),
        (
            "t44: finished",
            pod(&node(of_user()), &with_phase(json!({}), "Succeeded")),
            Some(claim("v", &allocated)),
            false,
        ),
        ("finished, no name yet", pod(&of_template(), &with_phase(json!({}), "Failed")), None, false),
    ] {
        let (pod, needs) = (pod_view(&pod), needs());
        let used = needs.reader::<PodClaims>().unwrap();
        let work = pod_has_work(&pod, used.of(&pod), DEFAULT, |_| found(claim.as_ref()), |_| Lookup::Absent);
        assert_eq!(work, has_work, "{name}");
    }
}

#[test]
fn s67_a_claim_of_a_group_is_no_work_of_its_pods() {
    let group_of = |features, claims: &Value, exists: bool| {
        let spec = json!({ "resourceClaims": template_entry(), "schedulingGroup": { "podGroupName": "g" } });
        let (pod, needs) = (pod_view(&pod(&spec, &named())), needs());
        let used = needs.reader::<PodClaims>().unwrap();
        let group = exists.then(|| group(claims, &json!([])));
        pod_has_work(&pod, used.of(&pod), features, |_| Lookup::Absent, |_| found(group.as_ref()))
    };
    for (name, features, claims, exists, has_work) in [
        ("of the group", WITH_GROUPS, template_entry(), true, false),
        ("of another template", WITH_GROUPS, json!([{ "name": "gpu", "resourceClaimTemplateName": "u" }]), true, true),
        ("of another entry", WITH_GROUPS, json!([{ "name": "nic", "resourceClaimTemplateName": "t" }]), true, true),
        ("no group", WITH_GROUPS, json!([]), false, true),
        ("feature off", DEFAULT, template_entry(), true, true),
    ] {
        assert_eq!(group_of(features, &claims, exists), has_work, "{name}");
    }
}

#[test]
fn s75_a_group_has_work_if_a_claim_is_missing() {
    let names = json!([{ "name": "gpu", "resourceClaimName": "web-gpu" }]);
    for (name, claims, statuses, claim, has_work) in [
        ("no name yet", template_entry(), json!([]), None, true),
        ("missing", template_entry(), names.clone(), None, true),
        ("present", template_entry(), names, Some(claim("gu", &json!({}))), false),
        ("of the user", json!([{ "name": "gpu", "resourceClaimName": "c" }]), json!([]), None, false),
    ] {
        assert_eq!(group_has_work(&group(&claims, &statuses), |_| found(claim.as_ref())), has_work, "{name}");
    }
}
