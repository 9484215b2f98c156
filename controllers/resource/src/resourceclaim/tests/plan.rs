//! Plans for claims, by their reservations.

use kcm_framework::api::Uid;
use serde_json::{Value, json};

use super::claim_view;
use crate::resourceclaim::plan::{Around, FINALIZER, Owner, Plan, plan};

fn claim(metadata: Value, is_allocated: bool, consumers: &[&str]) -> Value {
    let mut metadata = metadata;
    metadata["name"] = json!("c");
    let consumers: Vec<Value> =
        consumers.iter().map(|uid| json!({ "resource": "pods", "name": uid, "uid": uid })).collect();
    let mut status = json!({ "reservedFor": consumers });
    if is_allocated {
        status["allocation"] = json!({});
    }
    json!({ "metadata": metadata, "status": status })
}

struct Case {
    name: &'static str,
    claim: Value,
    ended: &'static [&'static str],
    owner: Owner,
    is_releasing: bool,
    plan: Plan,
}

fn check(case: &Case) {
    let ended: Vec<Uid> = case.ended.iter().map(|uid| Uid::from(*uid)).collect();
    let around = Around { ended: &ended, owner: case.owner, is_releasing: case.is_releasing };
    let planned = plan(&claim_view(&case.claim), around);
    assert_eq!(planned, case.plan, "{}", case.name);
    assert!(!planned.explain().is_empty(), "{}", case.name);
}

fn removed(uids: &[&str]) -> Vec<Uid> {
    uids.iter().map(|uid| Uid::from(*uid)).collect()
}

fn protected() -> Value {
    json!({ "finalizers": ["a.example.com/b", FINALIZER] })
}

fn terminating() -> Value {
    json!({ "finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z" })
}

/// A claim that two consumers use.
fn default() -> Case {
    Case {
        name: "",
        claim: claim(protected(), true, &["a", "b"]),
        ended: &[],
        owner: Owner::None,
        is_releasing: false,
        plan: Plan::default(),
    }
}

#[test]
fn s77_to_s80_a_claim_is_released_with_its_last_reservation() {
    for case in [
        Case { name: "in use", ..default() },
        Case {
            name: "s77: some end",
            claim: claim(protected(), true, &["a", "b"]),
            ended: &["a"],
            plan: Plan { removed: removed(&["a"]), ..Plan::default() },
            ..default()
        },
        Case {
            name: "s77: all end",
            claim: claim(protected(), true, &["a", "b"]),
            ended: &["a", "b"],
            plan: Plan { removed: removed(&["a", "b"]), deallocates: true, removes_finalizer: true, deletes: false },
            ..default()
        },
        Case {
            name: "s77: all end without the finalizer",
            claim: claim(json!({}), true, &["a"]),
            ended: &["a"],
            plan: Plan { removed: removed(&["a"]), ..Plan::default() },
            ..default()
        },
        Case { name: "s80: allocated, never reserved", claim: claim(protected(), true, &[]), ..default() },
        Case { name: "about to be allocated", claim: claim(protected(), false, &[]), ..default() },
        Case {
            name: "deallocated by a write whose response was lost",
            claim: claim(protected(), false, &[]),
            is_releasing: true,
            plan: Plan { removes_finalizer: true, ..Plan::default() },
            ..default()
        },
        Case {
            name: "allocated again meanwhile",
            claim: claim(protected(), true, &[]),
            is_releasing: true,
            ..default()
        },
        Case {
            name: "s78: terminating and allocated",
            claim: claim(terminating(), true, &[]),
            plan: Plan { deallocates: true, removes_finalizer: true, ..Plan::default() },
            ..default()
        },
        Case {
            name: "s78: terminating and not allocated",
            claim: claim(terminating(), false, &[]),
            plan: Plan { removes_finalizer: true, ..Plan::default() },
            ..default()
        },
        Case { name: "s78: terminating and in use", claim: claim(terminating(), true, &["a"]), ..default() },
        Case {
            name: "s79: of a pod that is done",
            claim: claim(protected(), true, &["a"]),
            ended: &["a"],
            owner: Owner::Done,
            plan: Plan { removed: removed(&["a"]), deallocates: true, removes_finalizer: true, deletes: true },
            ..default()
        },
        Case {
            name: "s79: of a pod that is done, in use by another",
            claim: claim(protected(), true, &["a", "b"]),
            ended: &["a"],
            owner: Owner::Done,
            plan: Plan { removed: removed(&["a"]), ..Plan::default() },
            ..default()
        },
        Case {
            name: "s79: never used",
            claim: claim(json!({}), false, &[]),
            owner: Owner::Done,
            plan: Plan { deletes: true, ..Plan::default() },
            ..default()
        },
        Case {
            name: "s79: of a pod that runs",
            claim: claim(json!({}), false, &[]),
            owner: Owner::Active,
            ..default()
        },
        Case {
            name: "s79: of an unknown pod",
            claim: claim(json!({}), false, &[]),
            owner: Owner::Unknown,
            ..default()
        },
        Case {
            name: "terminating already",
            claim: claim(json!({ "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"] }), false, &[]),
            owner: Owner::Done,
            ..default()
        },
    ] {
        check(&case);
    }
}
