//! The plan for the slices of a service.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kcm_framework::api::views::{AddressType, EndpointSlice, PodAddresses, Service};
use kcm_framework::api::{PartReader, parse_ip};

use super::events::ServiceEvent;
use super::hints::FamilySlices;
use super::hints::distribution::TrafficDistribution;
use super::hints::topology::{ServiceHints, set_hints};
use super::observe::{Candidate, Observed};
use super::placement::place;
use super::zones::Shares;
use super::{MANAGED_BY, TOPOLOGY_AWARE_HINTS, TOPOLOGY_MODE};
use crate::shared::pods::ips_of_family;
use crate::shared::ports::port_in_pod;
use crate::shared::slices::{
    Conditions, Draft, Efficiency, Endpoint, EndpointPort, ExistingSlice, MANAGED_BY as MANAGED_BY_LABEL, SERVICE_NAME,
    TargetRef, sort_ports,
};

/// The label of the slices of a headless service.
const HEADLESS: &str = "service.kubernetes.io/headless";

/// The input of a plan beside the service and its pods.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings<'a> {
    /// Maximum number of endpoints in a slice.
    pub(super) max_endpoints: usize,
    /// The shares of the zones in the CPUs of the cluster.
    pub(super) shares: Option<&'a Shares>,
    pub(super) addresses: PartReader<PodAddresses>,
}

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) families: Vec<FamilyPlan>,
    /// Slices of families that the service does not have, and slices that cannot be read.
    pub(super) foreign: Vec<Arc<EndpointSlice>>,
    /// The pods that are left out because their nodes do not exist: name of the pod, name of the node.
    pub(super) without_node: Vec<(String, String)>,
    /// Whether hints follow topology.
    pub(super) by_topology: bool,
    /// The traffic distribution that hints follow.
    pub(super) distribution: Option<TrafficDistribution>,
    /// The numbers of the service afterwards.
    pub(super) efficiency: Efficiency,
}

/// The plan for one family of a service.
#[derive(Debug)]
pub(super) struct FamilyPlan {
    pub(super) family: AddressType,
    pub(super) slices: FamilySlices,
    /// Number of endpoints that the family gains.
    pub(super) added: usize,
    /// Number of endpoints that the family loses.
    pub(super) removed: usize,
    /// The events to record afterwards.
    pub(super) events: Vec<ServiceEvent>,
}

impl FamilyPlan {
    /// Returns the number of slices that are written.
    pub(super) fn writes(&self) -> usize {
        self.slices.create.len() + self.slices.update.len() + self.slices.delete.len()
    }
}

/// The endpoints with one set of ports.
struct PortGroup {
    /// In the order of new slices.
    ports: Vec<EndpointPort>,
    endpoints: Vec<Endpoint>,
}

/// Plans the slices of a service. `hints` are its hints by topology; they become the new ones.
///
/// # Upstream
/// `Reconcile`
pub(super) fn plan(service: &Service, observed: Observed, settings: Settings<'_>, hints: &mut ServiceHints) -> Plan {
    let by_topology = asks_for_topology(service);
    let distribution = service.traffic_distribution.as_deref().and_then(TrafficDistribution::named);
    let families = families_of(service);
    let mut plan = Plan {
        families: Vec::with_capacity(families.len()),
        foreign: observed.invalid,
        without_node: Vec::new(),
        by_topology,
        distribution: distribution.filter(|_| !by_topology),
        efficiency: Efficiency::default(),
    };
    let mut slices: BTreeMap<AddressType, Vec<ExistingSlice>> = BTreeMap::new();
    for slice in observed.slices {
        let family = slice.object.address_type;
        if families.contains(&family) {
            slices.entry(family).or_default().push(slice);
        } else {
            hints.remove(family);
            plan.foreign.push(slice.object);
        }
    }
    let is_left_out = |candidate: &Candidate| candidate.node.is_absent() && !service.publish_not_ready_addresses;
    for candidate in observed.candidates.iter().filter(|candidate| is_left_out(candidate)) {
        let pod = &candidate.pod;
        let node = pod.node_name.as_deref().unwrap_or_default().to_owned();
        plan.without_node.push((pod.metadata.key.name().to_owned(), node));
    }
    for family in families {
        let existing = slices.remove(&family).unwrap_or_default();
        let of_family = Family { service, address_type: family, settings };
        let (family_plan, efficiency) = of_family.plan(&observed.candidates, existing, &plan, hints);
        plan.efficiency = plan.efficiency.plus(efficiency);
        plan.families.push(family_plan);
    }
    plan
}

/// Returns the labels of the slices of a service: its own, except for the reserved ones.
///
/// # Upstream
/// `setEndpointSliceLabels`
pub(super) fn labels_of(service: &Service) -> BTreeMap<&str, &str> {
    let mut labels: BTreeMap<&str, &str> =
        service.metadata.labels.iter().filter(|(key, _)| !is_reserved(key)).collect();
    if !service.has_cluster_ip() {
        labels.insert(HEADLESS, "");
    }
    labels.extend([(SERVICE_NAME, service.metadata.key.name()), (MANAGED_BY_LABEL, MANAGED_BY)]);
    labels
}

