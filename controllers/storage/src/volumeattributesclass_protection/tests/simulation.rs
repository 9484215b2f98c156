//! The protection of classes in the simulation.

use kcm_simulation::rules::{Held, Story, check as check_rule, holds, items, key_of, of, text, uid, writes_of};
use kcm_simulation::{History, Scenario, check};
use kcm_testing::sandbox::Sandbox;
use serde_json::{Value, json};

use super::{CLAIMS, CLASSES, key};
use crate::tests::scenarios::{annotate, scenario};
use crate::volumeattributesclass_protection::DESCRIPTOR;
use crate::volumeattributesclass_protection::plan::FINALIZER;

const LOOP: &str = "vacprotection";

/// D26.10: the finalizer leaves only if no claim names the class that the reconcile has seen.
fn protects_used_classes(history: &History) -> Held {
    let is_protected = |class: &Value| items(class, "/metadata/finalizers").iter().any(|one| one == FINALIZER);
    writes_of(history, LOOP, |at, change, objects| {
        let Some(before) = change.before.as_deref() else { return Ok(()) };
        let leaves = is_protected(before) && !change.after.as_deref().is_some_and(is_protected);
        let names = |claim: &Value| text(claim, "/spec/volumeAttributesClassName") == "gold";
        let is_seen = |claim: &Value| {
            history.seen_by(at, &CLAIMS, &key_of(claim)).is_some_and(|seen| uid(&seen) == uid(claim) && names(&seen))
        };
        let mut users = of(objects, &CLAIMS).filter(|claim| names(claim) && is_seen(claim));
        holds(!leaves || users.next().is_none(), "D26.10", "a used class loses its protection", at, change)
    })
}

/// A class that is deleted while a claim names it. The claim is deleted later.
fn deleted() -> Scenario {
    scenario("volumeattributesclass_protection deleted", DESCRIPTOR, &[protects_used_classes])
        .prepare(|sandbox| {
            let class = json!({
                "metadata": { "name": "gold" }, "driverName": "csi.example.com", "parameters": { "iops": "1" },
            });
            drop(sandbox.create(&CLASSES, class));
            drop(sandbox.patch(&CLASSES, &key(), &json!({ "metadata": { "finalizers": null } })));
            create_claim(sandbox, "data");
        })
        .then(
            |sandbox| !super::finalizers(sandbox).is_null() || is_gone(sandbox),
            |sandbox| {
                drop(sandbox.delete(&CLASSES, &key()));
            },
        )
        .then(|_| true, |sandbox| remove_claim(sandbox, "data"))
        .act("annotate", annotate(&CLASSES, key()))
        .act("add-claim", |sandbox| create_claim(sandbox, "other"))
        .act("remove-claims", |sandbox| ["data", "other"].iter().for_each(|claim| remove_claim(sandbox, claim)))
        .goal(|sandbox| is_gone(sandbox) || sandbox.get(&CLAIMS, &claim_key("other")).is_some())
}

fn claim_key(name: &str) -> kcm_framework::api::ObjectKey {
    kcm_framework::api::ObjectKey::namespaced("shop", name.to_owned())
}

fn create_claim(sandbox: &Sandbox, name: &str) {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } },
        "volumeAttributesClassName": "gold",
    });
    drop(sandbox.create(&CLAIMS, json!({ "metadata": { "namespace": "shop", "name": name }, "spec": spec })));
}

/// Deletes a claim, which the API server protects.
fn remove_claim(sandbox: &Sandbox, name: &str) {
    drop(sandbox.patch(&CLAIMS, &claim_key(name), &json!({ "metadata": { "finalizers": null } })));
    drop(sandbox.delete_now(&CLAIMS, &claim_key(name)));
}

fn is_gone(sandbox: &Sandbox) -> bool {
    sandbox.get(&CLASSES, &key()).is_none()
}

#[test]
fn no_perturbation_of_a_deletion_breaks_a_rule() {
    check(&deleted(), 20);
}

#[test]
fn a_used_class_keeps_its_protection() {
    let freed = |class: &str| {
        let claim = json!({
            "metadata": { "namespace": "shop", "name": "data", "uid": "u" },
            "spec": { "volumeAttributesClassName": class },
        });
        let class = json!({ "metadata": { "name": "gold", "uid": "v", "finalizers": [FINALIZER] } });
        Story::of([(CLAIMS, claim), (CLASSES, class)])
            .edit(LOOP, &CLASSES, "gold", |class| class["metadata"]["finalizers"] = json!([]))
    };
    check_rule("D26.10", protects_used_classes, freed("silver"), freed("gold"));
}
