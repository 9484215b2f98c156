//! The ports of a service in its pods.

use kcm_framework::api::views::{PodAddresses, ServicePort, TargetPort};

/// Returns the number of the port of a service in a pod; `None` if the pod has no container port of that name and protocol.
///
/// # Upstream
/// `FindPort`: containers come before sidecars.
pub(crate) fn port_in_pod(port: &ServicePort, pod: &PodAddresses) -> Option<i32> {
    match &port.target_port {
        TargetPort::Number(number) => Some(*number),
        TargetPort::Name(name) => pod.named_port(name, &port.protocol),
    }
}
