//! A test cluster in a sandbox, and its observers.

use std::time::Duration;

use kcm_api::{ObjectKey, Resource};
use kcm_sandbox_apiserver::{EVENTS, NODES, PODS, Sandbox};
use kcm_sandbox_cluster::{Cluster, ClusterOptions, PodRules};
use serde_json::{Value, json};

pub(crate) struct Lab {
    pub(crate) sandbox: Sandbox,
    pub(crate) cluster: Cluster,
}

/// A cluster with so many nodes.
pub(crate) fn lab(nodes: usize) -> Lab {
    lab_with(ClusterOptions { nodes, ..ClusterOptions::default() })
}

pub(crate) fn lab_with(options: ClusterOptions) -> Lab {
    let sandbox = Sandbox::default();
    let cluster = Cluster::start(&sandbox, options);
    Lab { sandbox, cluster }
}

pub(crate) fn rules(text: &str) -> ClusterOptions {
    let rules = PodRules::parse(text).expect("the rules are well formed");
    ClusterOptions { nodes: 1, rules, ..ClusterOptions::default() }
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

pub(crate) fn node_key(name: &str) -> ObjectKey {
    ObjectKey::cluster_scoped(name)
}

impl Lab {
    pub(crate) fn create(&self, pod: Value) {
        self.sandbox.create(&PODS, pod).expect("the pod is valid");
    }

    pub(crate) fn pod(&self, name: &str) -> Value {
        self.sandbox.get(&PODS, &key(name)).unwrap_or_default()
    }

    pub(crate) fn node(&self, name: &str) -> Value {
        self.sandbox.get(&NODES, &node_key(name)).unwrap_or_default()
    }

    /// Waits until something is so, for ten minutes of the cluster's time at most.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..6_000 {
            if is_so(self) {
                return;
            }
            pass(100).await;
        }
        panic!("{what}: not so after ten minutes");
    }

    pub(crate) async fn until_ready(&self, name: &str) {
        self.until(&format!("{name} is ready"), |lab| condition(&lab.pod(name), "Ready") == "True").await;
    }

    pub(crate) async fn until_gone(&self, resource: &Resource, key: &ObjectKey) {
        self.until(&format!("{key} is gone"), |lab| lab.sandbox.get(resource, key).is_none()).await;
    }

    /// Reasons of the events about an object, oldest first.
    pub(crate) fn events(&self, name: &str) -> Vec<String> {
        self.event_objects(name).iter().map(|event| text(event, "/reason")).collect()
    }

    /// Messages of the events about an object with a reason.
    pub(crate) fn messages(&self, name: &str, reason: &str) -> Vec<String> {
        let events = self.event_objects(name);
        events.iter().filter(|event| event["reason"] == reason).map(|event| text(event, "/message")).collect()
    }

    fn event_objects(&self, name: &str) -> Vec<Value> {
        let mut events = self.sandbox.list(&EVENTS, None);
        events.retain(|event| event["involvedObject"]["name"] == name);
        events.sort_by_key(|event| text(event, "/metadata/resourceVersion").parse::<u64>().unwrap_or(0));
        events
    }

    pub(crate) fn command(&self, text: &str) -> String {
        self.cluster.command(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }
}

pub(crate) async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

pub(crate) fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The status of a condition.
pub(crate) fn condition(object: &Value, kind: &str) -> String {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    found.map(|condition| text(condition, "/status")).unwrap_or_default()
}

/// A condition as `status reason: message`.
pub(crate) fn why(object: &Value, kind: &str) -> String {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    found
        .map(|it| format!("{} {}: {}", text(it, "/status"), text(it, "/reason"), text(it, "/message")))
        .unwrap_or_default()
}

pub(crate) fn pod(name: &str, image: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": image }] },
    })
}

/// `object` with the values at these pointers set; maps on the way are made.
pub(crate) fn with(mut object: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, value) in changes {
        let mut target = &mut object;
        for part in pointer.trim_start_matches('/').split('/') {
            let part = part.replace("~1", "/");
            target = match part.parse::<usize>() {
                Ok(at) => &mut target[at],
                Err(_) => &mut target[part],
            };
        }
        *target = value.clone();
    }
    object
}
