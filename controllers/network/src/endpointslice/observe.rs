//! The observed state of a service: its pods with their nodes, and its slices.

use std::sync::Arc;

use kcm_framework::api::views::{EndpointSlice, Node, Pod, PodAddresses, Service};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::informers::{Informer, Lookup, UndecodableObject};

use super::MANAGED_BY;
use super::zones::zone_of;
use crate::shared::pods::{SelectedPods, can_be_endpoint};
use crate::shared::slices::{ExistingSlice, SlicesOfServices};

pub(super) struct Caches {
    pub(super) pods: SelectedPods,
    pub(super) nodes: Informer<Node>,
    pub(super) slices: SlicesOfServices,
    pub(super) addresses: PartReader<PodAddresses>,
}

/// A pod that can be an endpoint.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) pod: Arc<Pod>,
    /// The node of the pod.
    pub(super) node: Lookup<Node>,
}

#[derive(Debug)]
pub(super) struct Observed {
    /// All pods that the service selects.
    pub(super) pods: Vec<Arc<Pod>>,
    /// The pods of them that can be endpoints, sorted by name.
    pub(super) candidates: Vec<Candidate>,
    /// The slices that the controller manages for a service of this name, sorted by name, without terminating slices.
    pub(super) slices: Vec<ExistingSlice>,
    /// The slices whose endpoints or ports cannot be read.
    pub(super) invalid: Vec<Arc<EndpointSlice>>,
}

impl Observed {
    /// Returns the nodes of the candidates that cannot be decoded.
    pub(super) fn undecodable_nodes(&self) -> impl Iterator<Item = &Arc<UndecodableObject>> {
        self.candidates.iter().filter_map(|candidate| match &candidate.node {
            Lookup::Undecodable(node) => Some(node),
            Lookup::Found(_) | Lookup::Absent => None,
        })
    }
}

impl Candidate {
    /// Returns the zone of its node, which metadata tell.
    pub(super) fn zone(&self) -> Option<&str> {
        match &self.node {
            Lookup::Found(node) => zone_of(&node.metadata),
            Lookup::Undecodable(node) => zone_of(node.meta.as_ref()?),
            Lookup::Absent => None,
        }
    }
}

impl Caches {
    pub(super) fn observe(&self, service: &Service) -> Observed {
        let pods = self.pods.of(service);
        let can_be = |pod: &&Arc<Pod>| can_be_endpoint(pod, self.addresses.of(pod));
        let candidates = pods.iter().filter(can_be).map(|pod| Candidate { pod: Arc::clone(pod), node: self.node(pod) });
        let (slices, invalid) = ExistingSlice::read_all(self.slices.of(&service.metadata.key, MANAGED_BY));
        Observed { candidates: candidates.collect(), slices, invalid, pods }
    }

    fn node(&self, pod: &Pod) -> Lookup<Node> {
        let name = pod.node_name.as_deref();
        name.map_or(Lookup::Absent, |name| self.nodes.lookup(&ObjectKey::cluster_scoped(name)))
    }
}
