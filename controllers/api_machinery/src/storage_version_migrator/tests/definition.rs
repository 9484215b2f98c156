//! What is applied to the status of definitions.

use kcm_framework::api::View as _;
use serde_json::{Value, json};

use super::{NOW, now};
use crate::storage_version_migrator::definition::{Definition, Stage, configuration};

fn definition(conditions: &Value, stored: &[&str]) -> Definition {
    let definition = json!({
        "metadata": { "name": "websites.example.com", "resourceVersion": "9", "generation": 4 },
        "spec": { "versions": [{ "name": "v1", "storage": false }, { "name": "v2", "storage": true }] },
        "status": { "conditions": conditions, "storedVersions": stored },
    });
    Definition::decode(&definition.to_string()).unwrap()
}

fn migrating(status: &str, reason: &str, message: &str, generation: i64) -> Value {
    json!({
        "type": "StorageMigrating", "status": status, "reason": reason, "message": message,
        "observedGeneration": generation,
    })
}

fn started(generation: i64) -> Value {
    migrating("True", "MigrationRunning", "Migration m is running", generation)
}

/// Returns condition and stored versions that are applied.
fn applied(conditions: &Value, stage: Stage<'_>) -> Option<(Value, Value)> {
    let applied = configuration(&definition(conditions, &["v1", "v2"]), stage, now())?;
    assert_eq!(applied["metadata"], json!({ "name": "websites.example.com", "resourceVersion": "9" }));
    assert_eq!(
        (&applied["kind"], &applied["apiVersion"]),
        (&json!("CustomResourceDefinition"), &json!("apiextensions.k8s.io/v1"))
    );
    let mut condition = applied["status"]["conditions"][0].clone();
    assert_eq!(condition.as_object_mut().unwrap().remove("lastTransitionTime"), Some(json!(NOW)));
    Some((condition, applied["status"]["storedVersions"].clone()))
}

#[test]
fn m7_stored_versions_are_cut_after_success_if_the_definition_has_not_changed() {
    let all = || json!(["v1", "v2"]);
    let succeeded = "The migration has succeeded";
    let updated = format!("{succeeded} and the stored versions have been updated");
    let mismatch = format!("{succeeded} but the stored versions have not been updated due to a generation mismatch");
    for (name, before, stage, expected) in [
        ("begins", json!([]), Stage::Running("m"), Some((started(4), all()))),
        ("begins again after a change", json!([started(3)]), Stage::Running("m"), Some((started(4), all()))),
        ("has begun", json!([started(4)]), Stage::Running("m"), None),
        (
            "succeeds",
            json!([started(4)]),
            Stage::Succeeded,
            Some((migrating("False", "MigrationSucceeded", &updated, 4), json!(["v2"]))),
        ),
        (
            "succeeds after a change",
            json!([started(3)]),
            Stage::Succeeded,
            Some((migrating("False", "MigrationSucceeded", &mismatch, 4), all())),
        ),
        (
            "succeeds without a condition",
            json!([]),
            Stage::Succeeded,
            Some((migrating("False", "MigrationSucceeded", &mismatch, 4), all())),
        ),
        (
            "d8 fails",
            json!([started(4)]),
            Stage::Failed,
            Some((migrating("False", "MigrationFailed", "The migration has failed", 4), all())),
        ),
        (
            "has failed",
            json!([migrating("False", "MigrationFailed", "The migration has failed", 4)]),
            Stage::Failed,
            None,
        ),
    ] {
        assert_eq!(applied(&before, stage), expected, "{name}");
    }
}

#[test]
fn m7_a_definition_that_says_so_and_has_the_storage_version_alone_is_not_patched_again() {
    let updated = "The migration has succeeded and the stored versions have been updated";
    let conditions = json!([migrating("False", "MigrationSucceeded", updated, 4)]);
    assert_eq!(configuration(&definition(&conditions, &["v2"]), Stage::Succeeded, now()), None);
    assert!(configuration(&definition(&conditions, &["v1", "v2"]), Stage::Succeeded, now()).is_some());
}
