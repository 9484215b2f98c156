//! Services.

use serde::Deserialize;

use crate::int_or_percent::IntOrPercent;
use crate::intern::InternedStr;
use crate::labels::Labels;
use crate::protobuf::{Kind, ProtobufType};
use crate::resource::Resource;

crate::view! {
    /// A service.
    pub struct Service {
        resource: Resource::namespaced("", "v1", "services", "Service");

        "spec" @ 2 {
            /// `spec.type`.
            pub type_: ServiceType = "type" @ 4;
            /// `spec.selector`; empty where the service selects no pods.
            pub selector: Labels = "selector" @ 2;
            /// `spec.clusterIP`: an address, `None` where the service is headless, or empty.
            pub cluster_ip: Box<str> = "clusterIP" @ 3;
            /// `spec.ipFamilies`.
            pub ip_families: Box<[InternedStr]> = "ipFamilies" @ 19;
            /// `spec.publishNotReadyAddresses`.
            pub publish_not_ready_addresses: bool = "publishNotReadyAddresses" @ 13;
            /// `spec.trafficDistribution`.
            pub traffic_distribution: Option<InternedStr> = "trafficDistribution" @ 23;
            /// `spec.ports`.
            pub ports: Box<[ServicePort]> = "ports" @ 1;
            /// `spec.allocateLoadBalancerNodePorts`.
            pub allocate_load_balancer_node_ports: Option<bool> = "allocateLoadBalancerNodePorts" @ 20;
        }
    }
}

crate::message! {
    /// A port of a service.
    pub struct ServicePort {
        /// `name`.
        pub name: InternedStr = "name" @ 1;
        /// `protocol`.
        pub protocol: InternedStr = "protocol" @ 2;
        /// `port`.
        pub port: i32 = "port" @ 3;
        /// `targetPort`: the port of the pods.
        pub target_port: TargetPort = "targetPort" @ 4;
        /// `nodePort`, 0 where it has none.
        pub node_port: i32 = "nodePort" @ 5;
        /// `appProtocol`.
        pub app_protocol: Option<InternedStr> = "appProtocol" @ 6;
    }
}

impl Service {
    /// Whether the service is headless: it has no address by choice.
    #[must_use]
    pub fn is_headless(&self) -> bool {
        &*self.cluster_ip == "None"
    }

    /// Whether the service has an address.
    #[must_use]
    pub fn has_cluster_ip(&self) -> bool {
        !self.cluster_ip.is_empty() && !self.is_headless()
    }
}

/// How a service can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[non_exhaustive]
pub enum ServiceType {
    /// By a port of each node.
    NodePort,
    /// By a load balancer.
    LoadBalancer,
    /// It is an alias of another name.
    ExternalName,
    /// From within the cluster, or by a type that this version does not know.
    #[default]
    #[serde(other)]
    Other,
}

impl ProtobufType for ServiceType {
    const KIND: Kind = Kind::Text;
}

/// The port of the pods to which a port of a service leads.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum TargetPort {
    /// A number, the same in every pod.
    Number(i32),
    /// The name of a container port, which may be another number in each pod.
    Name(InternedStr),
}

impl Default for TargetPort {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl ProtobufType for TargetPort {
    const KIND: Kind = IntOrPercent::KIND;
}
