//! Resources: the API server's name of a kind, and its path.

use std::borrow::Cow;
use std::fmt;

/// A resource of the API: group, version, plural name and kind.
///
/// The names are borrowed for resources known at compile time, and owned for discovered resources.
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
    /// A namespaced resource known at compile time.
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

    /// A cluster-scoped resource known at compile time.
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

    /// Returns `apiVersion` as objects have it: `v1`, or `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Path of the collection, within a namespace if one is given: `/apis/apps/v1/namespaces/a/replicasets`.
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
}

impl fmt::Display for Resource {
    /// `pods`, or `replicasets.apps`, as kubectl names resources.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.plural) } else { write!(f, "{}.{}", self.plural, self.group) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");
    const REPLICA_SETS: Resource = Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");
    const NODES: Resource = Resource::cluster_scoped("", "v1", "nodes", "Node");

    #[test]
    fn is_served_below_its_group_version_and_namespace() {
        assert_eq!(PODS.collection_path(None), "/api/v1/pods");
        assert_eq!(PODS.collection_path(Some("a")), "/api/v1/namespaces/a/pods");
        assert_eq!(REPLICA_SETS.collection_path(Some("a")), "/apis/apps/v1/namespaces/a/replicasets");
        assert_eq!(NODES.collection_path(Some("a")), "/api/v1/nodes");
    }

    #[test]
    fn is_named_as_objects_and_kubectl_name_it() {
        assert_eq!((PODS.api_version().as_str(), REPLICA_SETS.api_version().as_str()), ("v1", "apps/v1"));
        assert_eq!((PODS.to_string().as_str(), REPLICA_SETS.to_string().as_str()), ("pods", "replicasets.apps"));
    }
}
