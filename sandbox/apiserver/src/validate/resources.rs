//! Resource requirements, names of resources and quantities.
//!
//! # Upstream
//! `validateResourceRequirements` of `pkg/apis/core/validation`, `pkg/apis/core/helper`

use super::field_path::{Errors, FieldPath, NOT_NEGATIVE};
use super::names;
use crate::quantity::Quantity;

const CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const QUOTAS: [&str; 7] = [
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Returns `true` if the name belongs to Kubernetes itself.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && names::qualified(&format!("requests.{name}")).is_empty()
}

pub(super) fn name(name: &str) -> Vec<String> {
    let problems = names::qualified(name);
    let is_standard = || {
        let quota_name = name.strip_prefix("requests.").unwrap_or(name);
        CONTAINERS.contains(&name)
            || COUNTED.contains(&name)
            || QUOTAS.contains(&name)
            || name == "storage"
            || is_huge_pages(quota_name)
    };
    if problems.is_empty() && !name.contains('/') && !is_standard() {
        return vec!["must be a standard resource type or fully qualified".to_owned()];
    }
    problems
}

pub(super) fn container_name(resource: &str) -> Vec<String> {
    let mut problems = name(resource);
    if !resource.contains('/') {
        if !CONTAINERS.contains(&resource) && !is_huge_pages(resource) {
            problems.push("must be a standard resource for containers".to_owned());
        }
    } else if !is_native(resource) && !is_extended(resource) {
        problems.push("doesn't follow extended resource name standard".to_owned());
    }
    problems
}

pub(super) fn quota_name(resource: &str) -> Vec<String> {
    // `count/` and any resource with its group.
    if let Some(counted) = resource.strip_prefix("count/") {
        return names::subdomain(counted);
    }
    let mut problems = name(resource);
    let is_standard = || CONTAINERS.contains(&resource) || COUNTED.contains(&resource) || QUOTAS.contains(&resource);
    if !resource.contains('/')
        && !is_standard()
        && !is_huge_pages(resource.strip_prefix("requests.").unwrap_or(resource))
    {
        problems.push("must be a standard resource for quota".to_owned());
    }
    problems
}

/// Refuses quantities that are negative, and fractions of countable resources.
pub(super) fn amount(resource: &str, amount: &FieldPath<'_, '_>, errors: &mut Errors) -> Option<Quantity> {
    let quantity = Quantity::of(amount.value)?;
    if quantity.is_negative() {
        errors.push(amount.refused(quantity.to_string(), NOT_NEGATIVE));
    }
    if !quantity.is_whole() && (COUNTED.contains(&resource) || is_extended(resource)) {
        errors.push(amount.refused(quantity.to_string(), "must be an integer"));
    }
    Some(quantity)
}

/// Checks the requests and limits of a container.
pub(super) fn check(resources: &FieldPath<'_, '_>, rule: names::Rule, errors: &mut Errors) {
    let (limits, requests) = (resources.get("limits"), resources.get("requests"));
    for list in [&limits, &requests] {
        for (resource, given) in list.entries() {
            if !CONTAINERS.contains(&resource) {
                given.refuse(resource, rule, errors);
            }
            let Some(asked) = amount(resource, &given, errors) else { continue };
            if std::ptr::eq(list, &raw const limits) {
                continue;
            }
            let may_differ = is_native(resource) && !is_huge_pages(resource);
            match Quantity::of(limits.key(resource).value) {
                Some(limit) if asked.compare(limit).is_ne() && !may_differ => {
                    let detail = format!("must be equal to {resource} limit of {limit}");
                    errors.push(requests.refused(asked.to_string(), detail));
                }
                Some(limit) if asked.compare(limit).is_gt() => {
                    let detail = format!("must be less than or equal to {resource} limit of {limit}");
                    errors.push(requests.refused(asked.to_string(), detail));
                }
                None if !may_differ => {
                    errors.push(limits.required("Limit must be set for non overcommitable resources"));
                }
                Some(_) | None => {}
            }
        }
    }
    let has = |test: fn(&str) -> bool| {
        [&limits, &requests].into_iter().any(|list| list.entries().any(|(name, _)| test(name)))
    };
    if has(is_huge_pages) && !has(|name| matches!(name, "cpu" | "memory")) {
        errors.push(resources.forbidden("HugePages require cpu or memory"));
    }
}
