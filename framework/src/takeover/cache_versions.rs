//! The versions that the caches of a successor must reach.

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_api::{ObjectKey, Resource, ResourceVersion};
use kcm_client::{Unversioned, WriteRecord, WrittenTo};
use kcm_informers::{Cache, ListOptions};
use serde::{Deserialize, Serialize};

use super::Takeover;

/// For each resource, a version that a cache must reach to show what a manager has seen and written.
///
/// It is at most [`LARGEST`](Self::LARGEST) bytes of JSON: some forty for each resource that the manager reads. A resource
/// that is missing is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CacheVersions(BTreeMap<String, ResourceVersion>);

impl CacheVersions {
    /// Largest number of bytes as JSON. Resources that would exceed it are left out.
    pub const LARGEST: usize = 16 << 10;

    /// The version for a resource, if it is known.
    #[must_use]
    pub fn of(&self, resource: &Resource) -> Option<&ResourceVersion> {
        self.0.get(&resource.to_string())
    }

    /// Returns `true` if no resource is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The versions of a manager with these caches, which wrote what `writes` records in the terms of `takeovers`.
    pub(crate) fn collect(caches: &[Arc<dyn Cache>], writes: &WriteRecord, takeovers: &[Arc<Takeover>]) -> Self {
        let mut by_resource: BTreeMap<String, Vec<&Arc<dyn Cache>>> = BTreeMap::new();
        for cache in caches {
            by_resource.entry(cache.resource().to_string()).or_default().push(cache);
        }
        // Two bytes for the braces.
        let mut size = 2;
        let versions = by_resource.into_iter().filter_map(|(name, caches)| {
            let written = writes.written_to(caches[0].resource());
            let version = version_of(&caches, &written, takeovers)?;
            size += r#""":"","#.len() + name.len() + version.to_string().len();
            (size <= Self::LARGEST).then_some((name, version))
        });
        Self(versions.collect())
    }
}

/// The version for the resource of these caches. `None` if the manager is not sure about it.
fn version_of(caches: &[&Arc<dyn Cache>], written: &WrittenTo, takeovers: &[Arc<Takeover>]) -> Option<ResourceVersion> {
    let mut versions: Vec<ResourceVersion> = Vec::new();
    for takeover in takeovers {
        if caches.iter().all(|cache| cache.is_current(takeover.since)) {
            continue;
        }
        // The caches may lack writes of the predecessor, which then count as well.
        match takeover.handed_over(caches[0].resource()) {
            kcm_informers::HandedOver::Version(version) => versions.push(version),
            kcm_informers::HandedOver::Nothing => return None,
        }
    }
    if written.has_unknown || !caches.iter().all(|cache| cache.has_synced()) {
        return None;
    }
    let shows_all = caches.iter().all(|cache| shows(cache, written));
    if !written.unversioned.is_empty() && !shows_all {
        return None;
    }
    versions.extend(written.version.clone());
    versions.extend(caches.iter().map(|cache| cache.handed_over()));
    let first = versions.pop()?;
    let greatest = versions
        .into_iter()
        .try_fold(first, |greatest, version| Some(if version.is_at_least(&greatest)? { version } else { greatest }));
    greatest.filter(|version| version.is_at_least(version) == Some(true))
}

/// Returns `true` if the cache shows the writes whose versions are not known: then a version that it has seen covers them.
fn shows(cache: &Arc<dyn Cache>, written: &WrittenTo) -> bool {
    // An object that the cache lacks may have been created and deleted since.
    let has_all = written
        .version
        .as_ref()
        .is_none_or(|version| cache.last_sync_resource_version().is_at_least(version) == Some(true));
    has_all
        && written.unversioned.iter().all(|write| match write {
            Unversioned::Deleted(namespace, name) => {
                let key = match namespace {
                    Some(namespace) => ObjectKey::namespaced(namespace.as_str(), name.as_str()),
                    None => ObjectKey::cluster_scoped(name.as_str()),
                };
                cache.object_state(&key).is_none_or(|state| state.terminating)
            }
            Unversioned::DeletedAll(namespace) => {
                let deleted = ListOptions { namespace: namespace.clone(), ..ListOptions::default() };
                cache.matching(&deleted).iter().all(|(_, state)| state.terminating)
            }
            Unversioned::Other => false,
        })
}
