//! Parts of pods, which are decoded only if a controller needs them.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use super::conditions::RawCondition;
use crate::decode::fold;
use crate::intern::InternedStr;
use crate::ip::parse_ip;
use crate::protobuf::{Kind, ProtobufType};
use crate::scheduling::{NodeSelector, Toleration};
use crate::shared::Shared;

crate::message! {
    /// The volumes of a pod that have a claim.
    pub struct PodVolumes {
        "spec" @ 2 {
            let volumes: Vec<PodVolume> = "volumes" @ 1;
            /// `spec.volumes`, in order, without the volumes that have no claim.
            pub volumes: Box<[PodVolume]> = volumes.into_iter().filter(PodVolume::has_claim).collect();
        }
    }
}

crate::message! {
    /// A volume of a pod.
    pub struct PodVolume {
        /// `name`, empty if it is absent.
        pub name: InternedStr = "name" @ 1;
        "" @ 2 {
            "persistentVolumeClaim" @ 10 {
                /// `persistentVolumeClaim.claimName`, `None` if the volume is of another type.
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
            let containers: Vec<Container> = "containers" @ 2;
            let init_containers: Vec<Container> = "initContainers" @ 20;
            // A line for each port. Pods of one template share it, and ports take no other memory.
            named_ports: InternedStr = named_ports(&containers, &init_containers).into();
            let hostname: Box<str> = "hostname" @ 16;
            let subdomain: InternedStr = "subdomain" @ 17;
            /// The hostname of the pod, if it has one.
            pub domain: Option<Box<PodDomain>> = PodDomain::of(hostname, subdomain);
        }
        "status" @ 3 {
            let ips: Vec<PodIp> = "podIPs" @ 12;
            /// `status.podIPs`, without invalid addresses.
            pub ips: Box<[IpAddr]> = ips.iter().filter_map(|ip| parse_ip(&ip.ip)).collect();
            let readiness: ReadinessChange = "conditions" @ 2;
            /// Time at which the condition `Ready` last changed, with any status.
            pub readiness_changed: Option<Timestamp> = readiness.0;
        }
    }
}

impl PodAddresses {
    /// The number of the first port with this name and protocol, of containers and of sidecars after them.
    #[must_use]
    pub fn named_port(&self, name: &str, protocol: &str) -> Option<i32> {
        self.named_ports.lines().find_map(|line| {
            let number = line.strip_prefix(name)?.strip_prefix('/')?.strip_prefix(protocol)?.strip_prefix('/')?;
            number.parse().ok()
        })
    }

    /// The hostname of the pod as an endpoint of that service: the subdomain of the pod names the service.
    #[must_use]
    pub fn hostname_in(&self, service: &str) -> Option<&str> {
        let domain = self.domain.as_deref()?;
        (*domain.subdomain == *service).then_some(&*domain.hostname)
    }
}

/// The hostname of a pod and the subdomain that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodDomain {
    /// `spec.hostname`, which is not empty.
    pub hostname: Box<str>,
    /// `spec.subdomain`, empty if it is absent.
    pub subdomain: InternedStr,
}

impl PodDomain {
    fn of(hostname: Box<str>, subdomain: InternedStr) -> Option<Box<Self>> {
        (!hostname.is_empty()).then(|| Box::new(Self { hostname, subdomain }))
    }
}

crate::message! {
    struct Container {
        ports: Vec<ContainerPort> = "ports" @ 6;
        let restart_policy: Box<str> = "restartPolicy" @ 24;
        is_always_restarted: bool = &*restart_policy == "Always";
    }
}

crate::message! {
    struct ContainerPort {
        name: Box<str> = "name" @ 1;
        number: i32 = "containerPort" @ 3;
        protocol: Box<str> = "protocol" @ 4;
    }
}

/// The ports that have a name, a line `NAME/PROTOCOL/NUMBER` for each.
fn named_ports(containers: &[Container], init_containers: &[Container]) -> String {
    let sidecars = init_containers.iter().filter(|container| container.is_always_restarted);
    let ports = containers.iter().chain(sidecars).flat_map(|container| &container.ports);
    let mut lines = String::new();
    for port in ports.filter(|port| !port.name.is_empty()) {
        let number = port.number.to_string();
        lines.extend([&*port.name, "/", &*port.protocol, "/", number.as_str(), "\n"]);
    }
    lines
}

/// Time at which the condition `Ready` last changed. The first of several conditions counts, as upstream.
#[derive(Default)]
struct ReadinessChange(Option<Timestamp>);

impl ProtobufType for ReadinessChange {
    const KIND: Kind = RawCondition::LIST;
}

impl<'de> Deserialize<'de> for ReadinessChange {
    fn deserialize<D: Deserializer<'de>>(conditions: D) -> Result<Self, D::Error> {
        let first = fold(conditions, None, |first: &mut Option<RawCondition<'de>>, condition: RawCondition<'de>| {
            if first.is_none() && condition.is_of_type("Ready") {
                *first = Some(condition);
            }
        })?;
        Ok(Self(first.and_then(|condition| condition.since())))
    }
}

crate::message! {
    struct PodIp {
        ip: Box<str> = "ip" @ 1;
    }
}

crate::message! {
    /// The node for which a `DaemonSet`'s pod was created, until the pod is scheduled.
    pub struct PodTargetNode {
        "spec" @ 2 {
            let node_name: InternedStr = "nodeName" @ 10;
            "affinity" @ 18 {
                "nodeAffinity" @ 1 {
                    let required: NodeSelector = "requiredDuringSchedulingIgnoredDuringExecution" @ 1;
                    /// The node that the required node affinity selects by name; `None` if the pod is scheduled.
                    pub target_node: Option<InternedStr> =
                        required.target_node().filter(|_| node_name.is_empty()).cloned();
                }
            }
        }
    }
}

crate::message! {
    /// The tolerations of a pod.
    pub struct PodTolerations {
        "spec" @ 2 {
            // Most pods have the two that an admission plugin adds.
            /// The tolerations of the pod: `spec.tolerations`, in order.
            pub tolerations: Shared<[Toleration]> = "tolerations" @ 22;
        }
    }
}

crate::message! {
    /// The cause that ended a pod, or will end it.
    pub struct PodDisruption {
        "status" @ 3 {
            let disruption: DisruptionTarget = "conditions" @ 2;
            /// Time at which the condition `DisruptionTarget` became true; `None` if it is not true, or has no valid
            /// time.
            pub disruption_target_since: Option<Timestamp> = disruption.since;
            /// The reason of the condition `DisruptionTarget`; `None` if it is not true.
            pub disruption_target_reason: Option<InternedStr> = disruption.reason;
            /// `status.reason`, such as `Evicted`.
            pub reason: InternedStr = "reason" @ 4;
        }
    }
}

/// The condition `DisruptionTarget` if it is true. The first of several conditions counts, as upstream.
#[derive(Default)]
struct DisruptionTarget {
    since: Option<Timestamp>,
    reason: Option<InternedStr>,
}

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
        let found = first.filter(RawCondition::is_true);
        let reason = found.as_ref().map(|condition| InternedStr::from(condition.reason()));
        Ok(Self { since: found.and_then(|condition| condition.since()), reason })
    }
}
