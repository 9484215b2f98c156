//! The part of pods that resource quotas read.

use std::hash::{Hash, Hasher};

use serde::Deserialize;

use crate::intern::InternedStr;
use crate::protobuf::{Kind, ProtobufType};
use crate::resource_list::ResourceList;
use crate::resource_quantity::ResourceQuantity;
use crate::shared::Shared;
use crate::shared_values::Shareable;

crate::message! {
    /// Fields from which resource quotas compute the charge for a pod and its scopes.
    pub struct ChargedPod {
        "metadata" @ 1 {
            let grace_period_seconds: Option<i64> = "deletionGracePeriodSeconds" @ 10;
        }
        "spec" @ 2 {
            let containers: Vec<Container> = "containers" @ 2;
            let active_deadline_seconds: Option<i64> = "activeDeadlineSeconds" @ 5;
            let affinity: Affinity = "affinity" @ 18;
            let init_containers: Vec<Container> = "initContainers" @ 20;
            let priority_class_name: InternedStr = "priorityClassName" @ 24;
            let overhead: ResourceList = "overhead" @ 32;
            let pod_level: Option<ResourceRequirements> = "resources" @ 40;
        }
        "status" @ 3 {
            let conditions: Vec<Condition> = "conditions" @ 2;
            let container_statuses: Vec<ContainerStatus> = "containerStatuses" @ 8;
            let qos_class: QosClass = "qosClass" @ 9;
            let init_container_statuses: Vec<ContainerStatus> = "initContainerStatuses" @ 10;
            let extended_resource_claim: Option<ExtendedResourceClaimStatus> = "extendedResourceClaimStatus" @ 18;
        }
        /// The fields that resource quotas read.
        pub fields: Shared<QuotaFields> = {
            let containers = PodContainers {
                regular: containers,
                init: init_containers,
                statuses: container_statuses.into_iter().chain(init_container_statuses).collect(),
                is_resize_infeasible: is_resize_infeasible(&conditions),
            };
            let spec = containers.resources(false);
            let status = containers.resources(true);
            Shared::new(QuotaFields {
                before_status: (spec != status).then(|| Box::new(spec)),
                resources: status,
                pod_level: pod_level.filter(|resources| *resources != ResourceRequirements::default()).map(Box::new),
                overhead,
                has_compute_resources: containers.have_compute_resources(),
                qos_class,
                priority_class_name: Some(priority_class_name).filter(|name| !name.is_empty()),
                has_active_deadline: active_deadline_seconds.is_some_and(|seconds| seconds >= 0),
                uses_cross_namespace_affinity: affinity.is_cross_namespace(),
                deletion_grace_period_seconds: grace_period_seconds,
                extended_resource_claim: extended_resource_claim.map(|status| status.claim_name),
            })
        };
    }
}

/// Fields of a pod that resource quotas read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QuotaFields {
    /// Resources of all containers. The status counts during a resize (gate `InPlacePodVerticalScaling`).
    pub resources: ResourceRequirements,
    /// Resources of all containers by the spec alone; `None` if they equal `resources`.
    pub before_status: Option<Box<ResourceRequirements>>,
    /// `spec.resources`, `None` if it is absent.
    pub pod_level: Option<Box<ResourceRequirements>>,
    /// `spec.overhead`, empty if it is absent.
    pub overhead: ResourceList,
    /// Whether any container requests CPU or memory, or limits them.
    pub has_compute_resources: bool,
    /// Quality of service: `status.qosClass`.
    pub qos_class: QosClass,
    /// `spec.priorityClassName`, `None` if it is absent.
    pub priority_class_name: Option<InternedStr>,
    /// Whether `spec.activeDeadlineSeconds` is set.
    pub has_active_deadline: bool,
    /// Whether an affinity term, or one of anti-affinity, names other namespaces.
    pub uses_cross_namespace_affinity: bool,
    /// `metadata.deletionGracePeriodSeconds`, `None` if it is absent.
    pub deletion_grace_period_seconds: Option<i64>,
    /// `status.extendedResourceClaimStatus.resourceClaimName`, `None` if it is absent.
    pub extended_resource_claim: Option<Box<str>>,
}

impl QuotaFields {
    fn lists(&self) -> impl Iterator<Item = &ResourceList> {
        let resources = [Some(&self.resources), self.before_status.as_deref(), self.pod_level.as_deref()];
        let lists = resources.into_iter().flatten().flat_map(|it| [&it.limits, &it.requests]);
        lists.chain([&self.overhead])
    }
}

