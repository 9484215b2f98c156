//! Tables of the decisions, and whole reconciles on an API server in the process.

mod addresses;
mod apply;
mod order;
mod plan;
mod truncate;

use crate::shared::slices::TargetRef;
use crate::shared::subsets::{Address, Subset, SubsetPort};

/// The address of a pod on `node-a`.
fn address(ip: &str, pod: &str) -> Address {
    let target = TargetRef {
        kind: "Pod".to_owned(),
        namespace: "shop".to_owned(),
        name: pod.to_owned(),
        uid: format!("uid-{pod}"),
        ..TargetRef::default()
    };
    Address { ip: ip.to_owned(), node_name: Some("node-a".to_owned()), target_ref: Some(target), ..Address::default() }
}

/// A port of TCP.
fn port(name: &str, number: i32) -> SubsetPort {
    SubsetPort { name: name.to_owned(), port: number, protocol: "TCP".to_owned(), app_protocol: None }
}

/// A subset of ready addresses.
fn ready(addresses: &[Address], ports: &[SubsetPort]) -> Subset {
    Subset { addresses: addresses.to_vec(), not_ready_addresses: Vec::new(), ports: ports.to_vec() }
}

/// A subset of addresses that are not ready.
fn not_ready(addresses: &[Address], ports: &[SubsetPort]) -> Subset {
    Subset { addresses: Vec::new(), not_ready_addresses: addresses.to_vec(), ports: ports.to_vec() }
}
