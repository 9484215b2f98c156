//! The plan for the mirrored slices of endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kcm_framework::api::parse_ip;
use kcm_framework::api::views::{AddressType, EndpointSlice, Endpoints};

use super::MANAGED_BY;
use super::events::EndpointsEvent;
use crate::shared::slices::{
    Conditions, Draft, Efficiency, Endpoint, EndpointPort, ExistingSlice, MANAGED_BY as MANAGED_BY_LABEL, SERVICE_NAME,
    matches, sort_ports,
};
use crate::shared::subsets::{Address, Subset, SubsetPort, repack};
use crate::shared::trigger_time::TRIGGER_TIME;

/// The annotation of `kubectl apply`.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) create: Vec<(AddressType, Draft)>,
    pub(super) update: Vec<Draft>,
    pub(super) delete: Vec<Arc<EndpointSlice>>,
    /// Number of endpoints that slices gain.
    pub(super) added: usize,
    /// Number of endpoints that change in their slices.
    pub(super) updated: usize,
    /// Number of endpoints that slices lose.
    pub(super) removed: usize,
    /// Number of addresses that are not mirrored.
    pub(super) skipped: usize,
    pub(super) events: Vec<EndpointsEvent>,
    /// The numbers of the endpoints afterwards.
    pub(super) efficiency: Efficiency,
}

/// A family, and ports in order: what all endpoints of a slice have in common.
type SliceKey = (AddressType, Vec<EndpointPort>);

/// The desired endpoints by family and ports.
#[derive(Debug, Default)]
struct Desired {
    endpoints: BTreeMap<SliceKey, Vec<Endpoint>>,
    skipped: usize,
    invalid: usize,
}

/// Plans the slices of endpoints with these subsets, of each of which `max` addresses are mirrored.
///
/// # Upstream
/// `reconcile`: a slice for each family and each set of ports. If an endpoint, a label or an annotation changes, all
/// endpoints of the slice are written.
pub(super) fn plan(endpoints: &Endpoints, subsets: Vec<Subset>, slices: Vec<ExistingSlice>, max: usize) -> Plan {
    let desired = Desired::of(subsets, max);
    let mut plan = Plan { skipped: desired.skipped, ..Plan::default() };
    if desired.invalid > 0 {
        plan.events.push(EndpointsEvent::InvalidAddresses { count: desired.invalid });
    }
    if desired.skipped > desired.invalid {
        plan.events.push(EndpointsEvent::TooManyAddresses { max, skipped: desired.skipped });
    }
    let mut existing: BTreeMap<SliceKey, Vec<ExistingSlice>> = BTreeMap::new();
    for slice in slices {
        existing.entry((slice.object.address_type, slice.ports.clone())).or_default().push(slice);
    }
    for (key, desired) in desired.endpoints {
        let existing = existing.remove(&key).unwrap_or_default();
        plan.place(endpoints, key, desired, existing, max);
    }
    plan.delete.extend(existing.into_values().flatten().map(|slice| slice.object));
    plan.reuse();
    plan
}

impl Plan {
    fn place(
        &mut self,
        endpoints: &Endpoints,
        (family, mut ports): SliceKey,
        desired: Vec<Endpoint>,
        existing: Vec<ExistingSlice>,
        max: usize,
    ) {
        if desired.is_empty() {
            self.removed += existing.iter().map(|slice| slice.endpoints.len()).sum::<usize>();
            self.delete.extend(existing.into_iter().map(|slice| slice.object));
            return;
        }
        self.efficiency = self.efficiency.plus(Efficiency::of_ports(desired.len(), 1, max));
        let mut existing = existing.into_iter();
        let Some(slice) = existing.next() else {
            self.added += desired.len();
            sort_ports(&mut ports);
            self.create.push((family, Draft::new(ports, desired)));
            return;
        };
        self.delete.extend(existing.map(|slice| slice.object));
        let places = matches(std::slice::from_ref(&slice), &desired).swap_remove(0);
        let kept = places.iter().flatten().count();
        let pairs = slice.endpoints.iter().zip(&places);
        let updated = pairs.filter(|(endpoint, at)| at.is_some_and(|at| !desired[at].is_unchanged(endpoint))).count();
        let (added, removed) = (desired.len() - kept, slice.endpoints.len() - kept);
        self.added += added;
        self.updated += updated;
        self.removed += removed;
        if added + updated + removed > 0 || !is_described(&slice.object, endpoints) {
            self.update.push(Draft::update(slice.object, desired));
        }
    }

