//! The pods of a service.

use std::net::IpAddr;
use std::sync::Arc;

use kcm_framework::Session;
use kcm_framework::api::PartReader;
use kcm_framework::api::views::{Pod, PodAddresses, Service};
use kcm_framework::informers::{Informer, LabelIndex, UndecodableObject};

use super::selects;

/// The pods of the cluster, found by the selector of a service without a walk through the namespace.
#[derive(Clone)]
pub(crate) struct SelectedPods {
    pods: Informer<Pod>,
    by_label: LabelIndex<Pod>,
}

impl SelectedPods {
    pub(crate) fn new(pods: &Informer<Pod>) -> Self {
        Self { pods: pods.clone(), by_label: LabelIndex::new(pods) }
    }

    /// Returns the pods that the service selects, sorted by name.
    pub(crate) fn of(&self, service: &Service) -> Vec<Arc<Pod>> {
        if service.selector.is_empty() {
            return Vec::new();
        }
        let namespace = service.metadata.key.namespace().unwrap_or_default();
        self.by_label.matching(namespace, service.selector.iter(), |labels| selects(&service.selector, labels))
    }

    /// Returns a pod that the service selects and that cannot be decoded, so that it is in no cache.
    pub(crate) fn undecodable(&self, service: &Service) -> Option<Arc<UndecodableObject>> {
        self.pods.undecodable_objects().into_iter().find(|pod| {
            pod.key.namespace() == service.metadata.key.namespace()
                && pod.meta.as_ref().is_none_or(|meta| selects(&service.selector, &meta.labels))
        })
    }

    /// Reconciles the service again when the pod changes.
    pub(crate) fn requeue_when_decodable(&self, pod: &Arc<UndecodableObject>, session: &Session) {
        session.requeue_when_decodable(&self.pods.cache(), pod);
    }
}

/// Whether a pod can be an endpoint: it has an address and has not ended.
///
/// # Upstream
/// `ShouldPodBeInEndpoints` with terminating pods. Endpoints leave these out, unless the service publishes addresses that
/// are not ready.
pub(crate) fn can_be_endpoint(pod: &Pod, addresses: &PodAddresses) -> bool {
    !pod.is_finished() && !addresses.ips.is_empty()
}

/// Whether an update of a pod may change its endpoint, the labels aside.
pub(crate) fn endpoint_changed(old: &Pod, new: &Pod, addresses: PartReader<PodAddresses>) -> bool {
    old.metadata.is_terminating() != new.metadata.is_terminating()
        || old.is_finished() != new.is_finished()
        || old.is_ready() != new.is_ready()
        || old.node_name != new.node_name
        || addresses.of(old).ips != addresses.of(new).ips
}

/// Returns the addresses of a pod of one family, in its order.
pub(crate) fn ips_of_family(addresses: &PodAddresses, is_ipv6: bool) -> impl Iterator<Item = IpAddr> + '_ {
    addresses.ips.iter().copied().filter(move |ip| ip.is_ipv6() == is_ipv6)
}
