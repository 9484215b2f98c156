//! Pods and pod templates.
//!
//! # Upstream
//! `ValidatePodSpec` of `pkg/apis/core/validation`

use std::collections::BTreeSet;

use super::field_path::{Errors, FieldPath};
use super::{container, metadata, names, scheduling, security_context, volume};
use crate::status::FieldError;

/// The owner of a pod spec, on which some rules depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    NewPod,
    StoredPod,
    Template,
}

/// Checks a pod template: its metadata, without `metadata` in paths, and its spec.
pub(super) fn template(template: &FieldPath<'_, '_>, errors: &mut Errors) {
    let meta = template.get("metadata");
    for (field, check) in
        [("labels", metadata::labels as fn(&FieldPath<'_, '_>, &mut Errors)), ("annotations", metadata::annotations)]
    {
        let (values, shown) = (meta.get(field), template.get(field));
        check(&shown.holding(values.value), errors);
    }
    spec(&template.get("spec"), Of::Template, errors);
}

pub(super) fn spec(spec: &FieldPath<'_, '_>, of: Of, errors: &mut Errors) {
    let volumes = volume::all(spec, errors);
    containers(spec, &volumes, errors);
    if !spec.get("ephemeralContainers").is_empty() {
        match of {
            Of::Template => errors
                .push(spec.get("ephemeralContainers").forbidden("ephemeral containers not allowed in pod template")),
            Of::NewPod => errors.push(spec.get("ephemeralContainers").forbidden("cannot be set on create")),
            Of::StoredPod => {}
        }
    }
    spec.get("restartPolicy").one_of(&["Always", "OnFailure", "Never"], errors);
    dns(spec, errors);
    metadata::labels(&spec.get("nodeSelector"), errors);
    security(spec, errors);
    scheduling::affinity(&spec.get("affinity"), errors);
    for gate in spec.get("readinessGates").items() {
        gate.get("conditionType").follows(names::qualified, errors);
    }
    scheduling::gates(spec, errors);
    scheduling::spread(&spec.get("topologySpreadConstraints"), errors);
    for (field, rule) in [
        ("serviceAccountName", names::subdomain as names::Rule),
        ("nodeName", names::subdomain),
        ("hostname", names::label),
        ("subdomain", names::label),
        ("priorityClassName", names::subdomain),
        ("runtimeClassName", names::subdomain),
    ] {
        spec.get(field).may_follow(rule, errors);
    }
    let deadline = spec.get("activeDeadlineSeconds");
    deadline.refuse_number(
        |seconds| !(1..=i64::from(i32::MAX)).contains(&seconds),
        "must be between 1 and 2147483647, inclusive",
        errors,
    );
    scheduling::tolerations(&spec.get("tolerations"), errors);
    for alias in spec.get("hostAliases").items() {
        alias.get("ip").follows(names::ip, errors);
        for name in alias.get("hostnames").items() {
            name.follows(names::subdomain, errors);
        }
    }
    spec.get("preemptionPolicy").one_of(&["PreemptLowerPriority", "Never"], errors);
    let os = spec.get("os");
    if os.is_given() && !matches!(os.get("name").text(), "linux" | "windows") {
        errors.push(FieldError::not_supported(os.to_string(), os.get("name").text(), &["linux", "windows"]));
    }
}

fn containers(spec: &FieldPath<'_, '_>, volumes: &BTreeSet<&str>, errors: &mut Errors) {
    let list = spec.get("containers");
    if list.is_empty() {
        errors.push(list.required(""));
        return;
    }
    let mut names = BTreeSet::new();
    for item in list.items() {
        container::check(&item, volumes, errors);
        container::handlers(&item, errors);
        let name = item.get("name");
        if !name.is_empty() && !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
        let image = item.get("image");
        if image.text().trim() != image.text() {
            errors.push(image.invalid("must not have leading or trailing whitespace"));
        }
    }
    container::host_ports(spec, errors);
    for item in spec.get("initContainers").items() {
        container::check(&item, volumes, errors);
        let name = item.get("name");
        if !name.is_empty() && !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
        if item.get("restartPolicy").text() == "Always" {
            container::handlers(&item, errors);
        } else {
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if item.get(field).is_given() {
                    errors.push(
                        item.get(field).forbidden("may not be set for init containers without restartPolicy=Always"),
                    );
                }
            }
        }
    }
}

fn dns(spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    let policy = spec.get("dnsPolicy");
    policy.one_of(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], errors);
    let config = spec.get("dnsConfig");
    if policy.text() == "None" {
        if config.is_absent() {
            errors.push(config.required("must provide `dnsConfig` when `dnsPolicy` is None"));
        } else if config.get("nameservers").is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(config.get("nameservers").required(detail));
        }
    }
    for server in config.get("nameservers").items() {
        server.follows(names::ip, errors);
    }
}

fn security(spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    let context = spec.get("securityContext");
    for id in ["fsGroup", "runAsUser", "runAsGroup"] {
        security_context::user_id(&context.get(id), errors);
    }
    for group in context.get("supplementalGroups").items() {
        security_context::user_id(&group, errors);
    }
    if spec.get("shareProcessNamespace").is_true() && spec.get("hostPID").is_true() {
        let field_path = spec.get("shareProcessNamespace");
        errors.push(field_path.refused(true, "ShareProcessNamespace and HostPID cannot both be enabled"));
    }
    for sysctl in context.get("sysctls").items() {
        let name = sysctl.get("name");
        if name.is_empty() {
            errors.push(name.required(""));
        } else if !is_sysctl(name.text()) {
            errors.push(name.invalid("must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"));
        }
    }
    security_context::seccomp(&context.get("seccompProfile"), errors);
}

fn is_sysctl(name: &str) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= 253
        && name.split(['.', '/']).all(|part| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(is_end)
                && bytes.last().is_some_and(is_end)
                && bytes.iter().all(|byte| is_end(byte) || b"-_".contains(byte))
        })
}

/// Checks the status of a pod.
pub(super) fn status(status: &FieldPath<'_, '_>, errors: &mut Errors) {
    status.get("nominatedNodeName").may_follow(names::subdomain, errors);
    for address in status.get("podIPs").items() {
        address.holding(address.get("ip").value).follows(names::ip, errors);
    }
}

/// Refuses a node for a new pod with scheduling gates.
pub(super) fn gated(spec: &FieldPath<'_, '_>, is_new: bool, errors: &mut Errors) {
    if is_new && !spec.get("schedulingGates").is_empty() && spec.get("nodeName").is_given() {
        errors.push(spec.get("nodeName").forbidden("cannot be set until all schedulingGates have been cleared"));
    }
}