fn is_reserved(label: &str) -> bool {
    [SERVICE_NAME, MANAGED_BY_LABEL, HEADLESS].contains(&label)
}

/// Whether a slice has the labels of its service. A difference in reserved labels causes no update; other updates set
/// them.
fn has_labels(slice: &EndpointSlice, service: &Service) -> bool {
    let own = |labels: &kcm_framework::api::Labels| -> Vec<(String, String)> {
        let own = labels.iter().filter(|(key, _)| !is_reserved(key));
        own.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    own(&slice.metadata.labels) == own(&service.metadata.labels)
}

/// Returns the address families of a service. A service that an old API server stored without has the family of its
/// address, or both if it is headless.
fn families_of(service: &Service) -> BTreeSet<AddressType> {
    let named = |name: &str| match name {
        "IPv4" => Some(AddressType::IPv4),
        "IPv6" => Some(AddressType::IPv6),
        _ => None,
    };
    let families: BTreeSet<_> = service.ip_families.iter().filter_map(|name| named(name)).collect();
    if !families.is_empty() {
        return families;
    }
    if !service.has_cluster_ip() {
        return [AddressType::IPv4, AddressType::IPv6].into();
    }
    let is_ipv6 = parse_ip(&service.cluster_ip).is_some_and(|ip| ip.is_ipv6());
    [if is_ipv6 { AddressType::IPv6 } else { AddressType::IPv4 }].into()
}

/// Whether an annotation asks for hints by topology. If there are both, the older one counts.
fn asks_for_topology(service: &Service) -> bool {
    let annotations = &service.metadata.annotations;
    let mode = annotations.get(TOPOLOGY_AWARE_HINTS).or_else(|| annotations.get(TOPOLOGY_MODE));
    matches!(mode, Some("Auto" | "auto"))
}

/// One family of a service.
struct Family<'a> {
    service: &'a Service,
    address_type: AddressType,
    settings: Settings<'a>,
}

