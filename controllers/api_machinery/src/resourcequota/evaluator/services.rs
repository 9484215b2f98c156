//! Services, their node ports and load balancers.

use kcm_framework::api::ResourceQuantity;
use kcm_framework::api::views::{Service, ServiceType};

/// A constraint for which services count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::resourcequota) enum ServiceConstraint {
    /// All services.
    Objects,
    /// The node ports that they have or will be given.
    NodePorts,
    /// Those with a load balancer.
    LoadBalancers,
}

impl ServiceConstraint {
    pub(in crate::resourcequota) fn parse(constraint: &str) -> Option<Self> {
        match constraint {
            "services" | "count/services" => Some(Self::Objects),
            "services.nodeports" => Some(Self::NodePorts),
            "services.loadbalancers" => Some(Self::LoadBalancers),
            _ => None,
        }
    }
}

/// What a service adds to the usage of a constraint.
///
/// Node ports count before they are allocated; where a load balancer is given none, those count that the service names.
pub(in crate::resourcequota) fn usage(service: &Service, constraint: ServiceConstraint) -> ResourceQuantity {
    let is_load_balancer = service.type_ == ServiceType::LoadBalancer;
    let count = match constraint {
        ServiceConstraint::Objects => 1,
        ServiceConstraint::LoadBalancers => usize::from(is_load_balancer),
        ServiceConstraint::NodePorts
            if is_load_balancer && service.allocate_load_balancer_node_ports == Some(false) =>
        {
            service.ports.iter().filter(|port| port.node_port != 0).count()
        }
        ServiceConstraint::NodePorts if matches!(service.type_, ServiceType::Other | ServiceType::ExternalName) => 0,
        ServiceConstraint::NodePorts => service.ports.len(),
    };
    ResourceQuantity::whole(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Whether an update may free what a quota counts.
pub(in crate::resourcequota) fn replenishes(old: &Service, new: &Service) -> bool {
    let counted = |service: &Service| {
        matches!(service.type_, ServiceType::NodePort | ServiceType::LoadBalancer).then_some(service.type_)
    };
    counted(old) != counted(new)
}
