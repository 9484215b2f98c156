//! The definition of a custom resource, and what the runner applies to its status.

use jiff::Timestamp;
use kcm_framework::api::{InternedStr, Resource};
use serde_json::{Value, json};

use super::conditions::seconds;

/// The condition of a definition whose objects are migrated.
const STORAGE_MIGRATING: &str = "StorageMigrating";

kcm_framework::api::view! {
    /// The definition of a custom resource.
    pub(super) struct Definition {
        resource: Resource::cluster_scoped(
            "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"
        );

        "spec" {
            versions: Vec<Version> = "versions";
        }
        "status" {
            conditions: Vec<Condition> = "conditions";
            stored_versions: Vec<InternedStr> = "storedVersions";
        }
    }
}

kcm_framework::api::message! {
    /// A version of a custom resource.
    struct Version {
        name: InternedStr = "name";
        storage: bool = "storage";
    }
}

kcm_framework::api::message! {
    /// A condition of a definition.
    struct Condition {
        type_: InternedStr = "type";
        status: InternedStr = "status";
        reason: InternedStr = "reason";
        message: InternedStr = "message";
        observed_generation: i64 = "observedGeneration";
    }
}

/// What the runner says about the migration of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage<'a> {
    /// The migration of this name is running.
    Running(&'a str),
    Succeeded,
    Failed,
}

/// Returns the configuration to apply to the status of the definition; `None` if the status is as it must be.
///
/// It always has `storedVersions`, because server-side apply removes a field that an earlier configuration of the manager had
/// and this one lacks. It is cut to the storage version only after success, and only if the definition has not changed since
/// the migration began.
pub(super) fn configuration(definition: &Definition, stage: Stage<'_>, now: Timestamp) -> Option<Value> {
    let metadata = &definition.metadata;
    let before = definition.conditions.iter().find(|condition| *condition.type_ == *STORAGE_MIGRATING);
    let is_unchanged = before.is_some_and(|before| before.observed_generation == metadata.generation);
    let storage = definition.versions.iter().find(|version| version.storage).map(|version| &version.name);
    let (status, reason, message) = match stage {
        Stage::Running(name) => ("True", "MigrationRunning", format!("Migration {name} is running")),
        Stage::Succeeded => {
            let outcome = if is_unchanged {
                " and the stored versions have been updated"
            } else {
                " but the stored versions have not been updated due to a generation mismatch"
            };
            ("False", "MigrationSucceeded", format!("The migration has succeeded{outcome}"))
        }
        Stage::Failed => ("False", "MigrationFailed", "The migration has failed".to_owned()),
    };
    let stored = match (stage, storage) {
        (Stage::Succeeded, Some(storage)) if is_unchanged => vec![storage],
        (Stage::Succeeded | Stage::Running(_) | Stage::Failed, _) => definition.stored_versions.iter().collect(),
    };
    let is_there = before.is_some_and(|before| {
        *before.status == *status
            && *before.reason == *reason
            && *before.message == *message
            && before.observed_generation == metadata.generation
    });
    if is_there && stored.iter().copied().eq(&definition.stored_versions) {
        return None;
    }
    Some(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": metadata.key.name(), "resourceVersion": metadata.resource_version },
        "status": {
            "conditions": [{
                "type": STORAGE_MIGRATING,
                "status": status,
                "lastTransitionTime": seconds(now),
                "reason": reason,
                "message": message,
                "observedGeneration": metadata.generation,
            }],
            "storedVersions": stored.iter().map(|name| &***name).collect::<Vec<&str>>(),
        },
    }))
}
