//! Which migration of a resource may run.

use std::sync::Arc;

use kcm_framework::api::View as _;
use serde_json::{Value, json};

use super::{BEFORE, NOW, condition, failed, migration, now, running, status_of, succeeded};
use crate::storage_version_migrator::runner::{cleaned_up, plan, promoted};
use crate::storage_version_migrator::view::Migration;

#[test]
fn m3_the_oldest_migration_runs_if_none_does() {
    let waits = |name, age| migration(name, age, &[]);
    let runs = |name| migration(name, 0, &[running()]);
    for (name, migrations, clean_up, promote, words) in [
        ("none", vec![], vec![], None, "no migration of the resource ends or may begin"),
        ("one", vec![waits("a", 0)], vec![], Some("a"), "lets the migration a run"),
        ("the older one", vec![waits("a", 1), waits("b", 0)], vec![], Some("b"), "lets the migration b run"),
        ("the first by name", vec![waits("b", 0), waits("a", 0)], vec![], Some("a"), "lets the migration a run"),
        ("one runs", vec![waits("a", 0), runs("b")], vec![], None, "no migration of the resource ends or may begin"),
        (
            "one has ended",
            vec![waits("a", 0), migration("b", 0, &[running(), succeeded()])],
            vec!["b"],
            Some("a"),
            "cleans up after migrations that have ended: b; lets the migration a run",
        ),
        (
            "all have ended",
            vec![migration("c", 0, &[running(), failed()]), migration("b", 0, &[running(), succeeded()])],
            vec!["b", "c"],
            None,
            "cleans up after migrations that have ended: b, c",
        ),
        (
            "one has ended and another runs",
            vec![migration("c", 0, &[running(), failed()]), runs("b"), waits("a", 0)],
            vec!["c"],
            None,
            "cleans up after migrations that have ended: c",
        ),
        (
            "one was cleaned up",
            vec![migration("a", 0, &[condition("Running", "False", "r", "m", BEFORE), succeeded()])],
            vec![],
            None,
            "no migration of the resource ends or may begin",
        ),
    ] {
        let planned = plan(migrations);
        let names: Vec<&str> = planned.clean_up.iter().map(|migration| migration.metadata.key.name()).collect();
        let next = planned.promote.as_ref().map(|migration| migration.metadata.key.name());
        assert_eq!((names, next, planned.explain().as_str()), (clean_up, promote, words), "{name}");
    }
}

#[test]
fn m4_a_promoted_migration_runs_once() {
    let document = promoted(&migration("a", 0, &[]), now()).unwrap().unwrap();
    let expected = condition("Running", "True", "MigrationRunning", "The migration is running", NOW);
    assert_eq!(status_of(&document)["conditions"], json!([expected]));
    let decided = migration("a", 0, &[condition("Running", "False", "r", "m", BEFORE)]);
    assert!(promoted(&decided, now()).unwrap().is_none());
}

#[test]
fn m6_a_migration_that_has_ended_does_not_run_any_more() {
    let document = cleaned_up(&migration("a", 0, &[running(), succeeded()]), now()).unwrap();
    let mut expected = condition("Running", "False", "MigrationCompleted", "Migration completed", NOW);
    expected["observedGeneration"] = json!(2);
    assert_eq!(status_of(&document)["conditions"], json!([expected, succeeded()]));
}

#[test]
fn m3_only_migrations_of_exactly_that_resource_count() {
    let of = |group: &str, resource: &str| -> Arc<Migration> {
        let object: Value =
            json!({ "metadata": { "name": "m" }, "spec": { "resource": { "group": group, "resource": resource } } });
        Arc::new(Migration::decode(&object.to_string()).unwrap())
    };
    let key = |group, resource| of(group, resource).group_resource();
    assert_ne!(key("a", "b"), key("a", "c"));
    assert_ne!(key("a", "b"), key("c", "b"));
    assert_eq!(key("", "secrets").to_string(), "secrets");
    assert_eq!(key("", "secrets").definition(), None, "the core group has no definitions");
    let definition = key("example.com", "websites").definition().unwrap();
    assert_eq!((definition.namespace(), definition.name()), (None, "websites.example.com"));
}
