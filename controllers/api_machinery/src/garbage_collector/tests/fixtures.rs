//! Objects for tests of the graph and of the plan.

use std::sync::Arc;

use kcm_framework::api::{Meta, PartialObjectMeta, Resource, Uid, View as _};
use kcm_framework::informers::ObjectMeta;
use serde_json::{Value, json};

use crate::garbage_collector::graph::{Effect, Graph, Identity};

pub(super) const MAPS: Resource = Resource::namespaced("", "v1", "configmaps", "ConfigMap");
pub(super) const NODES: Resource = Resource::cluster_scoped("", "v1", "nodes", "Node");

/// An object. `name`; `name!` terminating in the foreground, `name?` terminating and orphaning, `name-` just terminating;
/// owners after `<`, each with `!` for `blockOwnerDeletion`. The uid is the name, an owner's too.
///
/// A namespace stands before the name, as in `shop/name`; without one the object is in `default`, and of an object in
/// `/` it is cluster-scoped.
#[derive(Debug, Clone)]
pub(super) struct Object(pub(super) Value);

impl Object {
    pub(super) fn parse(text: &str) -> Self {
        let (name, owners) = text.split_once('<').unwrap_or((text, ""));
        let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
        let uid = name.trim_end_matches(['!', '?', '-']);
        let owner = |owner: &str| {
            let name = owner.trim_end_matches('!');
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name, "blockOwnerDeletion": owner.ends_with('!') })
        };
        let owners: Vec<Value> = owners.split_whitespace().map(owner).collect();
        let finalizers: &[&str] = match &name[uid.len()..] {
            "!" => &["foregroundDeletion"],
            "?" => &["orphan"],
            _ => &[],
        };
        let mut object = json!({ "metadata": {
            "name": uid, "uid": uid, "resourceVersion": "1", "ownerReferences": owners, "finalizers": finalizers,
        } });
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        if name.len() > uid.len() {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-02T12:00:00Z");
        }
        Self(object)
    }

    /// With another value of a field of the owner reference with that index.
    pub(super) fn owner_field(mut self, index: usize, field: &str, value: &str) -> Self {
        self.0["metadata"]["ownerReferences"][index][field] = json!(value);
        self
    }

    pub(super) fn partial(&self) -> PartialObjectMeta {
        PartialObjectMeta::decode(&self.0.to_string()).expect("it is an object")
    }

    pub(super) fn meta(&self) -> Meta {
        self.partial().metadata
    }

    pub(super) fn shared(&self) -> Arc<dyn ObjectMeta> {
        Arc::new(self.partial())
    }

    /// The resource of the object: config maps, or nodes for cluster-scoped ones.
    pub(super) fn resource(&self) -> Resource {
        if self.0["metadata"].get("namespace").is_some() { MAPS } else { NODES }
    }
}

pub(super) fn uid(name: &str) -> Uid {
    Uid::from(name)
}

pub(super) fn observe(graph: &mut Graph, object: &Object) -> Vec<Effect> {
    graph.observe(&Arc::new(object.resource()), &object.shared())
}

/// A graph of these objects, and the effects of the last.
pub(super) fn graph(objects: &[&str]) -> (Graph, Vec<Effect>) {
    let mut graph = Graph::default();
    let mut effects = Vec::new();
    for text in objects {
        effects = observe(&mut graph, &Object::parse(text));
    }
    (graph, effects)
}

/// Effects as text: `a` to process, `a?` to orphan, `a/b` for a reference of `a` to `b` in another namespace.
pub(super) fn shown(effects: &[Effect]) -> Vec<String> {
    let show = |effect: &Effect| match effect {
        Effect::Process(uid) => uid.to_string(),
        Effect::Orphan(uid) => format!("{uid}?"),
        Effect::InvalidNamespace { dependent, owner } => format!("{}/{}", dependent.uid, owner.uid),
    };
    effects.iter().map(show).collect()
}

/// The identity of a config map; without a namespace it is cluster-scoped.
pub(super) fn identity(namespace: &str, name: &str) -> Identity {
    Identity {
        kind: "ConfigMap".into(),
        api_version: "v1".into(),
        namespace: (!namespace.is_empty()).then(|| namespace.into()),
        name: name.into(),
        uid: uid(name),
    }
}
