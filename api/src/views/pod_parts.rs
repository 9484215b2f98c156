//! Parts of pods, which are decoded where a controller needs them.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use super::conditions::RawCondition;
use crate::InternedStr;
use crate::decode::fold;
use crate::protobuf::{Kind, ProtobufType};
use crate::scheduling::NodeSelector;

crate::message! {
    /// The volumes of a pod that have a claim.
    pub struct PodVolumes {
        "spec" @ 2 {
            let volumes: Vec<PodVolume> = "volumes" @ 1;
            /// `spec.volumes` without those of other types, in order.
            pub volumes: Box<[PodVolume]> = volumes.into_iter().filter(PodVolume::has_claim).collect();
        }
    }
}

crate::message! {
    /// A volume of a pod.
    pub struct PodVolume {
        /// `name`.
        pub name: InternedStr = "name" @ 1;
        "" @ 2 {
            "persistentVolumeClaim" @ 10 {
                /// `persistentVolumeClaim.claimName`, absent where the volume is of another type.
                pub claim_name: Option<Box<str>> = "claimName" @ 1;
            }
            let ephemeral: Option<Ephemeral> = "ephemeral" @ 29;
            /// Whether the volume has a claim of its own, which is named after pod and volume.
            pub is_ephemeral: bool = ephemeral.is_some();
        }
    }
}

crate::message! {
    struct Ephemeral {}
}

impl PodVolume {
    const fn has_claim(&self) -> bool {
        self.claim_name.is_some() || self.is_ephemeral
    }
}

crate::message! {
    /// Where a pod can be reached.
    pub struct PodAddresses {
        "spec" @ 2 {
            let containers: Vec<ContainerPorts> = "containers" @ 2;
            /// The ports of all containers, in order.
            pub ports: Box<[ContainerPort]> = containers.into_iter().flat_map(|container| container.ports).collect();
            /// `spec.hostNetwork`.
            pub host_network: bool = "hostNetwork" @ 11;
        }
        "status" @ 3 {
            /// `status.hostIP`, empty where it is not known.
            pub host_ip: InternedStr = "hostIP" @ 5;
            let ips: Vec<PodIp> = "podIPs" @ 12;
            /// `status.podIPs`.
            pub pod_ips: Box<[Box<str>]> = ips.into_iter().map(|ip| ip.ip).collect();
        }
    }
}

crate::message! {
    struct ContainerPorts {
        ports: Vec<ContainerPort> = "ports" @ 6;
    }
}

crate::message! {
    /// A port of a container.
    pub struct ContainerPort {
        /// `name`.
        pub name: InternedStr = "name" @ 1;
        /// `containerPort`.
        pub container_port: i32 = "containerPort" @ 3;
        /// `protocol`.
        pub protocol: InternedStr = "protocol" @ 4;
    }
}

crate::message! {
    struct PodIp {
        ip: Box<str> = "ip" @ 1;
    }
}

crate::message! {
    /// The node that a pod of a daemon set is made for, until the pod is scheduled.
    pub struct PodTargetNode {
        "spec" @ 2 {
            let node_name: InternedStr = "nodeName" @ 10;
            "affinity" @ 18 {
                "nodeAffinity" @ 1 {
                    let required: NodeSelector = "requiredDuringSchedulingIgnoredDuringExecution" @ 1;
                    /// The node that the required node affinity selects by name; absent where the pod is scheduled.
                    pub target_node: Option<InternedStr> =
                        required.target_node().filter(|_| node_name.is_empty()).cloned();
                }
            }
        }
    }
}

crate::message! {
    /// What ended a pod, or is about to.
    pub struct PodDisruption {
        "status" @ 3 {
            let disruption: DisruptionTarget = "conditions" @ 2;
            /// When the condition `DisruptionTarget` became true; absent where it is not true, or has no valid time.
            pub disruption_target_since: Option<Timestamp> = disruption.0;
            /// `status.reason`, such as `Evicted`.
            pub reason: InternedStr = "reason" @ 4;
        }
    }
}

/// When the condition `DisruptionTarget` became true. Of several the first counts, as upstream.
#[derive(Default)]
struct DisruptionTarget(Option<Timestamp>);

impl ProtobufType for DisruptionTarget {
    const KIND: Kind = RawCondition::LIST;
}

impl<'de> Deserialize<'de> for DisruptionTarget {
    fn deserialize<D: Deserializer<'de>>(conditions: D) -> Result<Self, D::Error> {
        let first = fold(conditions, None, |first: &mut Option<RawCondition<'de>>, condition: RawCondition<'de>| {
            if first.is_none() && condition.is_of_type("DisruptionTarget") {
                *first = Some(condition);
            }
        })?;
        Ok(Self(first.filter(RawCondition::is_true).and_then(|condition| condition.since())))
    }
}
