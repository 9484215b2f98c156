//! The view of a Pod.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer};

use super::autoscaled_pod::AutoscaledPod;
use super::charged_pod::ChargedPod;
use super::conditions::RawCondition;
use super::pod_claims::PodClaims;
use super::pod_deletion::PodDeletion;
use super::pod_group_membership::PodGroupMembership;
use super::pod_parts::{PodAddresses, PodDisruption, PodTargetNode, PodTolerations, PodVolumes};
use super::pod_phase::PodPhase;
use super::pod_selinux::PodSelinux;
use super::pod_termination::PodTermination;
use crate::decode::{fold, null_as_default, text};
use crate::intern::InternedStr;
use crate::protobuf::{Field, Kind, ProtobufType};
use crate::resource::Resource;

crate::view! {
    /// A pod.
    ///
    /// A cluster has more pods than other objects, and they are patched, never updated whole. Therefore a pod keeps
    /// only the facts that decisions need, not the parts of the object that they were read from.
    pub struct Pod {
        resource: Resource::namespaced("", "v1", "pods", "Pod");
        // ranks the pods that a replica set deletes
        annotations: ["controller.kubernetes.io/pod-deletion-cost"];
        parts: PodPart [PodVolumes, PodAddresses, PodDisruption, PodTargetNode, PodTolerations, ChargedPod, PodTermination, AutoscaledPod, PodDeletion, PodGroupMembership, PodClaims, PodSelinux];

        "spec" @ 2 {
            let node_name: Option<InternedStr> = "nodeName" @ 10;
            // JSON leaves the field out, protobuf does not, and a client may have written an empty one.
            /// `spec.nodeName`: the node that the pod is assigned to.
            pub node_name: Option<InternedStr> = node_name.filter(|name| !name.is_empty());
            let sidecars: Sidecars = "initContainers" @ 20;
        }
        "status" @ 3 {
            /// Phase of the pod: `status.phase`.
            pub phase: PodPhase = "phase" @ 1;
            ready: PackedReadiness = "conditions" @ 2;
            let most_restarts: MostRestarts = "containerStatuses" @ 8;
            /// The most restarts of any container.
            pub restarts: i32 = most_restarts.0;
            let init_restarts: InitRestarts = "initContainerStatuses" @ 10;
            /// The most restarts of any sidecar: an init container that is always restarted.
            pub sidecar_restarts: i32 = init_restarts.most_of(&sidecars);
        }
    }
}

/// The condition `Ready` of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Not ready, or without a Ready condition.
    NotReady,
    /// Ready since a time, which may be missing.
    Ready {
        /// Time at which the condition last became true.
        since: Option<Timestamp>,
    },
}

impl Pod {
    /// Returns `true` if the pod has finished, or is terminating and none of its containers runs.
    ///
    /// # Upstream
    /// `IsPodTerminated` of `pkg/volume/util`: a terminating pod that never started a container is terminated.
    #[must_use]
    pub const fn is_terminated(&self, deletion: &PodDeletion) -> bool {
        self.is_finished() || self.metadata.is_terminating() && !deletion.has_running_containers
    }

    /// Returns `true` if the pod is neither finished nor terminating.
    ///
    /// # Upstream
    /// `controller.IsPodActive`.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        !self.is_finished() && !self.metadata.is_terminating()
    }

    /// Returns `true` if the pod is terminating and its containers may still run.
    ///
    /// # Upstream
    /// `controller.IsPodTerminating`.
    #[must_use]
    pub const fn is_terminating(&self) -> bool {
        !self.is_finished() && self.metadata.is_terminating()
    }

    /// Returns `true` if all containers have ended for good.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.phase.is_final()
    }

    /// Returns the condition `Ready`. Its time is in whole seconds, as in the API.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.ready.into()
    }

    /// Returns `true` if the pod is ready.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.ready.0 != PackedReadiness::NOT_READY.0
    }

    /// Returns the time since which the pod is ready; `None` if it is not ready, or has no transition time.
    #[must_use]
    pub fn ready_since(&self) -> Option<Timestamp> {
        match self.readiness() {
            Readiness::NotReady => None,
            Readiness::Ready { since } => since,
        }
    }

    /// Returns `true` if the pod has been ready for `min_ready_seconds` at `now`.
    ///
    /// # Upstream
    /// `podutil.IsPodAvailable`: exactly that time is enough. A pod without a transition time is never available.
    #[must_use]
    pub fn is_available_at(&self, min_ready_seconds: i32, now: Timestamp) -> bool {
        let long_enough = |since| now.duration_since(since) >= SignedDuration::from_secs(min_ready_seconds.into());
        self.is_ready() && (min_ready_seconds == 0 || self.ready_since().is_some_and(long_enough))
    }
}

