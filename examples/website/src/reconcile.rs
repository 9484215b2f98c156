//! The order of a reconcile.

use kcm_framework::api::views::Deployment;
use kcm_framework::api::{Documented, ObjectKey, PartialObjectMeta, Typed, View as _};
use kcm_framework::events::EventType;
use kcm_framework::informers::Informer;
use kcm_framework::prometheus_client::metrics::counter::Counter;
use kcm_framework::{Class, Reconcile, ReconcileError, Session, async_trait};

use crate::WEBSITES;
use crate::hosts::{HostError, Hosts};
use crate::website::{FINALIZER, HostState, MANAGER, Website};

pub(crate) struct Operator {
    pub(crate) websites: Informer<Typed<Website>>,
    pub(crate) deployments: Informer<Deployment>,
    pub(crate) services: Informer<Documented<PartialObjectMeta>>,
    pub(crate) hosts: Hosts,
    pub(crate) published: Counter,
}

#[async_trait]
impl Reconcile for Operator {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(cached) = self.websites.get(key) else { return Ok(()) };
        let (website, meta) = (&cached.object, cached.meta());
        if meta.is_terminating() {
            self.hosts.free(&website.spec.host, &website.full_name()).await?;
            session.raw_remove_finalizer(&WEBSITES, meta, FINALIZER).await?;
            return Ok(());
        }
        if session.raw_add_finalizer(&WEBSITES, meta, FINALIZER).await? {
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
                let event_type = if is_taken { EventType::Warning } else { EventType::Normal };
                session.record_for(&WEBSITES, meta, &(event_type, &condition.reason, condition.message.clone()));
                self.published.inc_by(u64::from(condition.status == "True"));
            }
            session.merge_status(&WEBSITES, meta, &status).await?;
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
