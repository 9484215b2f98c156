//! Parts of Nodes, which are decoded only if a controller needs them.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use crate::decode::{fold, text};
use crate::intern::InternedStr;
use crate::protobuf::{Field, Kind, ProtobufType};

crate::message! {
    /// The pod CIDRs of a Node.
    pub struct NodePodCidrs {
        "spec" @ 2 {
            /// The pod CIDRs, `spec.podCIDRs`, in order.
            pub pod_cidrs: Box<[Box<str>]> = "podCIDRs" @ 7 as Kind::List(&Kind::Text);
        }
    }
}

crate::message! {
    /// Health that a Node reports in its status, and its cordon.
    pub struct NodeHealth {
        "spec" @ 2 {
            /// Value of `spec.unschedulable`: the Node is cordoned.
            pub unschedulable: bool = "unschedulable" @ 4;
        }
        "status" @ 3 {
            let conditions: Conditions = "conditions" @ 4;
            /// The condition `Ready`; `None` if there is none. The first of several counts, as upstream.
            pub ready: Option<NodeReady> = conditions.ready;
            /// Status of the condition `MemoryPressure`.
            pub memory_pressure: NodeConditionStatus = conditions.memory_pressure;
            /// Status of the condition `DiskPressure`.
            pub disk_pressure: NodeConditionStatus = conditions.disk_pressure;
            /// Status of the condition `PIDPressure`.
            pub pid_pressure: NodeConditionStatus = conditions.pid_pressure;
            /// Status of the condition `NetworkUnavailable`.
            pub network_unavailable: NodeConditionStatus = conditions.network_unavailable;
        }
    }
}

crate::message! {
    /// The volumes of a Node, as its status has them.
    pub struct NodeVolumes {
        "status" @ 3 {
            /// `status.volumesInUse`: names of the volumes that the kubelet uses, in order.
            pub in_use: Box<[InternedStr]> = "volumesInUse" @ 9 as Kind::List(&Kind::Text);
            /// Volumes in `status.volumesAttached`, in order.
            pub attached: Box<[AttachedVolume]> = "volumesAttached" @ 10;
        }
    }
}

crate::message! {
    /// An entry of `status.volumesAttached` of a Node.
    #[derive(Eq)]
    pub struct AttachedVolume {
        /// Unique name of the volume: `name`.
        pub name: InternedStr = "name" @ 1;
        /// `devicePath`, empty if it is absent.
        pub device_path: Box<str> = "devicePath" @ 2;
    }
}

/// Status of a condition of a Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeConditionStatus {
    /// The Node has no such condition.
    #[default]
    Absent,
    /// The status is `True`.
    True,
    /// The status is `False`.
    False,
    /// The status is `Unknown`.
    Unknown,
    /// Another status, which is against the rules of the API.
    Other,
}

/// The condition `Ready` of a Node. Times are in whole seconds, as in the API; an invalid time counts as unset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeReady {
    /// Status of the condition, never absent.
    pub status: NodeConditionStatus,
    /// Time of the last heartbeat: `lastHeartbeatTime`.
    pub last_heartbeat: Option<Timestamp>,
    /// Time at which the status last changed: `lastTransitionTime`.
    pub last_transition: Option<Timestamp>,
}

#[derive(Default)]
struct Conditions {
    ready: Option<NodeReady>,
    memory_pressure: NodeConditionStatus,
    disk_pressure: NodeConditionStatus,
    pid_pressure: NodeConditionStatus,
    network_unavailable: NodeConditionStatus,
}

impl Conditions {
    fn add(&mut self, condition: &RawNodeCondition<'_>) {
        let status = match condition.status.as_deref() {
            Some("True") => NodeConditionStatus::True,
            Some("False") => NodeConditionStatus::False,
            Some("Unknown") => NodeConditionStatus::Unknown,
            Some(_) | None => NodeConditionStatus::Other,
        };
        let place = match condition.type_.as_deref() {
            Some("Ready") => {
                self.ready.get_or_insert_with(|| condition.ready(status));
                return;
            }
            Some("MemoryPressure") => &mut self.memory_pressure,
            Some("DiskPressure") => &mut self.disk_pressure,
            Some("PIDPressure") => &mut self.pid_pressure,
            Some("NetworkUnavailable") => &mut self.network_unavailable,
            Some(_) | None => return,
        };
        if *place == NodeConditionStatus::Absent {
            *place = status;
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawNodeCondition<'a> {
    #[serde(rename = "type", borrow, default, deserialize_with = "text")]
    type_: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    status: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    last_heartbeat_time: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    last_transition_time: Option<Cow<'a, str>>,
}

impl RawNodeCondition<'_> {
    fn ready(&self, status: NodeConditionStatus) -> NodeReady {
        let parse = |time: &Option<Cow<'_, str>>| time.as_deref().and_then(|time| time.parse().ok());
        NodeReady {
            status,
            last_heartbeat: parse(&self.last_heartbeat_time),
            last_transition: parse(&self.last_transition_time),
        }
    }
}

impl ProtobufType for Conditions {
    const KIND: Kind = Kind::List(&Kind::One(&[
        Field::text(1, "type"),
        Field::text(2, "status"),
        Field::time(3, "lastHeartbeatTime"),
        Field::time(4, "lastTransitionTime"),
    ]));
}

impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(conditions: D) -> Result<Self, D::Error> {
        fold(conditions, Self::default(), |all: &mut Self, condition: RawNodeCondition<'de>| all.add(&condition))
    }
}
