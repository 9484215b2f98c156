//! The order of a reconcile: observe, plan, write.

use std::net::IpAddr;
use std::sync::Arc;

use kcm_framework::api::PartialObjectMeta;
use kcm_framework::api::views::ServiceCidr;
use kcm_framework::informers::Informer;
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::apply::apply;
use super::event_mapping::allocated;
use super::plan::plan;

/// Reconciles service CIDRs.
pub(super) struct Reconciler {
    pub(super) cidrs: Informer<ServiceCidr>,
    pub(super) addresses: Informer<PartialObjectMeta>,
}

#[async_trait]
impl ReconcileObject<ServiceCidr> for Reconciler {
    async fn reconcile(&self, cidr: &Arc<ServiceCidr>, session: &Session) -> Result<(), ReconcileError> {
        // Only a deletion depends on the other service CIDRs, which a list sorts, and on the addresses, which are as many as
        // there are services.
        let (all, addresses): (_, Vec<IpAddr>) = if cidr.metadata.is_terminating() {
            let addresses = self.addresses.list();
            let decoded = addresses.iter().filter_map(|address| allocated(address));
            // The name is the address. It is not known to be allocated, but it may be.
            let undecodable = self.addresses.undecodable_objects();
            let undecodable = undecodable.iter().filter_map(|object| {
                session.requeue_when_decodable(&self.addresses.cache(), object);
                object.key.name().parse().ok()
            });
            (self.cidrs.list(), decoded.chain(undecodable).collect())
        } else {
            (Vec::new(), Vec::new())
        };
        let plan = plan(cidr, &all, &addresses, session.now());
        session.explain(|| plan.explain());
        Ok(apply(session, cidr, plan).await?)
    }
}
