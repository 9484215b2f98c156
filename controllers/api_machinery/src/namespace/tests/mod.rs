mod apply;
mod conditions;
mod content;
mod event_mapping;
mod explain;
mod invariants;
mod observe;
mod simulation;

use kcm_framework::api::Resource;
use kcm_framework::discovery::ServedResource;
use serde_json::{Value, json};

use super::observe::{Item, Listing};

const DEPLOYMENTS: Resource = Resource::namespaced("apps", "v1", "deployments", "Deployment");
const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "configmaps", "ConfigMap");

fn served(resource: Resource, verbs: &[&str]) -> ServedResource {
    let verbs = verbs.iter().map(|verb| (*verb).into()).collect();
    ServedResource { resource, verbs, subresources: [].into(), is_preferred: true }
}

/// A list of objects with these finalizers; one that ends in `-` is terminating.
fn listing(objects: &[(&str, &[&str])]) -> Listing {
    let item = |(name, finalizers): &(&str, &[&str])| -> Item {
        let mut object =
            json!({ "metadata": { "name": name, "uid": format!("uid-{name}"), "finalizers": finalizers } });
        if name.ends_with('-') {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-02T12:00:00Z");
        }
        serde_json::from_value(object).expect("it is an object")
    };
    Listing { items: objects.iter().map(item).collect(), is_partial: false }
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}