/// A [`Readiness`] in one word instead of three: the seconds of its time, or a value that no time has.
#[derive(Clone, Copy, PartialEq)]
struct PackedReadiness(i64);

impl PackedReadiness {
    const NOT_READY: Self = Self(i64::MIN);
    const SINCE_UNKNOWN: Self = Self(i64::MIN + 1);

    fn since(time: Timestamp) -> Self {
        Self(time.as_second())
    }
}

impl Default for PackedReadiness {
    fn default() -> Self {
        Self::NOT_READY
    }
}

impl From<PackedReadiness> for Readiness {
    fn from(packed: PackedReadiness) -> Self {
        if packed == PackedReadiness::NOT_READY {
            return Self::NotReady;
        }
        // The value for an unknown time is out of range too.
        Self::Ready { since: Timestamp::from_second(packed.0).ok() }
    }
}

impl std::fmt::Debug for PackedReadiness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Readiness::from(*self).fmt(f)
    }
}

impl ProtobufType for PackedReadiness {
    const KIND: Kind = RawCondition::LIST;
}

impl<'de> Deserialize<'de> for PackedReadiness {
    /// The first of several conditions of one type counts, as upstream.
    fn deserialize<D: Deserializer<'de>>(conditions: D) -> Result<Self, D::Error> {
        let ready = fold(conditions, None, |ready: &mut Option<RawCondition<'de>>, condition: RawCondition<'de>| {
            if ready.is_none() && condition.is_of_type("Ready") {
                *ready = Some(condition);
            }
        })?;
        let Some(condition) = ready.filter(RawCondition::is_true) else { return Ok(Self::NOT_READY) };
        Ok(condition.since().map_or(Self::SINCE_UNKNOWN, Self::since))
    }
}

/// An init container, or the status of a container.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawContainer<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    restart_policy: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "null_as_default")]
    restart_count: i32,
}

const STATUSES: Kind = Kind::List(&Kind::One(&[Field::text(1, "name"), Field::integer(5, "restartCount")]));

/// The most restarts of a list of container statuses.
#[derive(Default)]
struct MostRestarts(i32);

impl ProtobufType for MostRestarts {
    const KIND: Kind = STATUSES;
}

impl<'de> Deserialize<'de> for MostRestarts {
    fn deserialize<D: Deserializer<'de>>(statuses: D) -> Result<Self, D::Error> {
        let most = |most: &mut i32, status: RawContainer<'de>| *most = status.restart_count.max(*most);
        fold(statuses, 0, most).map(Self)
    }
}

/// The names of the init containers that run beside the others.
#[derive(Default)]
struct Sidecars(Vec<Option<Box<str>>>);

impl ProtobufType for Sidecars {
    const KIND: Kind = Kind::List(&Kind::One(&[Field::text(1, "name"), Field::text(24, "restartPolicy")]));
}

impl<'de> Deserialize<'de> for Sidecars {
    fn deserialize<D: Deserializer<'de>>(containers: D) -> Result<Self, D::Error> {
        fold(containers, Self::default(), |sidecars, container: RawContainer<'de>| {
            if container.restart_policy.as_deref() == Some("Always") {
                sidecars.0.push(container.name.map(Box::from));
            }
        })
    }
}

/// Number of restarts of each init container that was restarted.
#[derive(Default)]
struct InitRestarts(Vec<(Option<Box<str>>, i32)>);

impl ProtobufType for InitRestarts {
    const KIND: Kind = STATUSES;
}

impl<'de> Deserialize<'de> for InitRestarts {
    fn deserialize<D: Deserializer<'de>>(statuses: D) -> Result<Self, D::Error> {
        fold(statuses, Self::default(), |restarts, status: RawContainer<'de>| {
            if status.restart_count > 0 {
                restarts.0.push((status.name.map(Box::from), status.restart_count));
            }
        })
    }
}

impl InitRestarts {
    /// The most restarts of a sidecar; init containers that run before the others are not counted.
    fn most_of(&self, sidecars: &Sidecars) -> i32 {
        let of_sidecars = self.0.iter().filter(|(name, _)| sidecars.0.contains(name));
        of_sidecars.map(|(_, restarts)| *restarts).fold(0, i32::max)
    }
}
