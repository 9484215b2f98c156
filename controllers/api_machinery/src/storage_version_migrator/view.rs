//! The view of migrations, and the resources that they name.

use std::fmt;

use kcm_framework::QueueKey;
use kcm_framework::api::{Documented, InternedStr, ObjectKey, Resource, ResourceVersion};

/// A migration with its JSON.
pub(super) type Migration = Documented<MigrationView>;

/// The condition of a migration that may run.
pub(super) const RUNNING: &str = "Running";

/// The condition of a migration that has ended well.
pub(super) const SUCCEEDED: &str = "Succeeded";

/// The condition of a migration that has failed.
pub(super) const FAILED: &str = "Failed";

kcm_framework::api::view! {
    /// A migration of the stored versions of a resource.
    pub(super) struct MigrationView {
        resource: Resource::cluster_scoped(
            "storagemigration.k8s.io", "v1", "storageversionmigrations", "StorageVersionMigration"
        );

        "spec" {
            /// Resource to migrate: `spec.resource`.
            pub(super) resource: ResourceReference = "resource";
        }
        "status" {
            /// `status.resourceVersion`: objects up to it are migrated.
            pub(super) resource_version: ResourceVersion = "resourceVersion";
            conditions: Vec<Condition> = "conditions";
        }
    }
}

kcm_framework::api::message! {
    /// The resource of a migration.
    pub(super) struct ResourceReference {
        group: InternedStr = "group";
        resource: InternedStr = "resource";
    }
}

kcm_framework::api::message! {
    /// A condition of a migration.
    struct Condition {
        type_: InternedStr = "type";
        status: InternedStr = "status";
    }
}

impl MigrationView {
    /// Returns the resource that is migrated.
    pub(super) fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.resource.group.clone(), resource: self.resource.resource.clone() }
    }

    /// Returns `true` if a condition is true.
    pub(super) fn is(&self, type_: &str) -> bool {
        self.conditions.iter().any(|condition| *condition.type_ == *type_ && *condition.status == *"True")
    }

    /// Returns `true` if the migration has ended.
    pub(super) fn is_terminal(&self) -> bool {
        self.is(SUCCEEDED) || self.is(FAILED)
    }
}

/// A resource, without its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct GroupResource {
    /// The group; empty for the core group.
    pub(super) group: InternedStr,
    /// The plural name of the resource.
    pub(super) resource: InternedStr,
}

impl GroupResource {
    /// Returns the key of the definition, if the resource can have one: resources of the core group have none.
    pub(super) fn definition(&self) -> Option<ObjectKey> {
        (!self.group.is_empty()).then(|| ObjectKey::cluster_scoped(self.to_string()))
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

impl QueueKey for GroupResource {
    fn object(&self) -> Option<&ObjectKey> {
        None
    }
}
