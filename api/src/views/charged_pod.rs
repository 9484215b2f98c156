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
    pub(super) statuses: Vec<ContainerStatus>,
    pub(super) is_resize_infeasible: bool,
}

impl PodContainers {
    /// Returns the requests of all containers together, and their limits.
    ///
    /// # Upstream
    /// `resourcehelper.AggregateContainerRequests` and `AggregateContainerLimits`: an init container runs beside the
    /// sidecars before it, and all containers run beside all sidecars; the greater of both counts, for each resource.
    pub(super) fn resources(&self, with_status: bool) -> ResourceRequirements {
        let aggregate = |of: fn(&ResourceRequirements) -> &ResourceList, effective: Effective| {
            let of_container = |container: &Container| {
                let spec = of(&container.resources);
                let status = self.status_of(container).filter(|_| with_status);
                match status.and_then(|status| Some((status, status.resources.as_ref()?))) {
                    Some((status, actuated)) => {
                        effective(spec, of(actuated), &status.allocated, self.is_resize_infeasible)
                    }
                    None => spec.clone(),
                }
            };
            let (mut sum, mut sidecars, mut most) =
                (ResourceList::default(), ResourceList::default(), ResourceList::default());
            for container in &self.regular {
                sum.add(&of_container(container));
            }
            for container in &self.init {
                if container.is_always_restarted {
                    let resources = of_container(container);
                    sum.add(&resources);
                    sidecars.add(&resources);
                    most.raise_to(&sidecars);
                } else {
                    let mut resources = of(&container.resources).clone();
                    resources.add(&sidecars);
                    most.raise_to(&resources);
                }
            }
            sum.raise_to(&most);
            sum.shrunk()
        };
        ResourceRequirements {
            requests: aggregate(|resources| &resources.requests, effective_requests),
            limits: aggregate(|resources| &resources.limits, effective_limits),
        }
    }

    /// Returns the status of a container. The last of several statuses with one name counts.
    fn status_of(&self, container: &Container) -> Option<&ContainerStatus> {
        self.statuses.iter().rev().find(|status| status.name == container.name)
    }

    fn have_compute_resources(&self) -> bool {
        self.regular.iter().chain(&self.init).any(|container| container.resources.are_compute())
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

/// Computes the resources of a container from its spec, actuated and allocated resources. The flag says that the resize
/// of its pod is infeasible.
type Effective = fn(&ResourceList, &ResourceList, &ResourceList, bool) -> ResourceList;

fn effective_requests(
    spec: &ResourceList,
    actuated: &ResourceList,
    allocated: &ResourceList,
    is_infeasible: bool,
) -> ResourceList {
    let mut most = if is_infeasible { actuated.clone() } else { spec.clone() };
    most.raise_to(actuated);
    most.raise_to(allocated);
    most
}

fn effective_limits(
    spec: &ResourceList,
    actuated: &ResourceList,
    _: &ResourceList,
    is_infeasible: bool,
) -> ResourceList {
    let mut most = if is_infeasible { actuated.clone() } else { spec.clone() };
    most.raise_to(actuated);
    most
}
