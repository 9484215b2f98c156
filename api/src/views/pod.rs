//! Pods.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer};

use crate::decode::{fold, null_as_default, text};
use crate::protobuf::{Field, Message, Reader};
use crate::{DecodeError, InternedStr, KnownView, Meta, Resource, View};

/// A pod.
///
/// Pods are the most numerous objects of a cluster, and they are patched, never put whole; so of each one only the
/// facts that decisions need are kept, not the parts of the object that they were read from.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Pod {
    /// Metadata of the pod.
    pub metadata: Meta,
    /// `spec.nodeName`: the node that the pod is assigned to.
    pub node_name: Option<InternedStr>,
    /// `status.phase`.
    pub phase: PodPhase,
    /// The condition `Ready`.
    pub ready: Readiness,
    /// The most restarts of any container.
    pub restarts: i32,
    /// The most restarts of any sidecar: an init container that is always restarted.
    pub sidecar_restarts: i32,
}

/// Where in its life a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[non_exhaustive]
pub enum PodPhase {
    /// Not all of its containers have started.
    Pending,
    /// Bound to a node, with a container that runs.
    Running,
    /// All containers ended well and will not be restarted.
    Succeeded,
    /// All containers ended, one of them badly.
    Failed,
    /// The node cannot be asked.
    Unknown,
    /// Not said, or a word that we do not know.
    #[default]
    #[serde(other)]
    Other,
}

/// The condition `Ready` of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Readiness {
    /// Not ready, or without a Ready condition.
    #[default]
    NotReady,
    /// Ready since a time, which may be missing.
    Ready {
        /// When the condition last became true.
        since: Option<Timestamp>,
    },
}

impl Pod {
    /// Whether the pod counts: neither ended nor terminating.
    ///
    /// # Upstream
    /// `controller.IsPodActive`.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        !self.is_finished() && !self.metadata.is_terminating()
    }

    /// Whether the pod is on its way out, with containers that may still run.
    ///
    /// # Upstream
    /// `controller.IsPodTerminating`.
    #[must_use]
    pub const fn is_terminating(&self) -> bool {
        !self.is_finished() && self.metadata.is_terminating()
    }

    /// Whether all containers have ended for good.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Whether the pod is ready.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        matches!(self.ready, Readiness::Ready { .. })
    }

    /// Since when the pod is ready; absent where it is not ready, or has no transition time.
    #[must_use]
    pub const fn ready_since(&self) -> Option<Timestamp> {
        match self.ready {
            Readiness::NotReady => None,
            Readiness::Ready { since } => since,
        }
    }

    /// Whether the pod has been ready for so long at `now`.
    ///
    /// # Upstream
    /// `podutil.IsPodAvailable`: just so long is long enough, and a pod that does not say since when it is ready
    /// never is.
    #[must_use]
    pub fn is_available_at(&self, min_ready_seconds: i32, now: Timestamp) -> bool {
        let long_enough = |since| now.duration_since(since) >= SignedDuration::from_secs(min_ready_seconds.into());
        self.is_ready() && (min_ready_seconds == 0 || self.ready_since().is_some_and(long_enough))
    }
}

const POD: &Message =
    &[Field::one(1, "metadata", Meta::MESSAGE), Field::one(2, "spec", SPEC), Field::one(3, "status", STATUS)];
const SPEC: &Message = &[Field::text(10, "nodeName"), Field::many(20, "initContainers", CONTAINER)];
const CONTAINER: &Message = &[Field::text(1, "name"), Field::text(24, "restartPolicy")];
const STATUS: &Message = &[
    Field::text(1, "phase"),
    Field::many(2, "conditions", CONDITION),
    Field::many(8, "containerStatuses", CONTAINER_STATUS),
    Field::many(10, "initContainerStatuses", CONTAINER_STATUS),
];
const CONDITION: &Message = &[Field::text(1, "type"), Field::text(2, "status"), Field::time(4, "lastTransitionTime")];
const CONTAINER_STATUS: &Message = &[Field::text(1, "name"), Field::integer(5, "restartCount")];

#[derive(Deserialize)]
struct RawPod<'a> {
    metadata: Meta,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    spec: RawSpec<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    status: RawStatus<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec<'a> {
    node_name: Option<InternedStr>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    init_containers: Vec<RawInitContainer<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawInitContainer<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    restart_policy: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawStatus<'a> {
    #[serde(default, deserialize_with = "null_as_default")]
    phase: PodPhase,
    #[serde(default, deserialize_with = "readiness")]
    conditions: Readiness,
    #[serde(default, deserialize_with = "most_restarts")]
    container_statuses: i32,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    init_container_statuses: Vec<RawContainerStatus<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawContainerStatus<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    name: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "null_as_default")]
    restart_count: i32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawCondition<'a> {
    #[serde(rename = "type", borrow, default, deserialize_with = "text")]
    type_: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    status: Option<Cow<'a, str>>,
    // Parsed for the one condition that is kept.
    #[serde(borrow, default)]
    last_transition_time: Option<Cow<'a, str>>,
}

/// Of several conditions of one type the first counts, as upstream.
fn readiness<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Readiness, D::Error> {
    let ready = fold(deserializer, None, |ready: &mut Option<RawCondition<'de>>, condition: RawCondition<'de>| {
        if ready.is_none() && condition.type_.as_deref() == Some("Ready") {
            *ready = Some(condition);
        }
    })?;
    let Some(RawCondition { status, last_transition_time, .. }) = ready else { return Ok(Readiness::NotReady) };
    // An invalid time must not hide the pod: it counts as unset.
    let since = last_transition_time.and_then(|time| time.parse().ok());
    Ok(if status.as_deref() == Some("True") { Readiness::Ready { since } } else { Readiness::NotReady })
}

fn most_restarts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    fold(deserializer, 0, |most, status: RawContainerStatus<'de>| *most = status.restart_count.max(*most))
}

impl RawPod<'_> {
    /// Restarts of init containers that run beside the others; those that run before them are not counted.
    fn sidecar_restarts(&self) -> i32 {
        let is_sidecar = |status: &&RawContainerStatus<'_>| {
            self.spec
                .init_containers
                .iter()
                .any(|container| container.restart_policy.as_deref() == Some("Always") && container.name == status.name)
        };
        let restarts = self.status.init_container_statuses.iter().filter(is_sidecar).map(|status| status.restart_count);
        restarts.fold(0, i32::max)
    }
}

impl From<RawPod<'_>> for Pod {
    fn from(raw: RawPod<'_>) -> Self {
        Self {
            sidecar_restarts: raw.sidecar_restarts(),
            metadata: raw.metadata,
            // JSON leaves the field out, but a client may have written an empty one.
            node_name: raw.spec.node_name.filter(|name| !name.is_empty()),
            phase: raw.status.phase,
            ready: raw.status.conditions,
            restarts: raw.status.container_statuses,
        }
    }
}

impl View for Pod {
    // Pods are most of what comes: as protobuf two thirds of the bytes, and what is skipped is not looked at.
    const READS_PROTOBUF: bool = true;

    fn decode(json: &str) -> Result<Self, DecodeError> {
        Ok(serde_json::from_str::<RawPod<'_>>(json)?.into())
    }

    fn decode_protobuf(message: &[u8]) -> Result<Self, DecodeError> {
        Ok(RawPod::deserialize(Reader::new(message, POD))?.into())
    }

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl KnownView for Pod {
    const RESOURCE: Resource = Resource::namespaced("", "v1", "pods", "Pod");
}
