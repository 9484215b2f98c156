//! What the record has of objects: no random names, uids, times and versions.

use serde_json::{Value, json};

/// The kinds that controllers of traffic write.
pub(super) const KINDS: [&str; 8] = [
    "endpoints",
    "endpointslices",
    "poddisruptionbudgets",
    "servicecidrs",
    "horizontalpodautoscalers",
    "deployments",
    "pods",
    "events",
];

/// The reasons of the events that do not depend on how many changes one sync has seen.
const EVENTS: [&str; 11] = [
    "NoPods",
    "UnmanagedPods",
    "NotDeleted",
    "TopologyAwareHintsEnabled",
    "TopologyAwareHintsDisabled",
    "SuccessfulRescale",
    "FailedGetScale",
    "FailedGetExternalMetric",
    "FailedGetResourceMetric",
    "FailedComputeMetricsReplicas",
    "AmbiguousSelector",
];

/// The line of an object, if it has one.
pub(super) fn line(kind: &str, object: &Value) -> Option<String> {
    let (metadata, status) = (&object["metadata"], &object["status"]);
    let name = metadata["name"].as_str().unwrap_or_default();
    match kind {
        "endpoints" => {
            let mut subsets = without(object["subsets"].clone(), &["uid"]);
            // Their order follows from hashes of the uids of pods.
            if let Some(subsets) = subsets.as_array_mut() {
                subsets.sort_by_key(Value::to_string);
            }
            Some(format!("endpoints {name}: {} {} {subsets}", metadata["labels"], annotations(metadata)))
        }
        "endpointslices" => {
            let mut endpoints = without(object["endpoints"].clone(), &["uid"]);
            if let Some(endpoints) = endpoints.as_array_mut() {
                endpoints.sort_by_key(Value::to_string);
            }
            let (labels, owner) = (&metadata["labels"], &metadata["ownerReferences"][0]["kind"]);
            let (family, ports) = (&object["addressType"], &object["ports"]);
            Some(format!("slice {labels} {} of {owner}: {family} {ports} {endpoints}", annotations(metadata)))
        }
        "poddisruptionbudgets" => {
            let status = without(status.clone(), &["lastTransitionTime"]);
            Some(format!("budget {name} in {}: {status}", metadata["generation"]))
        }
        "servicecidrs" => {
            let status = without(status.clone(), &["lastTransitionTime"]);
            let is_deleted = !metadata["deletionTimestamp"].is_null();
            Some(format!("range {name} deleted {is_deleted}: {} {status}", metadata["finalizers"]))
        }
        "horizontalpodautoscalers" => {
            Some(format!("autoscaler {name}: {}", without(status.clone(), &["lastTransitionTime", "lastScaleTime"])))
        }
        "deployments" => Some(format!("deployment {name} has {}", object["spec"]["replicas"])),
        "pods" => {
            let mut conditions = status["conditions"].as_array().into_iter().flatten();
            let condition = conditions.find(|condition| condition["type"] == "DisruptionTarget")?.clone();
            Some(format!("pod {name}: {}", without(condition, &["lastTransitionTime"])))
        }
        "events" => {
            let reason = object["reason"].as_str().filter(|reason| EVENTS.contains(reason))?;
            let (about, message) = (&object["involvedObject"], object["message"].as_str().unwrap_or_default());
            // Upstream goes through the families in random order, and says only of the first that hints have come or gone.
            let message = message.split(", addressType: ").next().unwrap_or_default();
            let (kind, from) = (&object["type"], &object["source"]["component"]);
            Some(format!("event of {} {}: {kind} {reason} {message} from {from}", about["kind"], about["name"]))
        }
        _ => None,
    }
}

/// The annotations, but for the trigger time: whether it is there depends on how many changes one sync has seen.
fn annotations(metadata: &Value) -> Value {
    let mut annotations = metadata["annotations"].clone();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove("endpoints.kubernetes.io/last-change-trigger-time");
    }
    if annotations == json!({}) { Value::Null } else { annotations }
}

/// A value without fields of these names, at any depth.
fn without(mut value: Value, fields: &[&str]) -> Value {
    match &mut value {
        Value::Object(object) => {
            object.retain(|field, _| !fields.contains(&field.as_str()));
            object.values_mut().for_each(|inner| *inner = without(inner.take(), fields));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| *inner = without(inner.take(), fields)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}
