//! The garbage collector in the simulation.

use kcm_simulation::rules::{items, text};
use kcm_simulation::{Scenario, check};
use kcm_testing::sandbox::direct::{DeleteOptions, DirectClient, Propagation};
use kcm_testing::sandbox::{CONFIG_MAPS, PODS, Sandbox};
use serde_json::{Value, json};

use super::invariants::RULES;
use crate::garbage_collector::DESCRIPTOR;
use crate::tests::scenarios::{key, object, scenario};

/// Creates a config map whose owners are these config maps.
fn own(sandbox: &Sandbox, name: &str, owners: &[&str]) {
    let reference = |owner: &&str| {
        let uid = sandbox.get(&CONFIG_MAPS, &key(owner)).unwrap_or_default()["metadata"]["uid"].clone();
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": true })
    };
    let references: Vec<Value> = owners.iter().map(reference).collect();
    let mut map = object(&CONFIG_MAPS, name);
    map["metadata"]["ownerReferences"] = references.into();
    drop(sandbox.create(&CONFIG_MAPS, map));
}

fn delete(name: &'static str, propagation: Propagation) -> impl Fn(&Sandbox) + Send + Sync + 'static {
    move |sandbox| {
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        drop(DirectClient::new(sandbox).delete(&CONFIG_MAPS, &key(name), &options));
    }
}

fn exists(sandbox: &Sandbox, name: &str) -> bool {
    sandbox.get(&CONFIG_MAPS, &key(name)).is_some()
}

/// Three owners with their dependents, which are deleted with the three policies. One dependent has two owners, and one
/// has a dependent itself.
fn policies() -> Scenario {
    scenario("garbage_collector policies", DESCRIPTOR, RULES)
        .prepare(|sandbox| {
            for owner in ["background", "foreground", "orphan", "other"] {
                own(sandbox, owner, &[]);
            }
            own(sandbox, "of-background", &["background"]);
            own(sandbox, "of-both", &["background", "other"]);
            own(sandbox, "of-foreground", &["foreground"]);
            own(sandbox, "of-that", &["of-foreground"]);
            own(sandbox, "of-orphan", &["orphan"]);
        })
        .object(&PODS, object(&PODS, "pod"))
        .then(|_| true, delete("background", Propagation::Background))
        .then(|_| true, delete("foreground", Propagation::Foreground))
        .then(|_| true, delete("orphan", Propagation::Orphan))
        .act("annotate", |sandbox| {
            for name in ["of-background", "of-both", "of-foreground", "of-orphan"] {
                let of_user = json!({ "metadata": { "annotations": { "example.com/of": "user" } } });
                drop(sandbox.patch(&CONFIG_MAPS, &key(name), &of_user));
            }
        })
        .act("recreate-owner", |sandbox| own(sandbox, "background", &[]))
        .act("recreate-dependent", |sandbox| {
            drop(sandbox.delete(&CONFIG_MAPS, &key("of-background")));
            own(sandbox, "of-background", &["other"]);
        })
        .act("adopt", |sandbox| {
            let other = sandbox.get(&CONFIG_MAPS, &key("other")).unwrap_or_default();
            let reference = json!([{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["metadata"]["uid"],
            }]);
            drop(sandbox.patch(
                &CONFIG_MAPS,
                &key("of-background"),
                &json!({ "metadata": { "ownerReferences": reference } }),
            ));
        })
        .act("delete-other", delete("other", Propagation::Background))
        .goal(|sandbox| {
            let is_free = |name: &str| {
                let owners = sandbox.get(&CONFIG_MAPS, &key(name)).unwrap_or_default();
                !items(&owners, "/metadata/ownerReferences")
                    .iter()
                    .any(|owner| ["background", "orphan"].contains(&text(owner, "/name")))
            };
            !["foreground", "of-foreground", "of-that", "orphan"].iter().any(|name| exists(sandbox, name))
                && exists(sandbox, "of-orphan")
                && ["of-both", "of-orphan", "of-background"].iter().all(|name| is_free(name))
        })
}

#[test]
fn no_perturbation_of_the_policies_breaks_a_rule() {
    check(&policies(), 10);
}
