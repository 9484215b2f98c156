//! A snapshot of the resources that an API server serves.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kcm_api::Resource;
use serde::Deserialize;
use tokio::time::Instant;

/// Time for which snapshots must lack a resource, before it counts as not served.
pub(super) const LEAVES_AFTER: Duration = Duration::from_secs(10);

/// A resource of every API server. Discovery without it is no snapshot.
const NAMESPACES: Resource = Resource::cluster_scoped("", "v1", "namespaces", "Namespace");

/// One resource of the API server, in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedResource {
    /// Group, version, plural name, kind and scope.
    pub resource: Resource,
    /// The verbs that it supports: `list`, `watch`, `delete`…
    pub verbs: BTreeSet<Box<str>>,
    /// Its subresources by name: `status`, `scale`…
    pub subresources: BTreeMap<Box<str>, ServedSubresource>,
    /// Whether the group prefers this version over its others.
    pub is_preferred: bool,
}

/// The kind that a subresource is read and written as. An empty group or version means the group or version of the
/// resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServedSubresource {
    /// The group of the kind: `autoscaling` for most scales.
    pub group: Box<str>,
    /// The version of the kind.
    pub version: Box<str>,
    /// The kind: `Scale` for most scales.
    pub kind: Box<str>,
}

impl ServedResource {
    /// Returns `true` if it supports all of these verbs.
    #[must_use]
    pub fn supports(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.contains(*verb))
    }
}

/// One version of a group, with its resources or the reason why they are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundVersion {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) served: Result<Vec<FoundResource>, String>,
}

/// One resource of a discovery response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct FoundResource {
    pub(super) plural: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
    pub(super) verbs: BTreeSet<Box<str>>,
    pub(super) subresources: BTreeMap<Box<str>, ServedSubresource>,
}

/// The resources that an API server serves.
///
/// # Guarantees
/// In the server's order of groups, and within a group the preferred version first. A version whose discovery
/// fails keeps its last known resources, and is listed in [`broken`](Self::broken). A resource that only the last
/// snapshot lacks is still in it, and [departs](Self::is_departing).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resources {
    served: Vec<ServedResource>,
    broken: BTreeMap<String, String>,
    /// The resources that the last snapshot lacks, with the time of the first snapshot that lacks them.
    departing: BTreeMap<Id, Instant>,
}

/// Group, version and plural name.
type Id = (String, String, String);

fn id_of(resource: &Resource) -> Id {
    (resource.group.to_string(), resource.version.to_string(), resource.plural.to_string())
}

fn is_same(one: &Resource, other: &Resource) -> bool {
    one.group == other.group && one.version == other.version && one.plural == other.plural
}

impl Resources {
    /// Merges `found`, which lists the preferred version of each group first, with the previous snapshot.
    ///
    /// A resource leaves if snapshots lack it for [`LEAVES_AFTER`], or if the response to its list was 404, which
    /// `is_not_found` tells: an API server that has just started may not know all groups yet, and servers of two
    /// versions may answer in turn.
    ///
    /// Returns `None` if nothing has the namespaces: this is no response of a kube-apiserver.
    pub(super) fn merge(
        previous: &Self,
        found: Vec<FoundVersion>,
        now: Instant,
        is_not_found: impl Fn(&Resource) -> bool,
    ) -> Option<Self> {
        let mut merged = Self::read(previous, found);
        if !merged.is_available(&NAMESPACES) {
            return None;
        }
        merged.keep_departing(previous, now, is_not_found);
        Some(merged)
    }

    /// Inserts the resources of `previous` that have not left yet, at the places that they had.
    fn keep_departing(&mut self, previous: &Self, now: Instant, is_not_found: impl Fn(&Resource) -> bool) {
        // Follows the last resource of `previous` that was found: nearly always, all are in the same order.
        let mut next = 0;
        for served in &previous.served {
            let is_it = |found: &ServedResource| is_same(&found.resource, &served.resource);
            let at =
                if self.served.get(next).is_some_and(is_it) { Some(next) } else { self.served.iter().position(is_it) };
            if let Some(at) = at {
                next = at + 1;
                continue;
            }
            let id = id_of(&served.resource);
            let since = previous.departing.get(&id).copied().unwrap_or(now);
            if now.saturating_duration_since(since) >= LEAVES_AFTER || is_not_found(&served.resource) {
                continue;
            }
            self.departing.insert(id, since);
            self.served.insert(next, served.clone());
            next += 1;
        }
    }