    /// Turns deletions and creations of slices of a family into updates.
    fn reuse(&mut self) {
        for (family, draft) in std::mem::take(&mut self.create) {
            match self.delete.iter().position(|slice| slice.address_type == family) {
                Some(at) => self.update.push(draft.instead_of(self.delete.remove(at))),
                None => self.create.push((family, draft)),
            }
        }
    }
}

impl Desired {
    fn of(subsets: Vec<Subset>, max: usize) -> Self {
        let mut desired = Self::default();
        for subset in repack(subsets) {
            let total = subset.addresses.len() + subset.not_ready_addresses.len();
            let mut ports: Vec<EndpointPort> = subset.ports.into_iter().map(EndpointPort::from).collect();
            ports.sort_unstable();
            let ready = subset.addresses.into_iter().map(|address| (address, true));
            let addresses = ready.chain(subset.not_ready_addresses.into_iter().map(|address| (address, false)));
            let mut families = BTreeMap::from([(AddressType::IPv4, Vec::new()), (AddressType::IPv6, Vec::new())]);
            let (mut added, mut identities) = (0, BTreeSet::new());
            for (address, is_ready) in addresses {
                if added >= max {
                    break;
                }
                let Some((family, endpoint)) = endpoint_of(address, is_ready) else {
                    desired.invalid += 1;
                    continue;
                };
                added += 1;
                let target = endpoint.target_ref.as_ref().map(|target| (target.namespace.clone(), target.name.clone()));
                if identities.insert((endpoint.addresses.clone(), endpoint.hostname.clone(), target)) {
                    families.entry(family).or_default().push(endpoint);
                }
            }
            desired.skipped += total - added;
            for (family, endpoints) in families {
                desired.endpoints.entry((family, ports.clone())).or_default().extend(endpoints);
            }
        }
        desired
    }
}

/// Returns the endpoint of an address and its family; `None` if it is no IP address.
fn endpoint_of(address: Address, is_ready: bool) -> Option<(AddressType, Endpoint)> {
    let ip = parse_ip(&address.ip)?;
    let family = if ip.is_ipv6() { AddressType::IPv6 } else { AddressType::IPv4 };
    let endpoint = Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Conditions { ready: Some(is_ready), ..Conditions::default() },
        hostname: Some(address.hostname).filter(|hostname| !hostname.is_empty()),
        target_ref: address.target_ref,
        node_name: address.node_name,
        ..Endpoint::default()
    };
    Some((family, endpoint))
}

impl From<SubsetPort> for EndpointPort {
    fn from(port: SubsetPort) -> Self {
        Self {
            name: Some(port.name),
            protocol: Some(port.protocol),
            port: Some(port.port),
            app_protocol: port.app_protocol,
        }
    }
}

/// Returns the labels of the slices of endpoints.
pub(super) fn labels_of(endpoints: &Endpoints) -> BTreeMap<&str, &str> {
    let mut labels: BTreeMap<&str, &str> = endpoints.metadata.labels.iter().collect();
    labels.extend([(SERVICE_NAME, endpoints.metadata.key.name()), (MANAGED_BY_LABEL, MANAGED_BY)]);
    labels
}

/// Returns the annotations of the slices of endpoints.
pub(super) fn annotations_of(endpoints: &Endpoints) -> BTreeMap<String, String> {
    let annotations = endpoints.document.annotations().into_iter();
    let mirrored = annotations.filter(|(key, _)| key != TRIGGER_TIME && key != LAST_APPLIED);
    mirrored.map(|(key, value)| (key.into_owned(), value.into_owned())).collect()
}

/// Whether a slice has the labels, annotations and owner of the endpoints.
fn is_described(slice: &EndpointSlice, endpoints: &Endpoints) -> bool {
    let labels: BTreeMap<&str, &str> = slice.metadata.labels.iter().collect();
    let annotations = slice.document.annotations().into_iter();
    let annotations: BTreeMap<String, String> =
        annotations.map(|(key, value)| (key.into_owned(), value.into_owned())).collect();
    let is_of_earlier = slice.metadata.owner_references.iter().any(|owner| {
        owner.kind == "Endpoints"
            && *owner.name == *endpoints.metadata.key.name()
            && owner.uid != endpoints.metadata.uid
    });
    labels == labels_of(endpoints) && annotations == annotations_of(endpoints) && !is_of_earlier
}