impl Shareable for QuotaFields {
    fn is_same(&self, other: &Self) -> bool {
        self == other && self.lists().zip(other.lists()).all(|(list, other)| list.is_same(other))
    }

    fn digest<H: Hasher>(&self, state: &mut H) {
        self.lists().for_each(|list| list.digest(state));
        self.priority_class_name.hash(state);
        self.deletion_grace_period_seconds.hash(state);
    }
}

crate::message! {
    /// Resource requests and limits.
    #[derive(Eq)]
    pub struct ResourceRequirements {
        /// Limits by name of the resource.
        pub limits: ResourceList = "limits" @ 1;
        /// Requests by name of the resource.
        pub requests: ResourceList = "requests" @ 2;
    }
}

/// The quality of service of a pod, from its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[non_exhaustive]
pub enum QosClass {
    /// Neither requests nor limits.
    BestEffort,
    /// Requests or limits, but not equal ones for all containers.
    Burstable,
    /// Requests that equal limits.
    Guaranteed,
    /// Not said, or a word that we do not know.
    #[default]
    #[serde(other)]
    Other,
}

impl ProtobufType for QosClass {
    const KIND: Kind = Kind::Text;
}

crate::message! {
    pub(super) struct Container {
        pub(super) name: Box<str> = "name" @ 1;
        pub(super) resources: ResourceRequirements = "resources" @ 8;
        let restart_policy: Box<str> = "restartPolicy" @ 24;
        pub(super) is_always_restarted: bool = &*restart_policy == "Always";
    }
}

crate::message! {
    pub(super) struct ContainerStatus {
        name: Box<str> = "name" @ 1;
        allocated: ResourceList = "allocatedResources" @ 10;
        resources: Option<ResourceRequirements> = "resources" @ 11;
    }
}

crate::message! {
    struct Condition {
        type_: Box<str> = "type" @ 1;
        reason: Box<str> = "reason" @ 5;
    }
}

crate::message! {
    struct ExtendedResourceClaimStatus {
        claim_name: Box<str> = "resourceClaimName" @ 2;
    }
}

crate::message! {
    struct Affinity {
        "podAffinity" @ 2 {
            required: Vec<AffinityTerm> = "requiredDuringSchedulingIgnoredDuringExecution" @ 1;
            preferred: Vec<WeightedAffinityTerm> = "preferredDuringSchedulingIgnoredDuringExecution" @ 2;
        }
        "podAntiAffinity" @ 3 {
            required_anti: Vec<AffinityTerm> = "requiredDuringSchedulingIgnoredDuringExecution" @ 1;
            preferred_anti: Vec<WeightedAffinityTerm> = "preferredDuringSchedulingIgnoredDuringExecution" @ 2;
        }
    }
}

crate::message! {
    struct AffinityTerm {
        let namespaces: Vec<String> = "namespaces" @ 2;
        let namespace_selector: Option<Present> = "namespaceSelector" @ 4;
        is_cross_namespace: bool = !namespaces.is_empty() || namespace_selector.is_some();
    }
}

crate::message! {
    struct WeightedAffinityTerm {
        term: AffinityTerm = "podAffinityTerm" @ 2;
    }
}

crate::message! {
    struct Present {}
}

impl Affinity {
    fn is_cross_namespace(&self) -> bool {
        let required = self.required.iter().chain(&self.required_anti);
        let preferred = self.preferred.iter().chain(&self.preferred_anti).map(|weighted| &weighted.term);
        required.chain(preferred).any(|term| term.is_cross_namespace)
    }
}

/// Returns `true` if the status says that a resize of the pod is infeasible.
///
/// # Upstream
/// `resourcehelper.IsPodResizeInfeasible`: the first condition of the type counts.
fn is_resize_infeasible(conditions: &[Condition]) -> bool {
    let pending = conditions.iter().find(|condition| &*condition.type_ == "PodResizePending");
    pending.is_some_and(|condition| &*condition.reason == "Infeasible")
}

/// Containers and statuses from which the resources of a pod are computed.
pub(super) struct PodContainers {
    pub(super) regular: Vec<Container>,
    pub(super) init: Vec<Container>,
    /// The statuses of regular containers, followed by the statuses of init containers.
    pub(super) statuses: Vec<ContainerStatus>,
    pub(super) is_resize_infeasible: bool,
}

