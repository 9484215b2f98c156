//! The resource of a migration in discovery.

use jiff::{SignedDuration, Timestamp};
use kcm_framework::client::ApiError;
use kcm_framework::discovery::{Discovery, Resources, ServedResource};
use kcm_framework::{Class, ReconcileError};

use super::view::{GroupResource, MigrationView};
use crate::fresh_discovery::FreshDiscovery;

/// The time for which a new resource may be missing in discovery, after the creation of the migration.
const PATIENCE: SignedDuration = SignedDuration::from_mins(1);

/// The verbs that a migration needs.
const VERBS: [&str; 3] = ["update", "patch", "list"];

/// A resource that discovery does not have, or not yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Missing {
    /// It may appear, or the discovery of its group fails.
    #[error("cannot find the resource of the migration in discovery yet")]
    Perhaps,
    /// The API server does not serve it.
    #[error("the API server does not serve the resource of the migration")]
    Certainly,
}

/// Finds resources in discovery.
pub(super) struct Lookup {
    discovery: FreshDiscovery,
}

impl Lookup {
    pub(super) fn new(discovery: Discovery) -> Self {
        Self { discovery: FreshDiscovery::new(discovery) }
    }

    /// Finds the resource of a migration. Reads discovery anew if the snapshot lacks it, or the verbs that it needs.
    pub(super) async fn find(
        &self,
        migration: &MigrationView,
        now: Timestamp,
    ) -> Result<Result<ServedResource, Missing>, ApiError> {
        let named = migration.group_resource();
        if let Some(found) = find(&self.discovery.resources(), &named).filter(is_migratable) {
            return Ok(Ok(found));
        }
        let Some(resources) = self.discovery.fresh().await? else { return Ok(Err(Missing::Perhaps)) };
        Ok(match find(&resources, &named) {
            Some(found) => Ok(found),
            None if is_young(migration, now) || is_broken(&resources, &named) => Err(Missing::Perhaps),
            None => Err(Missing::Certainly),
        })
    }
}

/// Returns the resource in the version that its group prefers, or the first that has it.
fn find(resources: &Resources, named: &GroupResource) -> Option<ServedResource> {
    let is_it =
        |served: &&ServedResource| *served.resource.group == *named.group && *served.resource.plural == *named.resource;
    resources.preferred().find(is_it).cloned()
}

/// Returns `true` if the objects of a resource can be migrated.
pub(super) fn is_migratable(resource: &ServedResource) -> bool {
    resource.supports(&VERBS)
}

/// Returns the message of a resource whose objects cannot be migrated.
pub(super) fn not_migratable(resource: &ServedResource) -> String {
    format!("resource {:?} does not support discovery operations: [{}]", go_name(resource), VERBS.join(" "))
}

/// Returns group, version and resource as Go prints them.
pub(super) fn go_name(resource: &ServedResource) -> String {
    let resource = &resource.resource;
    format!("{}/{}, Resource={}", resource.group, resource.version, resource.plural)
}

fn is_young(migration: &MigrationView, now: Timestamp) -> bool {
    let created = migration.metadata.creation_timestamp;
    created.is_some_and(|created| now.duration_since(created) < PATIENCE)
}

/// Returns `true` if the discovery of any version of the group fails, so that the resource may be served.
fn is_broken(resources: &Resources, named: &GroupResource) -> bool {
    resources.broken().keys().any(|version| version.rsplit_once('/').is_some_and(|(group, _)| *group == *named.group))
}

impl From<Missing> for ReconcileError {
    /// A resource may appear any time.
    fn from(missing: Missing) -> Self {
        Self::new(Class::Transient, missing)
    }
}
