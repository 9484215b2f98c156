//! The subsets of endpoints, and their canonical form.

use std::collections::BTreeMap;

use kcm_framework::ReconcileError;
use kcm_framework::api::Document;
use serde::{Deserialize, Deserializer, Serialize};

use super::slices::TargetRef;

/// Addresses with the ports that all of them have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subset {
    /// The addresses that are ready.
    #[serde(default, deserialize_with = "null_as_empty", skip_serializing_if = "Vec::is_empty")]
    pub(crate) addresses: Vec<Address>,
    /// The addresses that are not ready.
    #[serde(default, deserialize_with = "null_as_empty", skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_ready_addresses: Vec<Address>,
    /// The ports.
    #[serde(default, deserialize_with = "null_as_empty", skip_serializing_if = "Vec::is_empty")]
    pub(crate) ports: Vec<SubsetPort>,
}

/// An address of a subset.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Address {
    /// `ip`.
    #[serde(default)]
    pub(crate) ip: String,
    /// `hostname`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) hostname: String,
    /// `nodeName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node_name: Option<String>,
    /// `targetRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target_ref: Option<TargetRef>,
}

/// A port of a subset.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubsetPort {
    /// `name`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    /// `port`.
    #[serde(default)]
    pub(crate) port: i32,
    /// `protocol`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) protocol: String,
    /// `appProtocol`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) app_protocol: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot read the subsets of the endpoints")]
pub(crate) struct InvalidSubsets(#[from] serde_json::Error);

impl From<InvalidSubsets> for ReconcileError {
    fn from(error: InvalidSubsets) -> Self {
        Self::terminal(error)
    }
}

/// Returns the subsets of endpoints, as the API server sent them.
pub(crate) fn subsets_in(endpoints: &Document) -> Result<Vec<Subset>, InvalidSubsets> {
    let Some(subsets) = endpoints.get(&["subsets"]) else { return Ok(Vec::new()) };
    let subsets: Option<Vec<Subset>> = serde_json::from_str(subsets)?;
    Ok(subsets.unwrap_or_default())
}

/// An address and the uid of its object: hosts may share an address.
type Host = (String, String);

/// The canonical form of subsets: one for each set of ports that the same addresses have, in the same state. An address
/// that is not ready in one subset is not ready for its ports in all of them. Addresses and ports are sorted.
///
/// For example, `{a}` on port 1 and `{a}` on port 2 become `{a}` on both, and `{a, b}` on port 1 and `{a}` on port 2 stay.
///
/// # Upstream
/// `RepackSubsets`
pub(crate) fn repack(subsets: Vec<Subset>) -> Vec<Subset> {
    let mut addresses: BTreeMap<Host, Address> = BTreeMap::new();
    let mut ports: BTreeMap<Option<SubsetPort>, BTreeMap<Host, bool>> = BTreeMap::new();
    for subset in subsets {
        // Addresses without a port have a subset too.
        let of_subset: Vec<Option<SubsetPort>> =
            if subset.ports.is_empty() { vec![None] } else { subset.ports.into_iter().map(Some).collect() };
        let ready = subset.addresses.into_iter().map(|address| (address, true));
        for (address, is_ready) in ready.chain(subset.not_ready_addresses.into_iter().map(|address| (address, false))) {
            let uid = address.target_ref.as_ref().map(|target| target.uid.clone()).unwrap_or_default();
            let host = (address.ip.clone(), uid);
            addresses.entry(host.clone()).or_insert(address);
            for port in &of_subset {
                let known = ports.entry(port.clone()).or_default().entry(host.clone()).or_insert(is_ready);
                *known &= is_ready;
            }
        }
    }
    let mut by_hosts: BTreeMap<BTreeMap<Host, bool>, Vec<SubsetPort>> = BTreeMap::new();
    for (port, hosts) in ports {
        by_hosts.entry(hosts).or_default().extend(port);
    }
    let subset = |(hosts, ports): (BTreeMap<Host, bool>, Vec<SubsetPort>)| {
        let of_state = |state: bool| {
            let hosts = hosts.iter().filter(move |(_, is_ready)| **is_ready == state);
            hosts.filter_map(|(host, _)| addresses.get(host).cloned()).collect()
        };
        Subset { addresses: of_state(true), not_ready_addresses: of_state(false), ports }
    };
    by_hosts.into_iter().map(subset).collect()
}

fn null_as_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
