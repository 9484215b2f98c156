//! A snapshot of the resources that an API server serves.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use kcm_api::Resource;
use serde::Deserialize;

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
/// fails keeps its last known resources, and is listed in [`broken`](Self::broken).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resources {
    served: Vec<ServedResource>,
    broken: BTreeMap<String, String>,
}

impl Resources {
    /// Merges `found`, which lists the preferred version of each group first, with the previous snapshot.
    pub(super) fn merge(previous: &Self, found: Vec<FoundVersion>) -> Self {
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
        self.iter().find(|served| {
            let served = &served.resource;
            served.group == resource.group && served.version == resource.version && served.plural == resource.plural
        })
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

    /// The versions of groups whose discovery failed, each with the reason.
    #[must_use]
    pub const fn broken(&self) -> &BTreeMap<String, String> {
        &self.broken
    }
}
