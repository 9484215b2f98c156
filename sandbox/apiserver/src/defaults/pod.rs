//! Pods and pod templates.

use serde_json::{Value, json};

use super::{default_text, first_of_several, items};
use crate::json::{at, map_of, set, text};

/// # Upstream
/// `SetDefaults_Pod` without the defaults of templates
pub(super) fn whole(pod: &mut Value) {
    first_of_several(pod, ["status", "podIP"], ["status", "podIPs"], |ip| json!({ "ip": ip }));
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    for list in ["containers", "initContainers"] {
        for container in items(spec, &[list]) {
            requests_of_limits(container);
        }
    }
    if at(spec, &["resources"]).is_some() {
        requests_of_limits(spec);
    }
}

/// Requests default to limits.
fn requests_of_limits(holder: &mut Value) {
    let Some(resources) = holder.get_mut("resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    let requests = map_of(map_of(resources).entry("requests").or_insert(Value::Null));
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

/// The spec of a pod or of a pod template.
pub(super) fn spec(spec: &mut Value) {
    // The deprecated name of the field; the newer one wins.
    match text(spec, &["serviceAccountName"]).filter(|name| !name.is_empty()).map(str::to_owned) {
        Some(name) => set(spec, &["serviceAccount"], Some(name.into())),
        None => {
            if let Some(name) = text(spec, &["serviceAccount"]).filter(|name| !name.is_empty()).map(str::to_owned) {
                set(spec, &["serviceAccountName"], Some(name.into()));
            }
        }
    }
    let host_network = at(spec, &["hostNetwork"]) == Some(&Value::Bool(true));
    if !host_network {
        return;
    }
    for list in ["containers", "initContainers"] {
        for container in items(spec, &[list]) {
            for port in items(container, &["ports"]) {
                if at(port, &["hostPort"]).is_none_or(|given| *given == 0) {
                    let number = at(port, &["containerPort"]).and_then(Value::as_i64).unwrap_or(0);
                    set(port, &["hostPort"], Some(number.into()));
                }
            }
        }
    }
}

pub(super) fn container(container: &mut Value) {
    let image = text(container, &["image"]).unwrap_or_default();
    let policy = pull_policy(image);
    default_text(container, &["imagePullPolicy"], policy);
}

/// The pull policy of an image: whether what its name refers to may change.
///
/// # Upstream
/// `pkg/util/parsers.ParseImageName`
fn pull_policy(image: &str) -> &'static str {
    let is_latest = |name: &str| !name.contains(':') || name.ends_with(":latest");
    if !image.contains('@') && image.rsplit('/').next().is_some_and(is_latest) { "Always" } else { "IfNotPresent" }
}

pub(super) fn volume(volume: &mut Value) {
    let has_source = volume.as_object().is_some_and(|fields| fields.keys().any(|field| field != "name"));
    if !has_source {
        set(volume, &["emptyDir"], Some(json!({})));
    }
    if let Some(policy) = text(volume, &["image", "reference"]).map(pull_policy) {
        default_text(volume, &["image", "pullPolicy"], policy);
    }
}
