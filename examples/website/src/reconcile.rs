//! The order of a reconcile.

use std::sync::Arc;

use kcm_framework::api::views::Deployment;
use kcm_framework::api::{Documented, PartialObjectMeta, Typed, View as _};
use kcm_framework::events::EventText;
use kcm_framework::informers::Informer;
use kcm_framework::metrics::Counter;
use kcm_framework::{Class, ReconcileError, ReconcileObject, Session, async_trait};

use crate::WEBSITES;
use crate::hosts::{HostError, Hosts};
use crate::website::{FINALIZER, HostState, MANAGER, Website};

pub(crate) struct Operator {
    pub(crate) deployments: Informer<Deployment>,
    pub(crate) services: Informer<Documented<PartialObjectMeta>>,
    pub(crate) hosts: Hosts,
    pub(crate) published: Counter,
}

#[async_trait]
impl ReconcileObject<Typed<Website>> for Operator {
    async fn reconcile(&self, cached: &Arc<Typed<Website>>, session: &Session) -> Result<(), ReconcileError> {
        let websites = session.of(const { &WEBSITES });
        let (website, meta) = (&cached.object, cached.meta());
        let key = &meta.key;
        if meta.is_terminating() {
            self.hosts.free(&website.spec.host, &website.full_name()).await?;
            websites.remove_finalizer(meta, FINALIZER).await?;
            return Ok(());
        }
        if websites.add_finalizer(meta, FINALIZER).await? {
            return Ok(());
        }
        let host = self.hosts.publish(&website.spec.host, &website.full_name()).await?;
        let deployment = session.ensure_applied(&self.deployments, key, MANAGER, &website.deployment()).await?;
        session.ensure_applied(&self.services, key, MANAGER, &website.service()).await?;
        let ready = deployment.map_or(0, |deployment| deployment.status.ready_replicas);
        let status = website.next_status(&host, ready, session.now());
        if website.status.as_ref() != Some(&status) {
            let condition = &status.conditions[0];
            let before = website.status.iter().flat_map(|status| &status.conditions).next();
            if before.is_none_or(|before| before.reason != condition.reason) {
                let is_taken = matches!(host, HostState::Taken(_));
                let event = if is_taken { EventText::warning } else { EventText::normal };
                session.record_for(&WEBSITES, meta, &event(&condition.reason, &condition.message));
                self.published.inc_by(u64::from(condition.status == "True"));
            }
            websites.merge_status(meta, &status).await?;
        }
        Ok(())
    }
}

impl From<HostError> for ReconcileError {
    fn from(error: HostError) -> Self {
        let class = match &error {
            HostError::NotDnsName(_) => Class::Terminal,
            HostError::File { .. } => Class::Transient,
        };
        Self::new(class, error)
    }
}
