//! The plan: which Pods use a claim, and the next write.

use kcm_framework::api::View as _;
use kcm_framework::api::views::PersistentVolumeClaim;
use serde_json::{Value, json};

use crate::persistentvolumeclaim_protection::live_pods::LivePod;
use crate::persistentvolumeclaim_protection::plan::{FINALIZER, KeepReason, Plan, plan};

/// Returns the plan for the claim `default/data` of the Pod `web`, whose JSON `claim` changes, beside the Pod `web`.
fn planned(claim: &[Change], pod: Option<&[Change]>, records_use: bool) -> Plan {
    let mut object = json!({
        "metadata": {
            "name": "data", "namespace": "default", "uid": "claim-1", "finalizers": [FINALIZER],
        },
        "status": { "phase": "Bound" },
    });
    for change in claim {
        change.apply(&mut object);
    }
    let claim = PersistentVolumeClaim::decode(&object.to_string()).unwrap();
    let pods: Vec<LivePod> = pod
        .into_iter()
        .map(|changes| {
            let mut object = json!({
                "metadata": { "name": "web", "namespace": "default", "uid": "pod-1" },
                "spec": { "nodeName": "n1", "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }] },
                "status": { "phase": "Running" },
            });
            for change in changes {
                change.apply(&mut object);
            }
            LivePod::decode(&object.to_string()).unwrap()
        })
        .collect();
    plan(&claim, &pods.iter().map(LivePod::use_of_claims), records_use)
}

#[derive(Clone, Copy)]
enum Change {
    Terminating,
    NoFinalizer,
    Phase(&'static str),
    Unused(&'static str),
    OwnedBy(&'static str),
    Named(&'static str),
    NoNode,
    OtherClaim,
    EphemeralVolume,
    ShutDown,
    RunningContainer,
}

impl Change {
    fn apply(self, object: &mut Value) {
        match self {
            Self::Terminating => object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            Self::NoFinalizer => object["metadata"]["finalizers"] = json!([]),
            Self::Phase(phase) => object["status"]["phase"] = json!(phase),
            Self::Unused(status) => object["status"]["conditions"] = json!([{ "type": "Unused", "status": status }]),
            Self::OwnedBy(uid) => {
                object["metadata"]["ownerReferences"] =
                    json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": true }]);
            }
            Self::Named(name) => object["metadata"]["name"] = json!(name),
            Self::NoNode => object["spec"]["nodeName"] = Value::Null,
            Self::OtherClaim => {
                object["spec"]["volumes"] = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "other" } }]);
            }
            Self::EphemeralVolume => {
                object["spec"]["volumes"] =
                    json!([{ "name": "v", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } }]);
            }
            Self::ShutDown => {
                object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            }
            Self::RunningContainer => {
                object["status"]["containerStatuses"] = json!([{ "name": "main", "state": { "running": {} } }]);
            }
        }
    }
}

use Change::{
    EphemeralVolume, NoFinalizer, NoNode, OtherClaim, OwnedBy, Phase, RunningContainer, ShutDown, Terminating, Unused,
};

/// Name, changes of the claim, changes of the pod if there is one, and the plan.
type Row = (&'static str, &'static [Change], Option<&'static [Change]>, Plan);

const NOTHING: Plan = Plan::Keep(KeepReason::UpToDate);
const IN_USE: Plan = Plan::Keep(KeepReason::InUse);

#[test]
fn pvcp_6_the_finalizer_of_a_terminating_claim_stays_while_a_pod_on_a_node_uses_it() {
    let own: &'static [Change] = &[Terminating, Change::Named("web-v"), OwnedBy("pod-1")];
    let foreign: &'static [Change] = &[Terminating, Change::Named("web-v"), OwnedBy("pod-0")];
    let rows: [Row; 11] = [
        ("no pod", &[Terminating], None, Plan::RemoveFinalizer),
        ("a pod uses it", &[Terminating], Some(&[]), IN_USE),
        ("a finished pod uses it", &[Terminating], Some(&[Phase("Succeeded")]), IN_USE),
        ("a pod waits for a node", &[Terminating], Some(&[NoNode]), Plan::RemoveFinalizer),
        ("a pod uses another claim", &[Terminating], Some(&[OtherClaim]), Plan::RemoveFinalizer),
        ("a pod that was shut down names it", &[Terminating], Some(&[ShutDown]), IN_USE),
        ("its own pod, by an ephemeral volume", own, Some(&[EphemeralVolume]), IN_USE),
        ("its own pod, which was shut down", own, Some(&[EphemeralVolume, ShutDown]), Plan::RemoveFinalizer),
        ("an ephemeral volume of another pod of the name", foreign, Some(&[EphemeralVolume]), Plan::RemoveFinalizer),
        ("the finalizer is gone already", &[Terminating, NoFinalizer], None, NOTHING),
        ("a terminating claim gets no condition", &[Terminating, Unused("False")], None, Plan::RemoveFinalizer),
    ];
    for (name, claim, pod, expected) in rows {
        assert_eq!(planned(claim, pod, true), expected, "{name}");
    }
}

#[test]
fn pvcp_5_the_condition_of_a_bound_claim_says_if_a_pod_that_has_not_finished_uses_it() {
    let own: &'static [Change] = &[Change::Named("web-v"), OwnedBy("pod-1")];
    let foreign: &'static [Change] = &[Change::Named("web-v")];
    let rows: [Row; 15] = [
        ("unknown, unused", &[], None, Plan::SetUnused),
        ("unknown, used", &[], Some(&[]), Plan::SetUsed),
        ("used, unused now", &[Unused("False")], None, Plan::SetUnused),
        ("unused, used now", &[Unused("True")], Some(&[]), Plan::SetUsed),
        ("unused as before", &[Unused("True")], None, NOTHING),
        ("used as before", &[Unused("False")], Some(&[]), NOTHING),
        ("a status that nobody knows counts as used", &[Unused("Unknown")], Some(&[]), NOTHING),
        ("a status that nobody knows, unused now", &[Unused("Unknown")], None, Plan::SetUnused),
        ("a pod that waits for a node uses it", &[], Some(&[NoNode]), Plan::SetUsed),
        ("a finished pod does not", &[], Some(&[Phase("Failed")]), Plan::SetUnused),
        ("a terminating pod without running containers does not", &[], Some(&[Terminating]), Plan::SetUnused),
        ("a terminating pod with one does", &[], Some(&[Terminating, RunningContainer]), Plan::SetUsed),
        ("an ephemeral volume of its own pod", own, Some(&[EphemeralVolume]), Plan::SetUsed),
        ("an ephemeral volume of a pod that does not own it", foreign, Some(&[EphemeralVolume]), Plan::SetUnused),
        ("a claim that is not bound", &[Phase("Pending")], None, NOTHING),
    ];
    for (name, claim, pod, expected) in rows {
        assert_eq!(planned(claim, pod, true), expected, "{name}");
        assert_eq!(planned(claim, pod, false), NOTHING, "{name}, without the gate");
    }
}

#[test]
fn pvcp_7_a_claim_without_the_finalizer_gets_it_before_the_condition() {
    assert_eq!(planned(&[NoFinalizer], Some(&[]), true), Plan::AddFinalizer);
    assert_eq!(planned(&[NoFinalizer, Phase("Pending")], None, false), Plan::AddFinalizer);
}