/// Returns a list of a container, by its spec or by its status.
type ListOf<'a> = &'a dyn for<'c> Fn(&'c Container, Option<&'c ContainerStatus>) -> Option<&'c ResourceList>;

impl PodContainers {
    /// Returns the requests of all containers together, and their limits.
    ///
    /// With the status, the greatest of three sums counts, for each resource: the resources of the spec, the allocated
    /// ones, and the ones in use. So a pod is charged once for what one container gives up and another gets. An infeasible
    /// resize leaves the resources of the spec out.
    ///
    /// # Upstream
    /// `resourcehelper.AggregateContainerRequests` and `AggregateContainerLimits` of Kubernetes 1.37. An empty list in a
    /// status counts as absent, as it is for clients that read protobuf.
    pub(super) fn resources(&self, with_status: bool) -> ResourceRequirements {
        let mut requests = ResourceList::default();
        let mut limits = ResourceList::default();
        if !with_status || !self.is_resize_infeasible {
            requests = self.sum(&|container, _| Some(&container.resources.requests));
            limits = self.sum(&|container, _| Some(&container.resources.limits));
        }
        // Without resources in any status, the three sums are equal.
        if with_status && (self.is_resize_infeasible || self.statuses.iter().any(ContainerStatus::has_resources)) {
            requests.raise_to(&self.sum(&|container, status| {
                status.and_then(ContainerStatus::allocated).or_else(|| self.feasible(&container.resources.requests))
            }));
            requests.raise_to(&self.sum(&|container, status| {
                let in_use = status.and_then(|status| status.in_use(|resources| &resources.requests));
                let allocated = || status.and_then(ContainerStatus::allocated);
                in_use.or_else(allocated).or_else(|| self.feasible(&container.resources.requests))
            }));
            limits.raise_to(&self.sum(&|container, status| {
                let in_use = status.and_then(|status| status.in_use(|resources| &resources.limits));
                in_use.or_else(|| self.feasible(&container.resources.limits))
            }));
        }
        ResourceRequirements { requests: requests.shrunk(), limits: limits.shrunk() }
    }

    /// Returns a list of the spec unless the resize is infeasible.
    fn feasible<'c>(&self, list: &'c ResourceList) -> Option<&'c ResourceList> {
        (!self.is_resize_infeasible).then_some(list)
    }

    /// Returns the sum of a list of all containers. An init container runs beside the sidecars before it, and all
    /// containers run beside all sidecars; the greater of both counts, for each resource.
    fn sum(&self, list_of: ListOf<'_>) -> ResourceList {
        let (mut sum, mut sidecars, mut most) =
            (ResourceList::default(), ResourceList::default(), ResourceList::default());
        for container in &self.regular {
            if let Some(list) = list_of(container, self.status_of(container)) {
                sum.add(list);
            }
        }
        for container in &self.init {
            let Some(list) = list_of(container, self.status_of(container)) else { continue };
            if container.is_always_restarted {
                sum.add(list);
                sidecars.add(list);
                most.raise_to(&sidecars);
            } else {
                let mut resources = list.clone();
                resources.add(&sidecars);
                most.raise_to(&resources);
            }
        }
        sum.raise_to(&most);
        sum
    }

    /// Returns the status of a container. The first of several statuses with one name counts.
    fn status_of(&self, container: &Container) -> Option<&ContainerStatus> {
        self.statuses.iter().find(|status| status.name == container.name)
    }

    fn have_compute_resources(&self) -> bool {
        self.regular.iter().chain(&self.init).any(|container| container.resources.are_compute())
    }
}

impl ContainerStatus {
    fn allocated(&self) -> Option<&ResourceList> {
        Some(&self.allocated).filter(|list| !list.is_empty())
    }

    fn in_use(&self, of: fn(&ResourceRequirements) -> &ResourceList) -> Option<&ResourceList> {
        self.resources.as_ref().map(of).filter(|list| !list.is_empty())
    }

    fn has_resources(&self) -> bool {
        self.resources.is_some() || !self.allocated.is_empty()
    }
}

impl ResourceRequirements {
    /// Returns `true` if CPU or memory is requested or limited.
    #[must_use]
    pub fn are_compute(&self) -> bool {
        let is_positive = |list: &ResourceList, name| list.get(name).is_some_and(ResourceQuantity::is_positive);
        [&self.requests, &self.limits].into_iter().any(|list| is_positive(list, "cpu") || is_positive(list, "memory"))
    }
}
