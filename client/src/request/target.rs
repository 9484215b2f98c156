//! The target of a request: its path, and its description in errors.

use std::fmt::Write as _;

use kcm_api::{ObjectKey, Resource};

use super::payload::Subresource;
use super::query::push_encoded;
use super::write_record::Unversioned;

/// A collection, an object, or a subresource.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    resource: &'a Resource,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
    subresource: Subresource,
}

impl<'a> Target<'a> {
    pub(crate) const fn collection(resource: &'a Resource, namespace: Option<&'a str>) -> Self {
        Self { resource, namespace, name: None, subresource: Subresource::None }
    }

    pub(crate) fn object(resource: &'a Resource, key: &'a ObjectKey, subresource: Subresource) -> Self {
        Self { resource, namespace: key.namespace(), name: Some(key.name()), subresource }
    }

    pub(crate) const fn resource(&self) -> &'a Resource {
        self.resource
    }

    /// The deletion of the target, if its response carries no version.
    pub(crate) fn deleted(&self) -> Unversioned {
        let namespace = self.namespace.map(str::to_owned);
        match self.name {
            Some(name) => Unversioned::Deleted(namespace, name.to_owned()),
            None => Unversioned::DeletedAll(namespace),
        }
    }

    pub(crate) const fn namespace(&self) -> Option<&'a str> {
        self.namespace
    }

    pub(crate) const fn name(&self) -> Option<&'a str> {
        self.name
    }

    /// Returns `true` if the response to a write is the object itself, and not a subresource such as its scale.
    pub(crate) const fn is_of_object(&self) -> bool {
        matches!(self.subresource, Subresource::None | Subresource::Status)
    }

    pub(crate) const fn subresource(&self) -> Option<&'static str> {
        self.subresource.path()
    }

    pub(crate) fn path(&self) -> String {
        let mut path = self.resource.collection_path(self.namespace);
        if let Some(name) = self.name {
            path.push('/');
            push_encoded(&mut path, name);
        }
        if let Some(subresource) = self.subresource.path() {
            path.push('/');
            path.push_str(subresource);
        }
        path
    }

    /// The description of a request: `update replicasets.apps/status "a/web"`, `create pods in namespace "a"`.
    pub(crate) fn describe(&self, verb: &str) -> String {
        let mut text = format!("{verb} {}", self.resource);
        if let Some(subresource) = self.subresource.path() {
            text.push('/');
            text.push_str(subresource);
        }
        let written = match (self.namespace, self.name) {
            (Some(namespace), Some(name)) => write!(text, " \"{namespace}/{name}\""),
            (None, Some(name)) => write!(text, " \"{name}\""),
            (Some(namespace), None) => write!(text, " in namespace \"{namespace}\""),
            (None, None) => Ok(()),
        };
        written.expect("writing to a string never fails");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLICA_SETS: Resource = Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");
    const CLUSTER_ROLES: Resource =
        Resource::cluster_scoped("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole");

    #[test]
    fn paths_and_sentences_name_the_object() {
        let web = ObjectKey::namespaced("a", "web");
        let odd = ObjectKey::cluster_scoped("system:a b?");
        for (target, path, sentence) in [
            (
                Target::object(&REPLICA_SETS, &web, Subresource::Status),
                "/apis/apps/v1/namespaces/a/replicasets/web/status",
                "get replicasets.apps/status \"a/web\"",
            ),
            (
                Target::object(&CLUSTER_ROLES, &odd, Subresource::None),
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%20b%3F",
                "get clusterroles.rbac.authorization.k8s.io \"system:a b?\"",
            ),
            (
                Target::collection(&REPLICA_SETS, Some("a")),
                "/apis/apps/v1/namespaces/a/replicasets",
                "get replicasets.apps in namespace \"a\"",
            ),
            (Target::collection(&REPLICA_SETS, None), "/apis/apps/v1/replicasets", "get replicasets.apps"),
        ] {
            assert_eq!(target.path(), path);
            assert_eq!(target.describe("get"), sentence);
        }
    }
}
