//! Pods and what they are made from.

use serde_json::{Value, json};

use super::{default_number, default_text, items};
use crate::json::{at, map_of, set, set_default, text};

/// # Upstream
/// `SetDefaults_Pod` beside those of templates
pub(super) fn whole(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    for list in ["containers", "initContainers"] {
        for container in items(spec, &[list]) {
            requests_of_limits(container);
        }
    }
    if at(spec, &["resources"]).is_some() {
        requests_of_limits(spec);
    }
    set_default(spec, &["enableServiceLinks"], true);
    pod_spec(spec);
}

/// What is limited and not asked for is asked for up to its limit.
fn requests_of_limits(holder: &mut Value) {
    let Some(resources) = holder.get_mut("resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    let requests = map_of(map_of(resources).entry("requests").or_insert(Value::Null));
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

/// A pod template, wherever it is.
pub(super) fn template(template: Option<&mut Value>) {
    if let Some(spec) = template.and_then(|template| template.get_mut("spec")).filter(|spec| spec.is_object()) {
        pod_spec(spec);
    }
}

fn pod_spec(spec: &mut Value) {
    // The deprecated name of the field; the newer one wins.
    match text(spec, &["serviceAccountName"]).filter(|name| !name.is_empty()).map(str::to_owned) {
        Some(name) => set(spec, &["serviceAccount"], Some(name.into())),
        None => {
            if let Some(name) = text(spec, &["serviceAccount"]).filter(|name| !name.is_empty()).map(str::to_owned) {
                set(spec, &["serviceAccountName"], Some(name.into()));
            }
        }
    }
    default_text(spec, &["restartPolicy"], "Always");
    default_text(spec, &["dnsPolicy"], "ClusterFirst");
    default_text(spec, &["schedulerName"], "default-scheduler");
    set_default(spec, &["terminationGracePeriodSeconds"], 30);
    if at(spec, &["securityContext"]).is_none() {
        set(spec, &["securityContext"], Some(json!({})));
    }
    let host_network = at(spec, &["hostNetwork"]) == Some(&Value::Bool(true));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for item in items(spec, &[list]) {
            container(item);
            if host_network && list != "ephemeralContainers" {
                for port in items(item, &["ports"]) {
                    let number = at(port, &["containerPort"]).and_then(Value::as_i64).unwrap_or(0);
                    default_number(port, &["hostPort"], number);
                }
            }
        }
    }
    items(spec, &["volumes"]).for_each(volume);
}

fn container(container: &mut Value) {
    default_text(container, &["terminationMessagePath"], "/dev/termination-log");
    default_text(container, &["terminationMessagePolicy"], "File");
    let image = text(container, &["image"]).unwrap_or_default();
    let policy = if is_floating(image) { "Always" } else { "IfNotPresent" };
    default_text(container, &["imagePullPolicy"], policy);
    for port in items(container, &["ports"]) {
        default_text(port, &["protocol"], "TCP");
    }
    for variable in items(container, &["env"]) {
        if let Some(source) = variable.get_mut("valueFrom") {
            field_of(source);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) else { continue };
        for (field, number) in
            [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
        {
            default_number(probe, &[field], number);
        }
        http_get(probe);
    }
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = container.get_mut("lifecycle").and_then(|lifecycle| lifecycle.get_mut(hook)) {
            http_get(hook);
        }
    }
}

/// Whether what an image name stands for may change.
///
/// # Upstream
/// `pkg/util/parsers.ParseImageName`
fn is_floating(image: &str) -> bool {
    !image.contains('@')
        && image.rsplit('/').next().is_some_and(|name| !name.contains(':') || name.ends_with(":latest"))
}

fn http_get(handler: &mut Value) {
    if let Some(get) = handler.get_mut("httpGet").filter(|get| get.is_object()) {
        default_text(get, &["path"], "/");
        default_text(get, &["scheme"], "HTTP");
    }
}

fn field_of(source: &mut Value) {
    if let Some(field) = source.get_mut("fieldRef").filter(|field| field.is_object()) {
        default_text(field, &["apiVersion"], "v1");
    }
}

/// `rw-r--r--`
const FILE_MODE: i64 = 0o644;

fn volume(volume: &mut Value) {
    let has_source = volume.as_object().is_some_and(|fields| fields.keys().any(|field| field != "name"));
    if !has_source {
        set(volume, &["emptyDir"], Some(json!({})));
        return;
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source).filter(|source| source.is_object()) {
            set_default(source, &["defaultMode"], FILE_MODE);
            items(source, &["items"]).for_each(field_of);
        }
    }
    for source in items(volume, &["projected", "sources"]) {
        items(source, &["downwardAPI", "items"]).for_each(field_of);
        if let Some(token) = source.get_mut("serviceAccountToken").filter(|token| token.is_object()) {
            set_default(token, &["expirationSeconds"], 3600);
        }
    }
    let image_policy = text(volume, &["image", "reference"]).map(is_floating);
    if let Some(floating) = image_policy {
        default_text(volume, &["image", "pullPolicy"], if floating { "Always" } else { "IfNotPresent" });
    }
    if at(volume, &["ephemeral", "volumeClaimTemplate", "spec"]).is_some() {
        set_default(volume, &["ephemeral", "volumeClaimTemplate", "spec", "volumeMode"], "Filesystem");
    }
    super::storage::source(volume);
}
