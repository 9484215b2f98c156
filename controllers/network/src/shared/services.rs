//! Event mapping of pods: the services that a change enqueues.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_framework::Enqueue;
use kcm_framework::api::views::{Pod, PodAddresses, Service};
use kcm_framework::api::{Labels, ObjectKey, PartReader};
use kcm_framework::informers::{Change, Index, Informer, label_key};

use super::batching::{Batching, Urgency};
use super::pods::{can_be_endpoint, endpoint_changed};
use super::selects;

/// The services of the cluster, found by the labels of a pod without a walk through the namespace.
#[derive(Clone)]
pub(crate) struct SelectingServices {
    /// The services that publish addresses that are not ready: traffic depends on all their pods.
    pub(super) publishing: Index<Service, ObjectKey>,
    pub(super) by_selector: Index<Service, u64>,
}

impl SelectingServices {
    /// All controllers share the index.
    pub(crate) fn new(services: &Informer<Service>) -> Self {
        Self {
            publishing: services.index("publishing", publishing_key),
            by_selector: services.index("selector", first_label_key),
        }
    }

    /// Returns the keys of the services that select a pod with these labels.
    pub(crate) fn of(&self, namespace: &str, labels: &Labels) -> BTreeSet<ObjectKey> {
        let candidates = labels.iter().flat_map(|label| self.by_selector.get(&label_key(namespace, label)));
        let selecting = candidates.filter(|service: &Arc<Service>| {
            service.metadata.key.namespace() == Some(namespace) && selects(&service.selector, labels)
        });
        selecting.map(|service| service.metadata.key.clone()).collect()
    }

    /// Returns the keys of the services whose endpoints a change of a pod may change.
    ///
    /// A pod that has no address, or has ended, is no endpoint: only its labels and addresses are compared.
    ///
    /// # Upstream
    /// `GetPodUpdateProjectionKey` and `GetServicesToUpdate`, which also enqueue for pods that have no address yet, and do
    /// not for a pod that ends without having been ready.
    pub(crate) fn concerned(&self, change: &Change<Pod>, addresses: PartReader<PodAddresses>) -> BTreeSet<ObjectKey> {
        let can_be = |pod: &Pod| can_be_endpoint(pod, addresses.of(pod));
        let of = |pod: &Pod| self.of(pod.metadata.key.namespace().unwrap_or_default(), &pod.metadata.labels);
        match change {
            Change::Added(pod) | Change::Undecodable { last: pod } | Change::Deleted { last: pod, .. }
                if can_be(pod) =>
            {
                of(pod)
            }
            Change::Updated { old, new } if !Arc::ptr_eq(old, new) && (can_be(old) || can_be(new)) => {
                let endpoint_changed = endpoint_changed(old, new, addresses);
                if old.metadata.labels == new.metadata.labels {
                    return if endpoint_changed { of(new) } else { BTreeSet::new() };
                }
                let (before, after) = (of(old), of(new));
                if endpoint_changed { &before | &after } else { &before ^ &after }
            }
            Change::Added(_) | Change::Updated { .. } | Change::Undecodable { .. } | Change::Deleted { .. } => {
                BTreeSet::new()
            }
        }
    }
}

/// Enqueues the services whose endpoints a change of a pod may change, with their delays.
pub(crate) fn keys_for_pod(
    change: &Change<Pod>,
    services: &SelectingServices,
    addresses: PartReader<PodAddresses>,
    batching: &Batching,
) -> Vec<Enqueue<ObjectKey>> {
    let urgency = urgency(change, addresses);
    let concerned = services.concerned(change, addresses).into_iter();
    let enqueue = |service: ObjectKey| {
        let publishes = services.publishing.count(&service) > 0;
        batching.enqueue(service, if publishes { Urgency::Urgent } else { urgency })
    };
    concerned.map(enqueue).collect()
}

/// Returns whether traffic depends on a change of a pod, for services that do not publish addresses that are not ready.
///
/// A terminating pod that is ready still serves: traffic uses it if all endpoints terminate.
pub(crate) fn urgency(change: &Change<Pod>, addresses: PartReader<PodAddresses>) -> Urgency {
    let serves = |pod: &Pod| pod.is_ready() && can_be_endpoint(pod, addresses.of(pod));
    let is_urgent = match change {
        Change::Added(pod) | Change::Deleted { last: pod, .. } => serves(pod),
        Change::Updated { old, new } => serves(old) || serves(new),
        Change::Undecodable { .. } => true,
    };
    if is_urgent { Urgency::Urgent } else { Urgency::Lazy }
}

/// The key of a service that publishes addresses that are not ready.
pub(super) fn publishing_key(service: &Service) -> Option<ObjectKey> {
    service.publish_not_ready_addresses.then(|| service.metadata.key.clone())
}

/// Any label of the selector is enough to find a service.
pub(super) fn first_label_key(service: &Service) -> Option<u64> {
    let namespace = service.metadata.key.namespace().unwrap_or_default();
    service.selector.iter().next().map(|label| label_key(namespace, label))
}
