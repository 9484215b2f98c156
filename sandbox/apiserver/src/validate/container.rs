//! Containers of pods.
//!
//! # Upstream
//! `validateContainerCommon` of `pkg/apis/core/validation`

use std::collections::BTreeSet;

use super::field_path::{Errors, FieldPath};
use super::{go_format, names, resources, security_context};
use crate::status::FieldError;

/// Checks what holds for all containers, init containers included.
pub(super) fn check(container: &FieldPath<'_, '_>, volumes: &BTreeSet<&str>, errors: &mut Errors) {
    container.get("name").must_follow(names::label, errors);
    container.get("image").must_be_set("", errors);
    container.get("terminationMessagePolicy").one_of(&["File", "FallbackToLogsOnError"], errors);
    ports(&container.get("ports"), errors);
    for variable in container.get("env").items() {
        environment(&variable, errors);
    }
    for source in container.get("envFrom").items() {
        environment_from(&container.get("envFrom"), &source, errors);
    }
    mounts(&container.get("volumeMounts"), volumes, errors);
    container.get("imagePullPolicy").one_of(&["Always", "IfNotPresent", "Never"], errors);
    resources::check(&container.get("resources"), resources::container_name, errors);
    security(&container.get("securityContext"), errors);
}

fn ports(ports: &FieldPath<'_, '_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let (name, number, host) = (port.get("name"), port.get("containerPort"), port.get("hostPort"));
        if !name.is_empty() {
            let before = errors.len();
            name.follows(names::port_name, errors);
            if errors.len() == before && !names.insert(name.text()) {
                errors.push(name.duplicate());
            }
        }
        if number.number().unwrap_or(0) == 0 {
            errors.push(number.required(""));
        } else {
            names::port_number(&number, errors);
        }
        if host.number().unwrap_or(0) != 0 {
            names::port_number(&host, errors);
        }
        port.get("protocol").one_of(&["SCTP", "TCP", "UDP"], errors);
    }
}

/// Checks host ports, which are unique in a pod, and equal to the container's with `hostNetwork`.
pub(super) fn host_ports(spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    let list = spec.get("containers");
    for container in list.items() {
        for port in container.get("ports").items() {
            let host = port.get("hostPort");
            let Some(number) = host.number().filter(|number| *number != 0) else { continue };
            let key = format!("{}/{}/{number}", port.get("protocol").text(), port.get("hostIP").text());
            if !taken.insert(key.clone()) {
                errors.push(FieldError::duplicate(host.to_string(), key));
            }
        }
    }
    if spec.get("hostNetwork").is_true() {
        for container in list.items() {
            for port in container.get("ports").items() {
                if port.get("hostPort").value != port.get("containerPort").value {
                    let detail = "must match `containerPort` when `hostNetwork` is true";
                    errors.push(port.get("hostPort").invalid(detail));
                }
            }
        }
    }
}

const ENVIRONMENT_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const CONTAINER_RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

fn environment(variable: &FieldPath<'_, '_>, errors: &mut Errors) {
    let name = variable.get("name");
    name.must_follow(names::variable, errors);
    let from = variable.get("valueFrom");
    if from.is_absent() {
        return;
    }
    let mut sources = 0;
    for source in ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"] {
        let field_path = from.get(source);
        if field_path.is_absent() {
            continue;
        }
        sources += 1;
        match source {
            "fieldRef" => field_ref(&field_path, &ENVIRONMENT_FIELDS, errors),
            "resourceFieldRef" => resource_field_ref(&field_path, errors),
            "configMapKeyRef" | "secretKeyRef" => {
                field_path.get("name").follows(names::subdomain, errors);
                field_path.get("key").must_follow(names::config_key, errors);
            }
            _ => {}
        }
    }
    if sources == 0 {
        errors.push(from.refused(
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ));
    } else if !variable.get("value").is_empty() {
        errors.push(from.refused("", "may not be specified when `value` is not empty"));
    } else if sources > 1 {
        errors.push(from.refused("", "may not have more than one field specified at a time"));
    }
}

pub(super) fn field_ref(field: &FieldPath<'_, '_>, known: &[&str], errors: &mut Errors) {
    if field.get("apiVersion").is_empty() {
        errors.push(field.get("apiVersion").required(""));
        return;
    }
    let path = field.get("fieldPath");
    if path.is_empty() {
        errors.push(path.required(""));
        return;
    }
    let plain = path.text();
    if let Some((map, key)) = plain.strip_suffix(']').and_then(|start| start.split_once("['"))
        && let Some(key) = key.strip_suffix('\'')
    {
        match map {
            "metadata.annotations" => errors
                .extend(names::qualified(&key.to_lowercase()).into_iter().map(|problem| path.refused(key, problem))),
            "metadata.labels" => {
                path.refuse(key, names::qualified, errors);
            }
            _ => errors.push(path.invalid("does not support subscript")),
        }
        return;
    }
    let of_pods = [
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.hostNetwork",
        "status.phase",
        "metadata.annotations",
        "metadata.labels",
    ];
    if !ENVIRONMENT_FIELDS.contains(&plain) && !of_pods.contains(&plain) {
        errors.push(path.invalid(format!("error converting fieldPath: field label not supported: {plain}")));
    } else if !known.contains(&plain) {
        errors.push(path.unsupported(known));
    }
}

pub(super) fn resource_field_ref(field: &FieldPath<'_, '_>, errors: &mut Errors) {
    let resource = field.get("resource");
    let is_huge_pages = |name: &str| {
        name.strip_prefix("limits.")
            .or(name.strip_prefix("requests."))
            .is_some_and(|name| name.starts_with("hugepages-"))
    };
    if resource.is_empty() {
        errors.push(resource.required(""));
    } else if !CONTAINER_RESOURCES.contains(&resource.text()) && !is_huge_pages(resource.text()) {
        errors.push(resource.unsupported(&CONTAINER_RESOURCES));
    }
}

