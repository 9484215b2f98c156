//! The status that migrations end with.

use kcm_framework::api::ResourceVersion;
use serde_json::json;

use super::{
    NOW, condition, failed as failed_before, migration, now, running, status_of, succeeded as done, with_status,
};
use crate::storage_version_migrator::checkpoint::{self, Waits, waits, with_checkpoint};
use crate::storage_version_migrator::migrate::{failed, succeeded};
use crate::storage_version_migrator::text::{self, Counts};

#[test]
fn m9_a_running_migration_without_a_checkpoint_gets_one() {
    for (name, migration, expected) in [
        ("not running", migration("m", 0, &[]), Some(Waits::NotRunning)),
        ("running", migration("m", 0, &[running()]), None),
        ("succeeded", migration("m", 0, &[running(), done()]), Some(Waits::Terminal)),
        ("failed", migration("m", 0, &[running(), failed_before()]), Some(Waits::Terminal)),
        (
            "with one",
            with_status("m", 0, json!({ "conditions": [running()], "resourceVersion": "5" })),
            Some(Waits::HasOne),
        ),
    ] {
        assert_eq!(waits(&migration), expected, "{name}");
    }
    let document = with_checkpoint(&migration("m", 0, &[running()]), &ResourceVersion::from("12")).unwrap();
    assert_eq!(status_of(&document), json!({ "conditions": [running()], "resourceVersion": "12" }));
}

#[test]
fn m13_a_migration_that_cannot_begin_fails_with_the_message_verbatim() {
    let document = checkpoint::failed(&migration("m", 0, &[running()]), "no", now()).unwrap().unwrap();
    let expected = condition("Failed", "True", "StorageVersionMigrationFailed", "no", NOW);
    assert_eq!(status_of(&document)["conditions"], json!([running(), expected]));
}

#[test]
fn m20_a_migration_that_fails_amid_its_objects_tells_how_many_are_left() {
    let counts = Some(Counts { left: 2, total: 3 });
    let message = text::failed(counts, "denied");
    let document = failed(&migration("m", 0, &[running()]), counts, &message, now()).unwrap();
    let mut amid = running();
    amid["message"] = json!("The migration is running, 2/3 objects not yet migrated");
    let message = "2/3 not yet migrated. migration encountered unhandled error: denied";
    let expected = condition("Failed", "True", "StorageVersionMigrationFailed", message, NOW);
    assert_eq!(status_of(&document)["conditions"], json!([amid, expected]));
    // Before the first object, only the failure is written.
    let document = failed(&migration("m", 0, &[running()]), None, &text::failed(None, "x"), now()).unwrap();
    let message = "migration encountered unhandled error: x";
    let expected = condition("Failed", "True", "StorageVersionMigrationFailed", message, NOW);
    assert_eq!(status_of(&document)["conditions"], json!([running(), expected]));
}

#[test]
fn m21_a_migration_that_succeeds_tells_how_many_objects_were_verified() {
    let document = succeeded(&migration("m", 0, &[running()]), Counts { left: 0, total: 3 }, now()).unwrap();
    let mut ended = running();
    ended["message"] = json!("The migration is running, 3 objects verified migrated");
    let expected = condition("Succeeded", "True", "StorageVersionMigrationSucceeded", "Migration completed", NOW);
    assert_eq!(status_of(&document)["conditions"], json!([ended, expected]));
    let document = succeeded(&migration("m", 0, &[running()]), Counts { left: 0, total: 0 }, now()).unwrap();
    assert_eq!(status_of(&document)["conditions"], json!([running(), expected]));
}
