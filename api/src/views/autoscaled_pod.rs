//! The part of pods that horizontal pod autoscalers read.

use std::hash::{Hash, Hasher};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use super::charged_pod::{Container, PodContainers, ResourceRequirements};
use super::conditions::RawCondition;
use crate::decode::fold;
use crate::intern::InternedStr;
use crate::protobuf::{Kind, ProtobufType};
use crate::resource_list::ResourceList;
use crate::shared::Shared;
use crate::shared_values::Shareable;

crate::message! {
    /// Start, readiness and resource requests of a pod.
    pub struct AutoscaledPod {
        "spec" @ 2 {
            let containers: Vec<Container> = "containers" @ 2;
            let init_containers: Vec<Container> = "initContainers" @ 20;
            let overhead: ResourceList = "overhead" @ 32;
            let pod_level: Option<ResourceRequirements> = "resources" @ 40;
        }
        "status" @ 3 {
            /// Condition `Ready` of the status.
            pub ready_condition: ReadyCondition = "conditions" @ 2;
            /// `status.startTime`, `None` if it is absent.
            pub start_time: Option<Timestamp> = "startTime" @ 7;
        }
        /// Resource requests of the pod.
        pub requests: Shared<PodRequests> =
            Shared::new(PodRequests::of(containers, init_containers, &overhead, pod_level));
    }
}

/// The first condition `Ready` of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadyCondition {
    /// The pod does not have the condition.
    #[default]
    Absent,
    /// The pod has the condition.
    Present {
        /// Whether it is `False`.
        is_false: bool,
        /// Time of the last change of its status; `None` if it has no valid time.
        since: Option<Timestamp>,
    },
}

impl ProtobufType for ReadyCondition {
    const KIND: Kind = RawCondition::LIST;
}

impl<'de> Deserialize<'de> for ReadyCondition {
    fn deserialize<D: Deserializer<'de>>(conditions: D) -> Result<Self, D::Error> {
        fold(conditions, Self::Absent, |found, condition: RawCondition<'de>| {
            if *found == Self::Absent && condition.is_of_type("Ready") {
                *found = Self::Present { is_false: condition.is_false(), since: condition.since() };
            }
        })
    }
}

/// Resource requests of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodRequests {
    /// Name and requests of each container, then of each init container that is always restarted.
    pub containers: Box<[(InternedStr, ResourceList)]>,
    /// Requests of the whole pod with its overhead, if `spec.resources` requests CPU, memory or huge pages.
    ///
    /// A resource that `spec.resources` does not request is the sum over the containers.
    pub pod_level: Option<ResourceList>,
}

impl Shareable for PodRequests {
    fn is_same(&self, other: &Self) -> bool {
        self == other && self.lists().zip(other.lists()).all(|(list, other)| list.is_same(other))
    }

    fn digest<H: Hasher>(&self, state: &mut H) {
        for (name, requests) in &self.containers {
            name.hash(state);
            requests.digest(state);
        }
    }
}

impl PodRequests {
    fn lists(&self) -> impl Iterator<Item = &ResourceList> {
        self.containers.iter().map(|(_, requests)| requests).chain(&self.pod_level)
    }

    fn of(
        regular: Vec<Container>,
        init: Vec<Container>,
        overhead: &ResourceList,
        pod_level: Option<ResourceRequirements>,
    ) -> Self {
        let pod_level = pod_level.map(|resources| resources.requests);
        let supported =
            |name: &InternedStr| matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-");
        let pod_level = pod_level.filter(|requests| requests.names().any(supported));
        let sidecars = init.iter().filter(|container| container.is_always_restarted);
        let of_container =
            |container: &Container| (InternedStr::from(&*container.name), container.resources.requests.clone());
        let containers = regular.iter().chain(sidecars).map(of_container).collect();
        let pod_level = pod_level.map(|requests| {
            let all = PodContainers { regular, init, statuses: Vec::new(), is_resize_infeasible: false };
            let mut sum = all.resources(false).requests;
            for (name, quantity) in requests.iter().filter(|(name, _)| supported(name)) {
                sum.insert(name.clone(), quantity);
            }
            sum.add(overhead);
            sum.shrunk()
        });
        Self { containers, pod_level }
    }
}