fn environment_from(list: &FieldPath<'_, '_>, source: &FieldPath<'_, '_>, errors: &mut Errors) {
    source.get("prefix").may_follow(names::variable, errors);
    let mut sources = 0;
    for field in ["configMapRef", "secretRef"] {
        let field_path = source.get(field);
        if field_path.is_given() {
            sources += 1;
            field_path.get("name").must_follow(names::subdomain, errors);
        }
    }
    match sources {
        0 => errors.push(list.refused("", "must specify one of: `configMapRef` or `secretRef`")),
        1 => {}
        _ => errors.push(list.refused("", "may not have more than one field specified at a time")),
    }
}

fn mounts(mounts: &FieldPath<'_, '_>, volumes: &BTreeSet<&str>, errors: &mut Errors) {
    let mut paths = BTreeSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        name.must_be_set("", errors);
        if !volumes.contains(name.text()) {
            errors.push(name.not_found());
        }
        path.must_be_set("", errors);
        if !paths.insert(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        for field in ["subPath", "subPathExpr"] {
            let within = mount.get(field);
            if !within.is_empty() {
                let shown = mounts.named(field);
                descending_path(&shown.holding(within.value), errors);
            }
        }
        let propagation = mount.get("mountPropagation");
        if propagation.is_given() {
            let shown = mounts.named("mountPropagation").holding(propagation.value);
            shown.one_of(&["Bidirectional", "HostToContainer", "None"], errors);
        }
    }
}

/// Checks that a path is relative and does not leave its directory.
pub(super) fn descending_path(path: &FieldPath<'_, '_>, errors: &mut Errors) {
    if path.text().starts_with('/') {
        errors.push(path.invalid("must be a relative path"));
    }
    no_way_up(path, errors);
}

pub(super) fn no_way_up(path: &FieldPath<'_, '_>, errors: &mut Errors) {
    if path.text().split('/').any(|part| part == "..") {
        errors.push(path.invalid("must not contain '..'"));
    }
}

/// Checks handlers of probes and hooks.
pub(super) fn handlers(container: &FieldPath<'_, '_>, errors: &mut Errors) {
    for hook in ["postStart", "preStop"] {
        let lifecycle = container.get("lifecycle");
        let hook = lifecycle.get(hook);
        if hook.is_given() {
            handler(&hook, errors);
        }
    }
    for (name, must_succeed_once) in [("livenessProbe", true), ("readinessProbe", false), ("startupProbe", true)] {
        let probe = container.get(name);
        if probe.is_absent() {
            continue;
        }
        handler(&probe, errors);
        probe.none_negative(
            &["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"],
            errors,
        );
        let grace = probe.get("terminationGracePeriodSeconds");
        grace.refuse_number(|seconds| seconds <= 0, "must be greater than 0", errors);
        let successes = probe.get("successThreshold");
        if must_succeed_once && successes.number() != Some(1) {
            errors.push(successes.invalid("must be 1"));
        }
        if !must_succeed_once && grace.is_given() {
            errors.push(grace.invalid("must not be set for readinessProbes"));
        }
    }
}

fn handler(handler: &FieldPath<'_, '_>, errors: &mut Errors) {
    let mut handlers = 0;
    for field in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let field_path = handler.get(field);
        if field_path.is_absent() {
            continue;
        }
        handlers += 1;
        if handlers > 1 {
            errors.push(field_path.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        match field {
            "exec" if field_path.get("command").is_empty() => errors.push(field_path.get("command").required("")),
            "httpGet" => {
                field_path.get("path").must_be_set("", errors);
                names::port(&field_path.get("port"), errors);
                field_path.get("scheme").one_of(&["HTTP", "HTTPS"], errors);
                for header in field_path.get("httpHeaders").items() {
                    let name = header.get("name");
                    let shown = field_path.get("httpHeaders");
                    shown.holding(name.value).follows(names::http_header, errors);
                }
            }
            "tcpSocket" | "grpc" => names::port(&field_path.get("port"), errors),
            _ => {}
        }
    }
    if handlers == 0 {
        errors.push(handler.required("must specify a handler type"));
    }
}

/// The fields of a security context, in the order of the Go type.
const SECURITY_CONTEXT: [(&str, &str, &str); 12] = [
    ("Capabilities", "capabilities", "null"),
    ("Privileged", "privileged", "null"),
    ("SELinuxOptions", "seLinuxOptions", "null"),
    ("WindowsOptions", "windowsOptions", "null"),
    ("RunAsUser", "runAsUser", "null"),
    ("RunAsGroup", "runAsGroup", "null"),
    ("RunAsNonRoot", "runAsNonRoot", "null"),
    ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem", "null"),
    ("AllowPrivilegeEscalation", "allowPrivilegeEscalation", "null"),
    ("ProcMount", "procMount", "null"),
    ("SeccompProfile", "seccompProfile", "null"),
    ("AppArmorProfile", "appArmorProfile", "null"),
];

fn security(context: &FieldPath<'_, '_>, errors: &mut Errors) {
    if context.is_absent() {
        return;
    }
    security_context::user_id(&context.get("runAsUser"), errors);
    security_context::user_id(&context.get("runAsGroup"), errors);
    security_context::seccomp(&context.get("seccompProfile"), errors);
    if *context.get("allowPrivilegeEscalation").value == serde_json::Value::Bool(false)
        && context.get("privileged").is_true()
    {
        let text = go_format::go(context.value, &SECURITY_CONTEXT);
        errors.push(context.shown(text, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
    }
}