impl Family<'_> {
    fn plan(
        &self,
        candidates: &[Candidate],
        existing: Vec<ExistingSlice>,
        plan: &Plan,
        hints: &mut ServiceHints,
    ) -> (FamilyPlan, Efficiency) {
        let max = self.settings.max_endpoints;
        let mut slices = FamilySlices::default();
        let (mut added, mut removed, mut efficiency) = (0, 0, Efficiency::default());
        let mut by_ports: BTreeMap<Vec<EndpointPort>, Vec<ExistingSlice>> = BTreeMap::new();
        for slice in existing {
            if self.owns(&slice.object) {
                by_ports.entry(slice.ports.clone()).or_default().push(slice);
            } else {
                slices.delete.push(slice.object);
            }
        }
        for (ports, group) in self.groups(candidates) {
            let existing = by_ports.remove(&ports).unwrap_or_default();
            let (before, endpoints) = (existing.len(), group.endpoints.len());
            let has_labels = |slice: &EndpointSlice| has_labels(slice, self.service);
            let placed = place(existing, group.endpoints, &group.ports, has_labels, max);
            let count = before + placed.create.len() - placed.delete.len();
            efficiency = efficiency.plus(Efficiency::of_ports(endpoints, count, max));
            added += placed.added;
            removed += placed.removed;
            slices.create.extend(placed.create);
            slices.update.extend(placed.update);
            slices.delete.extend(placed.delete);
            slices.unchanged.extend(placed.unchanged);
        }
        // Slices with ports that no pod has any more.
        let mut unused: Vec<ExistingSlice> = by_ports.into_values().flatten().collect();
        let is_alone = slices.delete.is_empty() && slices.update.is_empty() && slices.unchanged.is_empty();
        if slices.update.is_empty() && slices.unchanged.is_empty() && slices.create.is_empty() {
            efficiency = efficiency.plus(Efficiency::of_ports(0, 1, max));
            match unused.as_slice() {
                [only] if is_alone && self.is_placeholder(only) => slices.unchanged.append(&mut unused),
                _ => slices.create.push(Draft::new(Vec::new(), Vec::new())),
            }
        }
        slices.delete.extend(unused.into_iter().map(|slice| slice.object));
        // A family without endpoints has an empty slice.
        efficiency.desired_slices = efficiency.desired_slices.max(1);

        let events = self.set_hints(&mut slices, plan, hints);
        self.reuse(&mut slices);
        (FamilyPlan { family: self.address_type, slices, added, removed, events }, efficiency)
    }

    fn owns(&self, slice: &EndpointSlice) -> bool {
        slice
            .metadata
            .owner_references
            .iter()
            .any(|owner| owner.uid == self.service.metadata.uid && owner.kind == "Service" && owner.api_version == "v1")
    }

    /// Whether a slice is the empty one of a service without endpoints.
    fn is_placeholder(&self, slice: &ExistingSlice) -> bool {
        let labels: BTreeMap<&str, &str> = slice.object.metadata.labels.iter().collect();
        slice.endpoints.is_empty() && slice.ports.is_empty() && labels == labels_of(self.service)
    }

    /// Returns the endpoints of the family by their ports.
    fn groups(&self, candidates: &[Candidate]) -> BTreeMap<Vec<EndpointPort>, PortGroup> {
        // Pods of one template have the same numbers, so their ports are computed once.
        let mut by_numbers: BTreeMap<Vec<Option<i32>>, Vec<Endpoint>> = BTreeMap::new();
        for candidate in candidates {
            let addresses = self.settings.addresses.of(&candidate.pod);
            let ports = self.service.ports.iter();
            let numbers: Vec<Option<i32>> = ports.map(|port| port_in_pod(port, addresses)).collect();
            let endpoints = by_numbers.entry(numbers).or_default();
            if !candidate.node.is_absent() || self.service.publish_not_ready_addresses {
                endpoints.extend(self.endpoint(candidate, addresses));
            }
        }
        let mut groups: BTreeMap<Vec<EndpointPort>, PortGroup> = BTreeMap::new();
        for (numbers, endpoints) in by_numbers {
            let mut ports: Vec<EndpointPort> = self
                .service
                .ports
                .iter()
                .zip(numbers)
                .filter_map(|(port, number)| {
                    Some(EndpointPort {
                        name: Some(port.name.to_string()),
                        protocol: Some(port.protocol.to_string()),
                        port: Some(number?),
                        app_protocol: port.app_protocol.as_ref().map(ToString::to_string),
                    })
                })
                .collect();
            let mut sorted = ports.clone();
            sorted.sort_unstable();
            sort_ports(&mut ports);
            let group = groups.entry(sorted).or_insert_with(|| PortGroup { ports, endpoints: Vec::new() });
            group.endpoints.extend(endpoints);
        }
        groups
    }

    /// Returns the endpoint of a pod; `None` if the pod has no address of the family.
    ///
    /// # Upstream
    /// `podToEndpoint`: a terminating pod is not ready, unless the service publishes addresses that are not ready.
    fn endpoint(&self, candidate: &Candidate, addresses: &PodAddresses) -> Option<Endpoint> {
        let pod = &candidate.pod;
        let ips = ips_of_family(addresses, self.address_type == AddressType::IPv6);
        let mut ips: Vec<String> = ips.map(|ip| ip.to_string()).collect();
        if ips.is_empty() {
            return None;
        }
        ips.sort_unstable();
        let (serving, terminating) = (pod.is_ready(), pod.metadata.is_terminating());
        let ready = self.service.publish_not_ready_addresses || (serving && !terminating);
        let same_namespace = pod.metadata.key.namespace() == self.service.metadata.key.namespace();
        let hostname = addresses.hostname_in(self.service.metadata.key.name()).filter(|_| same_namespace);
        Some(Endpoint {
            addresses: ips,
            conditions: Conditions { ready: Some(ready), serving: Some(serving), terminating: Some(terminating) },
            hostname: hostname.map(str::to_owned),
            target_ref: Some(TargetRef {
                kind: "Pod".to_owned(),
                namespace: pod.metadata.key.namespace().unwrap_or_default().to_owned(),
                name: pod.metadata.key.name().to_owned(),
                uid: pod.metadata.uid.to_string(),
                ..TargetRef::default()
            }),
            node_name: pod.node_name.as_ref().map(ToString::to_string),
            zone: candidate.zone().map(str::to_owned),
            ..Endpoint::default()
        })
    }

    /// Sets the hints that the service asks for; returns the events about it.
    fn set_hints(&self, slices: &mut FamilySlices, plan: &Plan, hints: &mut ServiceHints) -> Vec<ServiceEvent> {
        let family = self.address_type;
        if plan.by_topology {
            return match set_hints(slices, family, self.settings.shares, hints) {
                Ok(true) => vec![ServiceEvent::HintsEnabled(family)],
                Ok(false) => Vec::new(),
                Err(obstacle) => vec![ServiceEvent::NoHints(family, obstacle)],
            };
        }
        let events = if hints.is_populated { vec![ServiceEvent::HintsDisabled(family)] } else { Vec::new() };
        hints.remove(family);
        match plan.distribution {
            Some(distribution) => distribution.set_hints(slices),
            None => slices.remove_hints(),
        }
        events
    }

    /// Turns deletions and creations of slices into updates. Slices of an earlier service of this name are left to the
    /// garbage collector.
    fn reuse(&self, slices: &mut FamilySlices) {
        let mut delete = Vec::new();
        for slice in std::mem::take(&mut slices.delete) {
            if self.owns(&slice)
                && let Some(draft) = slices.create.pop()
            {
                slices.update.push(draft.instead_of(slice));
            } else {
                delete.push(slice);
            }
        }
        slices.delete = delete;
    }
}
