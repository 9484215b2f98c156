mod apply;
mod conditions;
mod definition;
mod event_mapping;
mod faults;
mod progress;
mod runner;
mod status;

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::View as _;
use serde_json::{Value, json};

use crate::storage_version_migrator::view::Migration;

const NOW: &str = "2026-01-02T12:00:00Z";
const BEFORE: &str = "2026-01-01T00:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn condition(type_: &str, status: &str, reason: &str, message: &str, time: &str) -> Value {
    json!({ "type": type_, "status": status, "lastTransitionTime": time, "reason": reason, "message": message })
}

fn running() -> Value {
    condition("Running", "True", "MigrationRunning", "The migration is running", BEFORE)
}

fn succeeded() -> Value {
    condition("Succeeded", "True", "StorageVersionMigrationSucceeded", "Migration completed", BEFORE)
}

fn failed() -> Value {
    condition("Failed", "True", "StorageVersionMigrationFailed", "no", BEFORE)
}

/// A migration of websites with these conditions, created so many seconds after the first.
fn migration(name: &str, age: i64, conditions: &[Value]) -> Arc<Migration> {
    with_status(name, age, json!({ "conditions": conditions }))
}

fn with_status(name: &str, age: i64, status: Value) -> Arc<Migration> {
    let created = Timestamp::from_second(BEFORE.parse::<Timestamp>().unwrap().as_second() + age).unwrap();
    let mut migration = json!({
        "metadata": { "name": name, "uid": name, "resourceVersion": "7", "generation": 2, "creationTimestamp": created },
        "spec": { "resource": { "group": "example.com", "resource": "websites" } },
    });
    migration["status"] = status;
    Arc::new(Migration::decode(&migration.to_string()).unwrap())
}

fn status_of(document: &kcm_framework::api::Document) -> Value {
    serde_json::from_str::<Value>(document.as_str()).unwrap()["status"].clone()
}
