//! The served kinds and their properties.
//!
//! The built-in kinds are rows of `data/resources.tsv`, which `cargo xtask sandbox-tables` writes from upstream's
//! discovery documents.

pub(crate) mod generation;
mod scale_paths;
pub(crate) mod strategy;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_api::Resource;
use serde_json::Value;

pub use self::scale_paths::ScalePaths;

/// Pods of the core group.
pub const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");
/// Replica sets of group `apps`.
pub const REPLICA_SETS: Resource = Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");
/// Deployments of group `apps`.
pub const DEPLOYMENTS: Resource = Resource::namespaced("apps", "v1", "deployments", "Deployment");
/// Namespaces of the core group.
pub const NAMESPACES: Resource = Resource::cluster_scoped("", "v1", "namespaces", "Namespace");
/// Nodes of the core group.
pub const NODES: Resource = Resource::cluster_scoped("", "v1", "nodes", "Node");
/// Leases of group `coordination.k8s.io`.
pub const LEASES: Resource = Resource::namespaced("coordination.k8s.io", "v1", "leases", "Lease");
/// Events of the core group.
pub const EVENTS: Resource = Resource::namespaced("", "v1", "events", "Event");
/// Config maps of the core group.
pub const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "configmaps", "ConfigMap");
/// Resource quotas; they are stored, not enforced: see `Sandbox::admit`.
pub const RESOURCE_QUOTAS: Resource = Resource::namespaced("", "v1", "resourcequotas", "ResourceQuota");

/// The group of what pods and nodes use.
pub(crate) const USAGE_GROUP: &str = "metrics.k8s.io";

/// Definitions of custom resources.
pub(crate) const CUSTOM_RESOURCE_DEFINITIONS: Resource =
    Resource::cluster_scoped("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition");

/// Names of the built-in resources and subresources that the sandbox does not serve.
pub fn not_served() -> impl Iterator<Item = &'static str> {
    let resources = LEFT_OUT.iter().map(|(_, plural)| *plural);
    resources.chain(SUBRESOURCES_LEFT_OUT.iter().map(|(name, _)| *name))
}

const TABLE: &str = include_str!("../../data/resources.tsv");

/// Resources of the table that are not served.
const LEFT_OUT: [(&str, &str); 2] = [("", "bindings"), ("", "componentstatuses")];

/// Subresources that reach into running containers or issue tokens, and why there are none.
const SUBRESOURCES_LEFT_OUT: [(&str, &str); 5] = [
    ("attach", NO_PROGRAMS),
    ("exec", NO_PROGRAMS),
    ("portforward", NO_PROGRAMS),
    (
        "proxy",
        "the sandbox runs no programs: there is nothing behind nodes, pods and services (see `sandbox --differences`)",
    ),
    (
        "token",
        "the sandbox issues no tokens of service accounts: use that of its kubeconfig (see `sandbox --differences`)",
    ),
];
const NO_PROGRAMS: &str =
    "the sandbox runs no programs: pods have no exec, attach or port-forward (see `sandbox --differences`)";

/// Special behaviour of single kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Pod,
    ReplicaSet,
    Deployment,
    Namespace,
    Plain,
    /// Never stored: the reviews of authentication and authorization.
    Review,
    /// A custom resource: no strategic merge patch, no update without a resource version, list items have their kind.
    Custom,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subresource {
    pub(crate) name: Cow<'static, str>,
    /// Group, version and kind of its representation.
    pub(crate) group: Cow<'static, str>,
    pub(crate) version: Cow<'static, str>,
    pub(crate) kind: Cow<'static, str>,
    pub(crate) verbs: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) resource: Resource,
    pub(crate) behaviour: Behaviour,
    pub(crate) singular: Cow<'static, str>,
    pub(crate) short_names: Vec<Cow<'static, str>>,
    pub(crate) categories: Vec<Cow<'static, str>>,
    /// As discovery names them.
    pub(crate) verbs: Vec<&'static str>,
    pub(crate) subresources: Vec<Subresource>,
    /// Has the status subresource.
    pub(crate) status: bool,
    /// Counts changes to the desired state.
    pub(crate) generation: bool,
    /// Paths of the fields that the scale of a custom resource shows.
    pub(crate) scale: Option<ScalePaths>,
    /// The version of its definition that a custom resource is served by.
    pub(crate) definition: Option<Arc<Value>>,
}

