//! The responses of the discovery endpoints, aggregated (v2) and per group.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer};

use super::resources::{FoundResource, FoundVersion, ServedSubresource};

/// Aggregated discovery if the server has it, else the list of groups.
pub(super) const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// The response of `/api` and `/apis`.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind")]
pub(super) enum Root {
    /// All groups with their resources.
    #[serde(rename = "APIGroupDiscoveryList")]
    Aggregated {
        /// The groups.
        #[serde(default, deserialize_with = "or_default")]
        items: Vec<Group>,
    },
    /// The groups and their versions.
    #[serde(rename = "APIGroupList")]
    Groups {
        /// The groups.
        #[serde(default, deserialize_with = "or_default")]
        groups: Vec<GroupEntry>,
    },
    /// The versions of the core group.
    #[serde(rename = "APIVersions")]
    Core {
        /// The versions.
        #[serde(default, deserialize_with = "or_default")]
        versions: Vec<String>,
    },
}

#[derive(Debug, Deserialize)]
pub(super) struct Group {
    #[serde(default)]
    metadata: Named,
    #[serde(default, deserialize_with = "or_default")]
    versions: Vec<GroupVersion>,
}

#[derive(Debug, Deserialize, Default)]
struct Named {
    #[serde(default)]
    name: String,
}

#[derive(Debug, Deserialize)]
struct GroupVersion {
    version: String,
    #[serde(default)]
    freshness: String,
    #[serde(default, deserialize_with = "or_default")]
    resources: Vec<Aggregated>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Aggregated {
    resource: String,
    #[serde(default, deserialize_with = "or_default")]
    response_kind: Kind,
    #[serde(default)]
    scope: String,
    #[serde(default, deserialize_with = "or_default")]
    verbs: BTreeSet<Box<str>>,
    #[serde(default, deserialize_with = "or_default")]
    subresources: Vec<Subresource>,
}

#[derive(Debug, Deserialize, Default)]
struct Kind {
    #[serde(default)]
    kind: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Subresource {
    subresource: Box<str>,
    #[serde(default, deserialize_with = "or_default")]
    response_kind: ServedSubresource,
}

impl Group {
    pub(super) fn found(self) -> impl Iterator<Item = FoundVersion> {
        let group = self.metadata.name;
        self.versions.into_iter().map(move |version| version.found(&group))
    }
}

impl GroupVersion {
    fn found(self, group: &str) -> FoundVersion {
        // The aggregator marks a group stale whose server it cannot reach.
        let served = if self.freshness == "Stale" {
            Err("the server behind it does not answer".to_owned())
        } else {
            Ok(self.resources.into_iter().map(Aggregated::found).collect())
        };
        FoundVersion { group: group.to_owned(), version: self.version, served }
    }
}

impl Aggregated {
    fn found(self) -> FoundResource {
        FoundResource {
            plural: self.resource,
            kind: self.response_kind.kind,
            namespaced: self.scope == "Namespaced",
            verbs: self.verbs,
            subresources: self.subresources.into_iter().map(|named| (named.subresource, named.response_kind)).collect(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupEntry {
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    versions: Vec<VersionEntry>,
    #[serde(default)]
    preferred_version: Option<VersionEntry>,
}

#[derive(Debug, Deserialize)]
struct VersionEntry {
    version: String,
}

impl GroupEntry {
    /// Group and versions, the preferred one first.
    pub(super) fn versions(self) -> impl Iterator<Item = (String, String)> {
        let preferred = self.preferred_version.map(|entry| entry.version);
        let mut versions: Vec<_> = self.versions.into_iter().map(|entry| entry.version).collect();
        versions.sort_by_key(|version| preferred.as_ref() != Some(version));
        let group = self.name;
        versions.into_iter().map(move |version| (group.clone(), version))
    }
}

/// The response of the endpoint of one version of one group.
#[derive(Debug, Deserialize)]
pub(super) struct VersionList {
    #[serde(default, deserialize_with = "or_default")]
    resources: Vec<ListedResource>,
}

#[derive(Debug, Deserialize)]
struct ListedResource {
    name: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    group: Box<str>,
    #[serde(default)]
    version: Box<str>,
    #[serde(default)]
    kind: String,
    #[serde(default, deserialize_with = "or_default")]
    verbs: BTreeSet<Box<str>>,
}

impl VersionList {
    pub(super) fn found(self) -> Vec<FoundResource> {
        let (subresources, resources): (Vec<_>, Vec<_>) =
            self.resources.into_iter().partition(|listed| listed.name.contains('/'));
        let mut by_parent: BTreeMap<String, BTreeMap<Box<str>, ServedSubresource>> = BTreeMap::new();
        for listed in subresources {
            if let Some((parent, name)) = listed.name.split_once('/') {
                let served =
                    ServedSubresource { group: listed.group, version: listed.version, kind: listed.kind.into() };
                by_parent.entry(parent.to_owned()).or_default().insert(name.into(), served);
            }
        }
        let found = resources.into_iter().map(|listed| FoundResource {
            subresources: by_parent.remove(&listed.name).unwrap_or_default(),
            plural: listed.name,
            kind: listed.kind,
            namespaced: listed.namespaced,
            verbs: listed.verbs,
        });
        found.collect()
    }
}

/// Go writes an empty list as `null`.
fn or_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
