//! The objects that scenarios make.

use serde_json::{Value, json};

/// The template of pods that run.
pub(super) fn template(name: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": name } },
        "spec": { "containers": [{
            "name": "main",
            "image": "example/main:1",
            "resources": { "requests": { "cpu": "10m", "memory": "16Mi" } },
        }] },
    })
}

/// A replica set of pods that are not scheduled; a stateful set has the same fields.
pub(super) fn replica_set(name: &str, pods: usize) -> Value {
    let mut template = template(name);
    template["spec"]["schedulerName"] = json!("no-scheduler");
    json!({
        "metadata": { "name": name },
        "spec": { "replicas": pods, "selector": { "matchLabels": { "app": name } }, "template": template },
    })
}

/// A deployment of pods that run.
pub(super) fn deployment(name: &str, pods: usize) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": { "replicas": pods, "selector": { "matchLabels": { "app": name } }, "template": template(name) },
    })
}