const ALL_VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

impl Kind {
    /// A kind that is not in the table.
    pub(crate) fn registered(resource: Resource, behaviour: Behaviour, status: bool, generation: bool) -> Self {
        let subresources = if status { vec![Subresource::status(&resource)] } else { Vec::new() };
        Self {
            behaviour,
            singular: resource.kind.to_lowercase().into(),
            short_names: Vec::new(),
            categories: Vec::new(),
            verbs: ALL_VERBS.to_vec(),
            subresources,
            status,
            generation,
            scale: None,
            definition: None,
            resource,
        }
    }

    /// A row of the table.
    fn of_row(row: &'static str) -> Self {
        let columns: Vec<&'static str> = row.split('\t').collect();
        let [group, version, plural, kind, singular, scope, short_names, categories, verbs, subresources] = columns[..]
        else {
            panic!("a row of resources.tsv must have ten columns: {row}");
        };
        let group = if group == "-" { "" } else { group };
        let resource = if scope == "namespace" {
            Resource::namespaced(group, version, plural, kind)
        } else {
            Resource::cluster_scoped(group, version, plural, kind)
        };
        let subresources: Vec<Subresource> = words(subresources, ' ')
            .into_iter()
            .map(Subresource::of_word)
            .filter(|subresource| !SUBRESOURCES_LEFT_OUT.iter().any(|(name, _)| *name == subresource.name))
            .collect();
        let behaviour = match (group, plural) {
            ("", "pods") => Behaviour::Pod,
            ("apps", "replicasets") => Behaviour::ReplicaSet,
            ("apps", "deployments") => Behaviour::Deployment,
            ("", "namespaces") => Behaviour::Namespace,
            ("authentication.k8s.io" | "authorization.k8s.io", _) => Behaviour::Review,
            _ => Behaviour::Plain,
        };
        Self {
            behaviour,
            singular: singular.into(),
            short_names: words(short_names, ',').into_iter().map(Cow::Borrowed).collect(),
            categories: words(categories, ',').into_iter().map(Cow::Borrowed).collect(),
            verbs: words(verbs, ','),
            status: subresources.iter().any(|subresource| subresource.name == "status"),
            subresources,
            generation: generation::is_counted(group, plural),
            scale: None,
            definition: None,
            resource,
        }
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.behaviour == Behaviour::Custom
    }

    pub(crate) fn is_definition(&self) -> bool {
        self.resource == CUSTOM_RESOURCE_DEFINITIONS
    }

    /// Returns the reason why a subresource of real API servers is not served.
    pub(crate) fn left_out(&self, subresource: &str) -> Option<&'static str> {
        let concerned = self.resource.group.is_empty()
            && match subresource {
                "token" => self.resource.plural == "serviceaccounts",
                "proxy" => ["nodes", "pods", "services"].contains(&&*self.resource.plural),
                _ => self.behaviour == Behaviour::Pod,
            };
        let found = SUBRESOURCES_LEFT_OUT.iter().filter(|_| concerned).find(|(name, _)| *name == subresource);
        found.map(|(_, why)| *why)
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }
}

impl Subresource {
    pub(crate) fn status(resource: &Resource) -> Self {
        Self {
            name: "status".into(),
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
            verbs: vec!["get", "patch", "update"],
        }
    }

    pub(crate) fn scale() -> Self {
        Self {
            name: "scale".into(),
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
            verbs: vec!["get", "patch", "update"],
        }
    }

    /// Parses a word of the table: `name=group/version/Kind:verb,verb`.
    fn of_word(word: &'static str) -> Self {
        let parsed = word.split_once('=').and_then(|(name, rest)| {
            let (kind, verbs) = rest.split_once(':')?;
            let mut parts = kind.splitn(3, '/');
            Some(Self {
                name: name.into(),
                group: parts.next()?.into(),
                version: parts.next()?.into(),
                kind: parts.next()?.into(),
                verbs: words(verbs, ','),
            })
        });
        parsed.expect("a subresource of resources.tsv must be of the form name=group/version/Kind:verbs")
    }
}

