//! The order of ports and subsets: by the 128-bit FNV-1a hash of the text that Go's spew prints of them.
//!
//! Clients see this order, and the truncation of endpoints depends on it. With another one, subsets and ports would change
//! their places when a cluster is handed over.
//!
//! # Upstream
//! `SortSubsets`, `DeepHashObject`

use crate::shared::deep_hash::fnv1a_128;
use crate::shared::slices::TargetRef;
use crate::shared::subsets::{Address, Subset, SubsetPort, repack};

/// Returns the canonical form of subsets, in upstream's order.
pub(super) fn pack(subsets: Vec<Subset>) -> Vec<Subset> {
    let mut packed = repack(subsets);
    for subset in &mut packed {
        subset.ports.sort_by_cached_key(port_hash);
    }
    packed.sort_by_cached_key(subset_hash);
    packed
}

pub(super) fn port_hash(port: &SubsetPort) -> u128 {
    fnv1a_128(&format!("(v1.EndpointPort){}", print_port(port)))
}

pub(super) fn subset_hash(subset: &Subset) -> u128 {
    let ready = print_list("v1.EndpointAddress", &subset.addresses, print_address);
    let not_ready = print_list("v1.EndpointAddress", &subset.not_ready_addresses, print_address);
    let ports = print_list("v1.EndpointPort", &subset.ports, print_port);
    fnv1a_128(&format!("(v1.EndpointSubset){{Addresses:{ready} NotReadyAddresses:{not_ready} Ports:{ports}}}"))
}

fn print_port(port: &SubsetPort) -> String {
    let SubsetPort { name, port, protocol, app_protocol } = port;
    let app_protocol = app_protocol.as_deref().unwrap_or("<nil>");
    format!(
        "{{Name:(string){name} Port:(int32){port} Protocol:(v1.Protocol){protocol} AppProtocol:(*string){app_protocol}}}"
    )
}

fn print_address(address: &Address) -> String {
    let Address { ip, hostname, node_name, target_ref } = address;
    let node = node_name.as_deref().unwrap_or("<nil>");
    let target = target_ref.as_ref().map_or_else(|| "<nil>".to_owned(), print_target);
    format!(
        "{{IP:(string){ip} Hostname:(string){hostname} NodeName:(*string){node} TargetRef:(*v1.ObjectReference){target}}}"
    )
}

fn print_target(target: &TargetRef) -> String {
    let TargetRef { kind, namespace, name, uid, api_version, resource_version, field_path } = target;
    format!(
        "{{Kind:(string){kind} Namespace:(string){namespace} Name:(string){name} UID:(types.UID){uid} \
         APIVersion:(string){api_version} ResourceVersion:(string){resource_version} FieldPath:(string){field_path}}}"
    )
}

/// A list as spew prints it. A list that is empty is nil upstream.
fn print_list<T>(of: &str, items: &[T], print: impl Fn(&T) -> String) -> String {
    if items.is_empty() {
        return format!("([]{of})<nil>");
    }
    let items: Vec<String> = items.iter().map(print).collect();
    format!("([]{of})[{}]", items.join(" "))
}