    fn read(previous: &Self, found: Vec<FoundVersion>) -> Self {
        let mut merged = Self::default();
        let mut groups_seen = BTreeSet::new();
        for FoundVersion { group, version, served } in found {
            let is_preferred = groups_seen.insert(group.clone());
            match served {
                Ok(resources) => merged.served.extend(resources.into_iter().map(|found| ServedResource {
                    resource: Resource {
                        group: Cow::Owned(group.clone()),
                        version: Cow::Owned(version.clone()),
                        plural: Cow::Owned(found.plural),
                        kind: Cow::Owned(found.kind),
                        namespaced: found.namespaced,
                    },
                    verbs: found.verbs,
                    subresources: found.subresources,
                    is_preferred,
                })),
                Err(reason) => {
                    let known = previous
                        .served
                        .iter()
                        .filter(|served| served.resource.group == *group && served.resource.version == *version);
                    merged.served.extend(known.cloned().map(|served| ServedResource { is_preferred, ..served }));
                    merged.broken.insert(format!("{group}/{version}"), reason);
                }
            }
        }
        merged
    }

    /// Returns `true` if both have the same resources. Failures of the discovery of groups do not count.
    #[must_use]
    pub fn serves_the_same_as(&self, other: &Self) -> bool {
        self.served == other.served
    }

    /// Every resource, in every version.
    pub fn iter(&self) -> impl Iterator<Item = &ServedResource> {
        self.served.iter()
    }

    /// Every resource once, in the version that its group prefers, or the first that has it.
    pub fn preferred(&self) -> impl Iterator<Item = &ServedResource> {
        let mut seen = BTreeSet::new();
        self.iter().filter(move |served| seen.insert((&served.resource.group, &served.resource.plural)))
    }

    /// A resource by group, version and plural name.
    #[must_use]
    pub fn get(&self, resource: &Resource) -> Option<&ServedResource> {
        self.iter().find(|served| is_same(&served.resource, resource))
    }

    /// Returns `true` if a resource is served, by group, version and plural name.
    #[must_use]
    pub fn is_available(&self, resource: &Resource) -> bool {
        self.get(resource).is_some()
    }

    /// The resource of a kind, in the version that its group prefers, or the first that has it.
    #[must_use]
    pub fn resource_of_kind(&self, group: &str, kind: &str) -> Option<&Resource> {
        self.iter().map(|served| &served.resource).find(|resource| resource.group == group && resource.kind == kind)
    }

    /// The resource of a kind in one version, as an owner reference or a scale target names it.
    #[must_use]
    pub fn resource_of(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let mut resources = self.iter().map(|served| &served.resource);
        resources.find(|resource| resource.group == group && resource.version == version && resource.kind == kind)
    }

    /// Returns `true` if the last snapshot lacks a resource that is still in this one, because snapshots before had it.
    #[must_use]
    pub fn is_departing(&self, resource: &Resource) -> bool {
        !self.departing.is_empty() && self.departing.contains_key(&id_of(resource))
    }

    /// The resources that [depart](Self::is_departing), unless they did in `previous`.
    pub(super) fn departing_since<'a>(&'a self, previous: &'a Self) -> impl Iterator<Item = &'a Resource> {
        let resources = self.iter().map(|served| &served.resource);
        resources.filter(|resource| self.is_departing(resource) && !previous.is_departing(resource))
    }

    /// The versions of groups whose discovery failed, each with the reason.
    #[must_use]
    pub const fn broken(&self) -> &BTreeMap<String, String> {
        &self.broken
    }
}