fn words(cell: &'static str, separator: char) -> Vec<&'static str> {
    if cell == "-" { Vec::new() } else { cell.split(separator).collect() }
}

/// All served resources, in the order of discovery.
#[derive(Debug, Clone)]
pub(crate) struct Kinds {
    all: Vec<Arc<Kind>>,
    by_resource: BTreeMap<Resource, usize>,
}

impl Kinds {
    /// The kinds of the table: of each resource its preferred version. Alpha and beta versions are served only if
    /// `beta` is set and there is no other version.
    pub(crate) fn built_in(beta: bool) -> Self {
        let mut kinds = Self { all: Vec::new(), by_resource: BTreeMap::new() };
        for kind in TABLE.lines().skip(1).map(Kind::of_row) {
            let resource = &kind.resource;
            let left_out = LEFT_OUT.contains(&(&resource.group, &resource.plural))
                || kinds
                    .all
                    .iter()
                    .any(|other| other.resource.group == resource.group && other.resource.plural == resource.plural)
                || (!beta && (resource.version.contains("alpha") || resource.version.contains("beta")));
            if !left_out {
                kinds.add(kind);
            }
        }
        kinds
    }

    fn add(&mut self, kind: Kind) {
        if self.by_resource.contains_key(&kind.resource) {
            return;
        }
        self.by_resource.insert(kind.resource.clone(), self.all.len());
        self.all.push(Arc::new(kind));
    }

    /// Serves the API `metrics.k8s.io`.
    pub(crate) fn register_usage(&mut self) {
        let group = USAGE_GROUP;
        let of_nodes = Resource::cluster_scoped(group, "v1beta1", "nodes", "NodeMetrics");
        for resource in [of_nodes, Resource::namespaced(group, "v1beta1", "pods", "PodMetrics")] {
            let registered = Kind::registered(resource, Behaviour::Custom, false, false);
            self.add(Kind { verbs: vec!["get", "list"], singular: "".into(), ..registered });
        }
    }

    pub(crate) fn register(&mut self, resource: Resource, scale: Option<ScalePaths>) {
        let mut kind = Kind::registered(resource, Behaviour::Custom, true, true);
        kind.subresources.extend(scale.as_ref().map(|_| Subresource::scale()));
        kind.scale = scale;
        self.add(kind);
    }

    /// Serves a kind as it is described now.
    pub(crate) fn replace(&mut self, kind: Kind) {
        match self.by_resource.get(&kind.resource) {
            Some(at) => self.all[*at] = Arc::new(kind),
            None => self.add(kind),
        }
    }

    pub(crate) fn register_built_in(&mut self, resource: Resource, status: bool, generation: bool) {
        self.add(Kind::registered(resource, Behaviour::Plain, status, generation));
    }

    pub(crate) fn unregister(&mut self, resource: &Resource) {
        self.all.retain(|kind| kind.resource != *resource);
        self.by_resource = self.all.iter().enumerate().map(|(at, kind)| (kind.resource.clone(), at)).collect();
    }

    pub(crate) fn get(&self, resource: &Resource) -> Option<&Arc<Kind>> {
        self.all.get(*self.by_resource.get(resource)?)
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.all.iter().find(|kind| {
            let resource = &kind.resource;
            resource.plural == plural && resource.group == group && resource.version == version
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.all.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_serves_each_resource_in_one_version() {
        let kinds = Kinds::built_in(false);
        for resource in
            [PODS, REPLICA_SETS, DEPLOYMENTS, NAMESPACES, NODES, LEASES, EVENTS, CONFIG_MAPS, RESOURCE_QUOTAS]
        {
            assert!(kinds.get(&resource).is_some(), "{resource} must be served");
        }
        assert!(kinds.find("autoscaling", "v2", "horizontalpodautoscalers").is_some());
        assert!(kinds.find("autoscaling", "v1", "horizontalpodautoscalers").is_none());
        assert!(kinds.find("internal.apiserver.k8s.io", "v1alpha1", "storageversions").is_none());
        assert!(Kinds::built_in(true).find("internal.apiserver.k8s.io", "v1alpha1", "storageversions").is_some());
    }

    #[test]
    fn subresources_say_what_they_are_read_and_written_as() {
        let kinds = Kinds::built_in(false);
        let deployments = kinds.get(&DEPLOYMENTS).expect("deployments must be served");
        let scale = deployments.subresource("scale").expect("deployments must have a scale");
        assert_eq!((&*scale.group, &*scale.version, &*scale.kind), ("autoscaling", "v1", "Scale"));
        assert!(deployments.status && deployments.generation);
        assert!(kinds.get(&PODS).expect("pods must be served").subresource("exec").is_none());
    }
}
