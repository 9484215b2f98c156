//! Resources: what the API server calls a kind, and where it is served.

use std::borrow::Cow;
use std::fmt;

use crate::ObjectKey;

/// A resource of the API: group, version, plural name and kind.
///
/// Borrowed names for resources known when compiled, owned ones for those found by discovery.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// API group, empty for the core group.
    pub group: Cow<'static, str>,
    /// API version within the group, for example `v1`.
    pub version: Cow<'static, str>,
    /// Plural name in URLs, for example `replicasets`.
    pub plural: Cow<'static, str>,
    /// Kind in objects, for example `ReplicaSet`.
    pub kind: Cow<'static, str>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
}

impl Resource {
    /// A namespaced resource known when compiled.
    #[must_use]
    pub const fn namespaced(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            plural: Cow::Borrowed(plural),
            kind: Cow::Borrowed(kind),
            namespaced: true,
        }
    }

    /// A cluster-scoped resource known when compiled.
    #[must_use]
    pub const fn cluster_scoped(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        let mut resource = Self::namespaced(group, version, plural, kind);
        resource.namespaced = false;
        resource
    }

    /// `apiVersion` as objects carry it: `v1`, or `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Path of the collection, of one namespace where one is given: `/apis/apps/v1/namespaces/a/replicasets`.
    #[must_use]
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        match namespace {
            Some(namespace) if self.namespaced => format!("{root}/namespaces/{namespace}/{}", self.plural),
            Some(_) | None => format!("{root}/{}", self.plural),
        }
    }

    /// Path of one object.
    #[must_use]
    pub fn object_path(&self, key: &ObjectKey) -> String {
        format!("{}/{}", self.collection_path(key.namespace()), key.name())
    }
}

impl fmt::Display for Resource {
    /// `pods`, or `replicasets.apps`, as kubectl names resources.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.plural) } else { write!(f, "{}.{}", self.plural, self.group) }
    }
}
