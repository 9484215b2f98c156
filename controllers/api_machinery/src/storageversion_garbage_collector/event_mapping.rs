//! Event mapping: deleted Leases, and storage versions that name an unknown one.

use kcm_framework::api::{ObjectKey, PartialObjectMeta};
use kcm_framework::informers::{Change, Informer, Lookup};

use super::plan::lease_key;
use super::view::StorageVersion;

/// A Lease is enqueued when it is deleted, or loses the label.
pub(super) fn key_for_lease(change: &Change<PartialObjectMeta>) -> Option<ObjectKey> {
    match change {
        Change::Deleted { .. } => Some(change.key().clone()),
        Change::Added(_) | Change::Updated { .. } | Change::Undecodable { .. } => None,
    }
}

/// A storage version is enqueued when it is added, updated or resynced, if the cache lacks the Lease of an entry.
pub(super) fn key_for_storage_version(
    change: &Change<StorageVersion>,
    leases: &Informer<PartialObjectMeta>,
) -> Option<ObjectKey> {
    let storage_version = match change {
        Change::Added(object) | Change::Updated { new: object, .. } => object,
        Change::Deleted { .. } | Change::Undecodable { .. } => return None,
    };
    let is_unknown = |server: &str| matches!(leases.lookup(&lease_key(server)), Lookup::Absent);
    let names_an_unknown_one = storage_version.entries.iter().any(|entry| is_unknown(&entry.server));
    names_an_unknown_one.then(|| storage_version.metadata.key.clone())
}
