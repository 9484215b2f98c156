//! The protection of volumes in the simulation.

use kcm_simulation::rules::{Held, Story, check as check_rule, holds, items, text, writes_of};
use kcm_simulation::{History, Scenario, check};
use kcm_testing::sandbox::Sandbox;
use serde_json::{Value, json};

use super::{VOLUMES, key};
use crate::persistentvolume_protection::DESCRIPTOR;
use crate::persistentvolume_protection::plan::FINALIZER;
use crate::tests::scenarios::{annotate, scenario};

const LOOP: &str = "pvprotection";

/// D26.10: the finalizer leaves only a volume that was not bound when the reconcile began.
fn protects_bound_volumes(history: &History) -> Held {
    let is_protected = |volume: &Value| items(volume, "/metadata/finalizers").iter().any(|one| one == FINALIZER);
    writes_of(history, LOOP, |at, change, _| {
        let Some(before) = change.before.as_deref() else { return Ok(()) };
        let leaves = is_protected(before) && !change.after.as_deref().is_some_and(is_protected);
        let seen = history.seen_by(at, &VOLUMES, &change.key).unwrap_or_default();
        let is_bound = text(before, "/status/phase") == "Bound" && text(&seen, "/status/phase") == "Bound";
        holds(!leaves || !is_bound, "D26.10", "a bound volume loses its protection", at, change)
    })
}

/// A bound volume that is deleted, and later released.
fn deleted() -> Scenario {
    scenario("persistentvolume_protection deleted", DESCRIPTOR, &[protects_bound_volumes])
        .prepare(|sandbox| {
            let spec = json!({
                "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "hostPath": { "path": "/tmp/pv" },
            });
            drop(sandbox.create(&VOLUMES, json!({ "metadata": { "name": "pv" }, "spec": spec })));
            set_phase(sandbox, "Bound");
            drop(sandbox.patch(&VOLUMES, &key(), &json!({ "metadata": { "finalizers": null } })));
        })
        .then(
            |sandbox| !super::finalizers(sandbox).is_null() || is_gone(sandbox),
            |sandbox| {
                drop(sandbox.delete(&VOLUMES, &key()));
            },
        )
        .then(|_| true, |sandbox| set_phase(sandbox, "Released"))
        .act("annotate", annotate(&VOLUMES, key()))
        .act("release", |sandbox| set_phase(sandbox, "Released"))
        .act("bind", |sandbox| set_phase(sandbox, "Bound"))
        .goal(|sandbox| {
            let volume = sandbox.get(&VOLUMES, &key()).unwrap_or_default();
            is_gone(sandbox) || text(&volume, "/status/phase") == "Bound"
        })
}

fn set_phase(sandbox: &Sandbox, phase: &str) {
    drop(sandbox.patch_status(&VOLUMES, &key(), &json!({ "status": { "phase": phase } })));
}

fn is_gone(sandbox: &Sandbox) -> bool {
    sandbox.get(&VOLUMES, &key()).is_none()
}

#[test]
fn no_perturbation_of_a_deletion_breaks_a_rule() {
    check(&deleted(), 20);
}

#[test]
fn a_bound_volume_keeps_its_protection() {
    let freed = |phase: &str| {
        let metadata = json!({ "name": "pv", "uid": "u", "finalizers": [FINALIZER] });
        let story = Story::of([(VOLUMES, json!({ "metadata": metadata, "status": { "phase": phase } }))]);
        story.edit(LOOP, &VOLUMES, "pv", |volume| volume["metadata"]["finalizers"] = json!([]))
    };
    check_rule("D26.10", protects_bound_volumes, freed("Released"), freed("Bound"));
}
