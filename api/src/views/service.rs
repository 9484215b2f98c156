//! Services.

use serde::Deserialize;

use crate::Resource;
use crate::protobuf::{Kind, ProtobufType};

crate::view! {
    /// A service.
    pub struct Service {
        resource: Resource::namespaced("", "v1", "services", "Service");

        "spec" @ 2 {
            /// `spec.type`.
            pub type_: ServiceType = "type" @ 4;
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
        /// `nodePort`, 0 where it has none.
        pub node_port: i32 = "nodePort" @ 5;
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
    /// From within the cluster, by an alias, or by a type that this version does not know.
    #[default]
    #[serde(other)]
    Other,
}

impl ProtobufType for ServiceType {
    const KIND: Kind = Kind::Text;
}
