//! The addresses of the pods of a service.

use std::sync::Arc;

use kcm_framework::api::PartReader;
use kcm_framework::api::views::{Pod, PodAddresses, Service, ServicePort, ServiceType};

use super::order::pack;
use crate::shared::pods::{can_be_endpoint, ips_of_family};
use crate::shared::ports::port_in_pod;
use crate::shared::slices::TargetRef;
use crate::shared::subsets::{Address, Subset, SubsetPort};

/// Whether the controller writes the endpoints of a service: it selects pods.
pub(super) fn has_endpoints_of_pods(service: &Service) -> bool {
    service.type_ != ServiceType::ExternalName && !service.selector.is_empty()
}

/// Returns the subsets of a service with these pods, packed and ordered.
///
/// A terminating pod is left out, unless the service publishes addresses that are not ready. A pod without an address of the
/// first family of the service is left out too. A pod that lacks a named port has no address at that port.
pub(super) fn subsets_of(service: &Service, pods: &[Arc<Pod>], reader: PartReader<PodAddresses>) -> Vec<Subset> {
    let publishes_all = service.publish_not_ready_addresses;
    let mut subsets = Vec::new();
    for pod in pods {
        let pod_addresses = reader.of(pod);
        if !can_be_endpoint(pod, pod_addresses) || pod.metadata.is_terminating() && !publishes_all {
            continue;
        }
        let Some(address) = address_of(service, pod, pod_addresses) else { continue };
        let is_ready = publishes_all || pod.is_ready();
        let subset = |ports: Vec<SubsetPort>| {
            let address = vec![address.clone()];
            let (addresses, not_ready_addresses) = if is_ready { (address, vec![]) } else { (vec![], address) };
            Subset { addresses, not_ready_addresses, ports }
        };
        if service.ports.is_empty() {
            // Only a headless service may have no ports.
            subsets.extend(service.is_headless().then(|| subset(Vec::new())));
        } else {
            let ports = service.ports.iter().filter_map(|port| port_of(port, pod_addresses));
            subsets.extend(ports.map(|port| subset(vec![port])));
        }
    }
    pack(subsets)
}

fn address_of(service: &Service, pod: &Pod, pod_addresses: &PodAddresses) -> Option<Address> {
    let ip = ips_of_family(pod_addresses, is_ipv6(service, pod_addresses)).next()?;
    let key = &pod.metadata.key;
    Some(Address {
        ip: ip.to_string(),
        hostname: pod_addresses.hostname_in(service.metadata.key.name()).unwrap_or_default().to_owned(),
        node_name: Some(pod.node_name.as_deref().unwrap_or_default().to_owned()),
        target_ref: Some(TargetRef {
            kind: "Pod".to_owned(),
            namespace: key.namespace().unwrap_or_default().to_owned(),
            name: key.name().to_owned(),
            uid: pod.metadata.uid.to_string(),
            ..TargetRef::default()
        }),
    })
}

/// Whether the first family of a service is IPv6. If the service does not name a family, its address or the address of the
/// pod decides.
fn is_ipv6(service: &Service, pod_addresses: &PodAddresses) -> bool {
    match service.ip_families.first() {
        Some(family) => &**family == "IPv6",
        None if service.has_cluster_ip() => service.cluster_ip.contains(':'),
        None => pod_addresses.ips.first().is_some_and(std::net::IpAddr::is_ipv6),
    }
}

fn port_of(port: &ServicePort, pod_addresses: &PodAddresses) -> Option<SubsetPort> {
    Some(SubsetPort {
        name: port.name.to_string(),
        port: port_in_pod(port, pod_addresses)?,
        protocol: port.protocol.to_string(),
        app_protocol: port.app_protocol.as_ref().map(ToString::to_string),
    })
}
