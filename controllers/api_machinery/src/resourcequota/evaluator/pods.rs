//! Pods: how many there are, and what they request.

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::views::{Pod, QosClass, QuotaFields, ResourceRequirements};
use kcm_framework::api::{ResourceList, ResourceQuantity};

use super::scopes::Requirement;
use crate::resourcequota::settings::Gates;

/// The prefix of the constraints on requests.
pub(super) const REQUESTS: &str = "requests.";

/// The prefix of the implicit extended resources of device classes.
pub(super) const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// A constraint for which pods count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::resourcequota) enum PodConstraint<'a> {
    /// All pods that are stored.
    Objects,
    /// Pods that are neither finished nor stuck in their deletion.
    Pods,
    /// What these pods request of a resource.
    Requests(&'a str),
    /// The limits of these pods for a resource.
    Limits(&'a str),
}

impl<'a> PodConstraint<'a> {
    pub(in crate::resourcequota) fn parse(constraint: &'a str) -> Option<Self> {
        const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
        if constraint == "count/pods" {
            return Some(Self::Objects);
        }
        if constraint == "pods" {
            return Some(Self::Pods);
        }
        if let Some(resource) = constraint.strip_prefix("limits.") {
            return COMPUTE.contains(&resource).then_some(Self::Limits(resource));
        }
        let requested = constraint.strip_prefix(REQUESTS);
        let resource = requested.unwrap_or(constraint);
        let is_counted = COMPUTE.contains(&resource)
            || resource.starts_with("hugepages-")
            || requested.is_some_and(is_extended_resource);
        is_counted.then_some(Self::Requests(resource))
    }
}

/// Whether a resource is neither of Kubernetes itself, or is the implicit one of a device class.
pub(super) fn is_extended_resource(resource: &str) -> bool {
    resource.starts_with(DEVICE_CLASS) || (resource.contains('/') && !resource.contains("kubernetes.io/"))
}

/// Returns `true` if `spec.resources` of a pod may set the resource for all containers together.
fn is_supported_of_pod(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

/// A pod, with what quotas read of it.
#[derive(Debug, Clone, Copy)]
pub(in crate::resourcequota) struct CountedPod<'a> {
    pub(in crate::resourcequota) pod: &'a Pod,
    pub(in crate::resourcequota) fields: &'a QuotaFields,
}

impl CountedPod<'_> {
    /// Whether the pod counts for more than the objects: it is not finished, and if it is terminating, it has not been for
    /// longer than its grace period after it was to be gone.
    pub(in crate::resourcequota) fn is_charged(&self, now: Timestamp) -> bool {
        let deletion = self.pod.metadata.deletion_timestamp.zip(self.fields.deletion_grace_period_seconds);
        let is_stuck = deletion.is_some_and(|(at, grace)| now.duration_since(at) > SignedDuration::from_secs(grace));
        !self.pod.is_finished() && !is_stuck
    }

    /// What the pod adds to the usage of a constraint.
    pub(in crate::resourcequota) fn usage(
        &self,
        constraint: PodConstraint<'_>,
        gates: Gates,
        now: Timestamp,
    ) -> ResourceQuantity {
        if constraint != PodConstraint::Objects && !self.is_charged(now) {
            return ResourceQuantity::default();
        }
        match constraint {
            PodConstraint::Objects | PodConstraint::Pods => ResourceQuantity::whole(1),
            PodConstraint::Requests(resource) => self.requests(resource, gates),
            PodConstraint::Limits(resource) => self.limits(resource, gates),
        }
    }

    fn requests(&self, resource: &str, gates: Gates) -> ResourceQuantity {
        let mut requests = self.resource(resource, gates, |resources| &resources.requests);
        requests += self.fields.overhead.get(resource).unwrap_or_default();
        requests
    }

    /// An overhead counts where there is a limit.
    fn limits(&self, resource: &str, gates: Gates) -> ResourceQuantity {
        let mut limits = self.resource(resource, gates, |resources| &resources.limits);
        if !limits.is_zero() {
            limits += self.fields.overhead.get(resource).unwrap_or_default();
        }
        limits
    }

    /// The value of the pod as a whole, or else that of its containers together.
    fn resource(
        &self,
        resource: &str,
        gates: Gates,
        list: fn(&ResourceRequirements) -> &ResourceList,
    ) -> ResourceQuantity {
        let of_pod = self
            .pod_level(gates)
            .filter(|_| is_supported_of_pod(resource))
            .and_then(|of_pod| list(of_pod).get(resource));
        of_pod.or_else(|| list(self.containers(gates)).get(resource)).unwrap_or_default()
    }

    fn pod_level(&self, gates: Gates) -> Option<&ResourceRequirements> {
        self.fields.pod_level.as_deref().filter(|_| gates.pod_level_resources)
    }

    fn containers(&self, gates: Gates) -> &ResourceRequirements {
        let before_status = self.fields.before_status.as_deref().filter(|_| !gates.in_place_resize);
        before_status.unwrap_or(&self.fields.resources)
    }

    /// Whether the pod is in a scope.
    pub(in crate::resourcequota) fn is_in(&self, scope: &Requirement<'_>, gates: Gates) -> bool {
        match scope.name {
            "Terminating" => self.fields.has_active_deadline,
            "NotTerminating" => !self.fields.has_active_deadline,
            "BestEffort" => self.is_best_effort(gates),
            "NotBestEffort" => !self.is_best_effort(gates),
            "PriorityClass" => scope.matches(self.fields.priority_class_name.as_deref()),
            "CrossNamespacePodAffinity" => self.fields.uses_cross_namespace_affinity,
            _ => false,
        }
    }

    /// By the class in the status, which every API server of today sets; else by the resources.
    fn is_best_effort(&self, gates: Gates) -> bool {
        if self.fields.qos_class != QosClass::Other {
            return self.fields.qos_class == QosClass::BestEffort;
        }
        let names_supported = |resources: &&ResourceRequirements| {
            let lists = [&resources.requests, &resources.limits];
            lists.into_iter().any(|list| list.names().any(|name| is_supported_of_pod(name)))
        };
        let of_pod = self.pod_level(gates).filter(|it| !gates.pod_level_qos_fix || names_supported(it));
        let has_compute_resources = of_pod.map(ResourceRequirements::are_compute);
        !has_compute_resources.unwrap_or(self.fields.has_compute_resources)
    }

    /// Whether an update from `old` may free what a quota counts.
    pub(in crate::resourcequota) fn replenishes(&self, old: &Self, gates: Gates, now: Timestamp) -> bool {
        (gates.in_place_resize && self.fields.resources != old.fields.resources)
            || self.fields.has_active_deadline != old.fields.has_active_deadline
            || (old.is_charged(now) && !self.is_charged(now))
    }
}
