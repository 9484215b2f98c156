//! The order of the ports of a new slice.
//!
//! Ports are compared as a set, so the order of an existing slice stays.

use super::content::EndpointPort;
use crate::shared::deep_hash::fnv1a_128;

/// Sorts the ports of a new slice.
///
/// For example, `https` on 443 comes before `http` on 80.
///
/// # Upstream
/// `NewPortMapKey`, which sorts the ports in place by their hash.
pub(crate) fn sort_ports(ports: &mut [EndpointPort]) {
    ports.sort_by_cached_key(port_hash);
}

/// The hash of a port.
pub(crate) fn port_hash(port: &EndpointPort) -> u128 {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "<nil>".to_owned());
    let EndpointPort { name, protocol, port, app_protocol } = port;
    let (name, protocol, app_protocol) = (text(name), text(protocol), text(app_protocol));
    let port = port.map_or_else(|| "<nil>".to_owned(), |port| port.to_string());
    fnv1a_128(&format!(
        "(v1.EndpointPort){{Name:(*string){name} Protocol:(*v1.Protocol){protocol} Port:(*int32){port} \
         AppProtocol:(*string){app_protocol}}}"
    ))
}
