//! The defaults of pod templates.

use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// Sets what the API server of Kubernetes 1.37 sets in a pod template.
///
/// # Upstream
/// `SetDefaults_PodSpec` and what it reaches in `pkg/apis/core/v1`, as `SetObjectDefaults_StatefulSet` calls them.
pub(super) fn set_defaults(template: &mut Value) {
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else { return };
    set_service_account(spec);
    default_text(spec, "restartPolicy", "Always");
    default_text(spec, "dnsPolicy", "ClusterFirst");
    default_text(spec, "schedulerName", "default-scheduler");
    default_to(spec, "terminationGracePeriodSeconds", || json!(30));
    default_to(spec, "securityContext", || json!({}));
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        items(spec, list).for_each(set_container_defaults);
    }
    items(spec, "volumes").for_each(set_volume_defaults);
}

/// The deprecated field `serviceAccount` always has the value of `serviceAccountName`.
fn set_service_account(spec: &mut Object) {
    let text = |name: &str| spec.get(name).and_then(Value::as_str).filter(|value| !value.is_empty());
    let Some(account) = text("serviceAccountName").or_else(|| text("serviceAccount")).map(|name| json!(name)) else {
        return;
    };
    spec.insert("serviceAccountName".to_owned(), account.clone());
    spec.insert("serviceAccount".to_owned(), account);
}

fn set_container_defaults(container: &mut Object) {
    let policy = pull_policy(container.get("image").and_then(Value::as_str).unwrap_or_default());
    default_text(container, "imagePullPolicy", policy);
    default_text(container, "terminationMessagePath", "/dev/termination-log");
    default_text(container, "terminationMessagePolicy", "File");
    items(container, "ports").for_each(|port| default_text(port, "protocol", "TCP"));
    for variable in items(container, "env") {
        if let Some(from) = member(variable, "valueFrom") {
            set_field_ref_defaults(from);
            if let Some(file) = member(from, "fileKeyRef") {
                default_to(file, "optional", || json!(false));
            }
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = member(container, name) {
            for (name, default) in
                [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
            {
                default_number(probe, name, default);
            }
            set_handler_defaults(probe);
        }
    }
    if let Some(lifecycle) = member(container, "lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(handler) = member(lifecycle, name) {
                set_handler_defaults(handler);
            }
        }
    }
}

fn set_handler_defaults(handler: &mut Object) {
    if let Some(request) = member(handler, "httpGet") {
        default_text(request, "path", "/");
        default_text(request, "scheme", "HTTP");
    }
    if let Some(call) = member(handler, "grpc") {
        default_to(call, "service", || json!(""));
    }
}

fn set_field_ref_defaults(source: &mut Object) {
    if let Some(field) = member(source, "fieldRef") {
        default_text(field, "apiVersion", "v1");
    }
}

fn set_volume_defaults(volume: &mut Object) {
    if volume.keys().all(|name| name == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for name in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = member(volume, name) {
            default_to(source, "defaultMode", || json!(420));
        }
    }
    if let Some(source) = member(volume, "downwardAPI") {
        items(source, "items").for_each(set_field_ref_defaults);
    }
    if let Some(source) = member(volume, "projected") {
        for projection in items(source, "sources") {
            if let Some(source) = member(projection, "downwardAPI") {
                items(source, "items").for_each(set_field_ref_defaults);
            }
            if let Some(token) = member(projection, "serviceAccountToken") {
                default_to(token, "expirationSeconds", || json!(3600));
            }
        }
    }
    if let Some(spec) = member(volume, "ephemeral")
        .and_then(|source| member(source, "volumeClaimTemplate"))
        .and_then(|template| member(template, "spec"))
    {
        default_to(spec, "volumeMode", || json!("Filesystem"));
    }
    for (source, fields) in VOLUME_SOURCES {
        if let Some(source) = member(volume, source) {
            for (name, default) in *fields {
                default_to(source, name, || json!(default));
            }
        }
    }
    if let Some(disk) = member(volume, "azureDisk") {
        default_to(disk, "readOnly", || json!(false));
    }
    if let Some(source) = member(volume, "image") {
        let policy = source.get("reference").and_then(Value::as_str).map(pull_policy);
        if let Some(policy) = policy {
            default_text(source, "pullPolicy", policy);
        }
    }
}

/// The text defaults of other volume sources.
const VOLUME_SOURCES: &[(&str, &[(&str, &str)])] = &[
    ("hostPath", &[("type", "")]),
    ("iscsi", &[("iscsiInterface", "default")]),
    ("rbd", &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")]),
    ("azureDisk", &[("cachingMode", "ReadWrite"), ("kind", "Shared"), ("fsType", "ext4")]),
    ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
];

/// The pull policy of an image: `Always` without a digest, and with the tag `latest` or none.
///
/// # Upstream
/// `SetDefaults_Container`, with `pkg/util/parsers.ParseImageName`.
fn pull_policy(image: &str) -> &'static str {
    let is_latest = |name: &str| !name.contains(':') || name.ends_with(":latest");
    if !image.contains('@') && image.rsplit('/').next().is_some_and(is_latest) { "Always" } else { "IfNotPresent" }
}

fn member<'a>(object: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    object.get_mut(name).and_then(Value::as_object_mut)
}

fn items<'a>(object: &'a mut Object, name: &str) -> impl Iterator<Item = &'a mut Object> {
    let list = object.get_mut(name).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn default_to(object: &mut Object, name: &str, default: impl FnOnce() -> Value) {
    if object.get(name).is_none_or(Value::is_null) {
        object.insert(name.to_owned(), default());
    }
}

fn default_text(object: &mut Object, name: &str, default: &str) {
    if object.get(name).is_none_or(|value| value.is_null() || value == "") {
        object.insert(name.to_owned(), json!(default));
    }
}

fn default_number(object: &mut Object, name: &str, default: i64) {
    if object.get(name).is_none_or(|value| value.is_null() || *value == 0) {
        object.insert(name.to_owned(), json!(default));
    }
}
