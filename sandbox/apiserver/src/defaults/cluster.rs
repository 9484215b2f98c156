//! Defaults that depend on other objects: priorities, overheads and storage classes.
//!
//! # Upstream
//! The admission plugins `Priority`, `RuntimeClass` and `DefaultStorageClass`

use std::sync::Arc;

use kcm_api::{ObjectKey, Resource};
use serde_json::Value;

use crate::json::{self, at, set, set_default, text};
use crate::kinds::Kind;
use crate::status::Status;
use crate::store::storage::Store;

const PRIORITY_CLASSES: Resource =
    Resource::cluster_scoped("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass");
const RUNTIME_CLASSES: Resource = Resource::cluster_scoped("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass");
const STORAGE_CLASSES: Resource = Resource::cluster_scoped("storage.k8s.io", "v1", "storageclasses", "StorageClass");

/// Fills in what admission takes from the cluster.
pub(crate) fn of_cluster(store: &Store, kind: &Kind, object: &mut Value) -> Result<(), Status> {
    match (&*kind.resource.group, &*kind.resource.plural) {
        ("", "pods") => {
            priority(store, &kind.resource, object)?;
            overhead(store, &kind.resource, object)
        }
        ("", "persistentvolumeclaims") => {
            default_class(store, object);
            Ok(())
        }
        ("", "services") => {
            super::network::families(object);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The classes that every cluster has.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

fn priority(store: &Store, pods: &Resource, pod: &mut Value) -> Result<(), Status> {
    let refuse = |pod: &Value, why: String| Err(Status::forbidden(pods, json::name(pod), &why));
    let asked = text(pod, &["spec", "priorityClassName"]).filter(|name| !name.is_empty()).map(str::to_owned);
    let class: Option<Arc<Value>> = match &asked {
        Some(name) => store.value(&PRIORITY_CLASSES, &ObjectKey::cluster_scoped(name.as_str())),
        None => store
            .list(&PRIORITY_CLASSES, None)
            .map(|(_, class)| class.value())
            .filter(|class| at(class, &["globalDefault"]) == Some(&Value::Bool(true)))
            .min_by_key(|class| at(class, &["value"]).and_then(Value::as_i64)),
    };
    let system = SYSTEM_CLASSES.iter().find(|(name, _)| Some(*name) == asked.as_deref());
    let value = match (&class, system) {
        (Some(class), _) => at(class, &["value"]).and_then(Value::as_i64).unwrap_or(0),
        (None, Some((_, value))) => *value,
        (None, None) => match asked {
            Some(name) => return refuse(pod, format!("no PriorityClass with name {name} was found")),
            None => 0,
        },
    };
    let policy =
        class.as_deref().and_then(|class| text(class, &["preemptionPolicy"])).unwrap_or("PreemptLowerPriority");
    if let Some(given) = at(pod, &["spec", "priority"]).and_then(Value::as_i64).filter(|given| *given != value) {
        return refuse(
            pod,
            format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
            ),
        );
    }
    if let Some(given) = text(pod, &["spec", "preemptionPolicy"]).filter(|given| *given != policy) {
        return refuse(
            pod,
            format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
            ),
        );
    }
    set(pod, &["spec", "priority"], Some(value.into()));
    set(pod, &["spec", "preemptionPolicy"], Some(policy.into()));
    if let Some(class) = class {
        set(pod, &["spec", "priorityClassName"], Some(json::name(&class).into()));
    }
    Ok(())
}

/// Sets the overhead of a pod to the overhead of its runtime class.
fn overhead(store: &Store, pods: &Resource, pod: &mut Value) -> Result<(), Status> {
    let refuse = |pod: &Value, why: &str| Err(Status::forbidden(pods, json::name(pod), why));
    let given = at(pod, &["spec", "overhead"]).cloned();
    let wanted = match text(pod, &["spec", "runtimeClassName"]).filter(|name| !name.is_empty()) {
        None => None,
        Some(name) => match store.value(&RUNTIME_CLASSES, &ObjectKey::cluster_scoped(name)) {
            Some(class) => at(&class, &["overhead", "podFixed"]).cloned(),
            None => return refuse(pod, &format!("pod rejected: RuntimeClass {name:?} not found")),
        },
    };
    match (given, wanted) {
        (Some(_), None) => {
            refuse(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
        }
        (Some(given), Some(wanted)) if given != wanted => {
            refuse(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        }
        (_, Some(wanted)) => {
            set(pod, &["spec", "overhead"], Some(wanted));
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

fn default_class(store: &Store, claim: &mut Value) {
    if at(claim, &["spec", "storageClassName"]).is_some() {
        return;
    }
    let is_default = |class: &Arc<Value>| {
        text(class, &["metadata", "annotations", "storageclass.kubernetes.io/is-default-class"]) == Some("true")
    };
    // The newest of several wins.
    let newest = |class: &Arc<Value>| {
        let created = text(class, &["metadata", "creationTimestamp"]).unwrap_or_default().to_owned();
        (created, std::cmp::Reverse(json::name(class).to_owned()))
    };
    if let Some(class) =
        store.list(&STORAGE_CLASSES, None).map(|(_, class)| class.value()).filter(is_default).max_by_key(newest)
    {
        set_default(claim, &["spec", "storageClassName"], json::name(&class));
    }
}
