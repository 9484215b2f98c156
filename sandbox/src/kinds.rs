//! What is served, and how the kinds differ.

use std::collections::BTreeMap;

use kcm_api::Resource;

/// Pods.
pub const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");
/// Replica sets.
pub const REPLICA_SETS: Resource = Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");
/// Deployments.
pub const DEPLOYMENTS: Resource = Resource::namespaced("apps", "v1", "deployments", "Deployment");
/// Namespaces.
pub const NAMESPACES: Resource = Resource::cluster_scoped("", "v1", "namespaces", "Namespace");
/// Events of the core group.
pub const EVENTS: Resource = Resource::namespaced("", "v1", "events", "Event");
/// Config maps.
pub const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "configmaps", "ConfigMap");
/// Resource quotas; they are stored, not enforced: see `Sandbox::admit`.
pub const RESOURCE_QUOTAS: Resource = Resource::namespaced("", "v1", "resourcequotas", "ResourceQuota");

/// The behaviour that only one kind has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Pod,
    ReplicaSet,
    Deployment,
    Namespace,
    /// Nothing beyond what all built-in kinds do.
    Plain,
    /// A custom resource: no strategic merge, no put without a version, items of lists carry their kind.
    Custom,
}

/// One served resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) resource: Resource,
    pub(crate) behaviour: Behaviour,
    /// Has the status subresource.
    pub(crate) status: bool,
    /// Counts changes to the desired state.
    pub(crate) generation: bool,
}

impl Kind {
    fn new(resource: Resource, behaviour: Behaviour, status: bool, generation: bool) -> Self {
        Self { resource, behaviour, status, generation }
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.behaviour == Behaviour::Custom
    }

    /// Subresources that are served.
    pub(crate) fn subresources(&self) -> &'static [&'static str] {
        match self.behaviour {
            Behaviour::Pod => &["binding", "status"],
            Behaviour::Namespace => &["finalize", "status"],
            Behaviour::ReplicaSet | Behaviour::Deployment | Behaviour::Plain | Behaviour::Custom => {
                if self.status {
                    &["status"]
                } else {
                    &[]
                }
            }
        }
    }
}

/// All served resources.
#[derive(Debug)]
pub(crate) struct Kinds(BTreeMap<Resource, Kind>);

impl Kinds {
    pub(crate) fn built_in() -> Self {
        let kinds = [
            Kind::new(PODS, Behaviour::Pod, true, true),
            Kind::new(REPLICA_SETS, Behaviour::ReplicaSet, true, true),
            Kind::new(DEPLOYMENTS, Behaviour::Deployment, true, true),
            Kind::new(NAMESPACES, Behaviour::Namespace, true, false),
            Kind::new(EVENTS, Behaviour::Plain, false, false),
            Kind::new(CONFIG_MAPS, Behaviour::Plain, false, false),
            Kind::new(RESOURCE_QUOTAS, Behaviour::Plain, true, false),
        ];
        Self(kinds.into_iter().map(|kind| (kind.resource.clone(), kind)).collect())
    }

    pub(crate) fn register(&mut self, resource: Resource) {
        let kind = Kind::new(resource.clone(), Behaviour::Custom, true, true);
        self.0.entry(resource).or_insert(kind);
    }

    pub(crate) fn register_built_in(&mut self, resource: Resource, status: bool, generation: bool) {
        let kind = Kind::new(resource.clone(), Behaviour::Plain, status, generation);
        self.0.entry(resource).or_insert(kind);
    }

    pub(crate) fn unregister(&mut self, resource: &Resource) {
        self.0.remove(resource);
    }

    pub(crate) fn get(&self, resource: &Resource) -> Option<&Kind> {
        self.0.get(resource)
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Kind> {
        self.iter().find(|kind| {
            let resource = &kind.resource;
            resource.group == group && resource.version == version && resource.plural == plural
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.0.values()
    }
}
