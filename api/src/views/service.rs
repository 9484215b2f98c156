//! The view of a Service.

use serde::Deserialize;

use crate::int_or_percent::IntOrPercent;
use crate::intern::InternedStr;
use crate::labels::Labels;
use crate::protobuf::{Kind, ProtobufType};
use crate::resource::Resource;

crate::view! {
    /// A Service without its JSON.
    pub struct Service {
        resource: Resource::namespaced("", "v1", "services", "Service");

        "spec" @ 2 {
            /// Type of the service: `spec.type`.
            pub type_: ServiceType = "type" @ 4;
            /// `spec.selector`, empty if the service selects no pods.
            pub selector: Labels = "selector" @ 2;
            /// `spec.clusterIP`: an address, `None` if the service is headless, or empty.
            pub cluster_ip: Box<str> = "clusterIP" @ 3;
            /// `spec.ipFamilies`, empty if it is absent.
            pub ip_families: Box<[InternedStr]> = "ipFamilies" @ 19;
            /// `spec.publishNotReadyAddresses`, `false` if it is absent.
            pub publish_not_ready_addresses: bool = "publishNotReadyAddresses" @ 13;
            /// `spec.trafficDistribution`, `None` if it is absent.
            pub traffic_distribution: Option<InternedStr> = "trafficDistribution" @ 23;
            /// `spec.ports`, empty if it is absent.
            pub ports: Box<[ServicePort]> = "ports" @ 1;
            /// `spec.allocateLoadBalancerNodePorts`, `None` if it is absent.
            pub allocate_load_balancer_node_ports: Option<bool> = "allocateLoadBalancerNodePorts" @ 20;
        }
    }
}

crate::message! {
    /// A port of a service.
    pub struct ServicePort {
        /// `name`, empty if it is absent.
        pub name: InternedStr = "name" @ 1;
        /// `protocol`, empty if it is absent.
        pub protocol: InternedStr = "protocol" @ 2;
        /// `port`, 0 if it is absent.
        pub port: i32 = "port" @ 3;
        /// `targetPort`: the port of the pods.
        pub target_port: TargetPort = "targetPort" @ 4;
        /// `nodePort`, 0 if it has none.
        pub node_port: i32 = "nodePort" @ 5;
        /// `appProtocol`, `None` if it is absent.
        pub app_protocol: Option<InternedStr> = "appProtocol" @ 6;
    }
}

impl Service {
    /// Returns `true` if the service is headless: its cluster IP is `None`.
    #[must_use]
    pub fn is_headless(&self) -> bool {
        &*self.cluster_ip == "None"
    }

    /// Returns `true` if the service has a cluster IP.
    #[must_use]
    pub fn has_cluster_ip(&self) -> bool {
        !self.cluster_ip.is_empty() && !self.is_headless()
    }
}

/// Ways to reach a service.
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
