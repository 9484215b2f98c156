//! The order of a reconcile.

use kcm_framework::api::{KnownView as _, ObjectKey, Typed, View as _};
use kcm_framework::events::EventType;
use kcm_framework::informers::Informer;
use kcm_framework::prometheus_client::metrics::counter::Counter;
use kcm_framework::{Class, Outcome, Reconcile, ReconcileError, Session, async_trait};

use crate::WEBSITES;
use crate::hosts::{HostError, Hosts};
use crate::owned::{OwnedDeployment, OwnedService};
use crate::website::{FINALIZER, HostState, MANAGER, Website};

pub(crate) struct Operator {
    pub(crate) websites: Informer<Typed<Website>>,
    pub(crate) deployments: Informer<OwnedDeployment>,
    pub(crate) services: Informer<OwnedService>,
    pub(crate) hosts: Hosts,
    pub(crate) published: Counter,
}

#[async_trait]
impl Reconcile for Operator {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<Outcome, ReconcileError> {
        let Some(cached) = self.websites.get(key) else { return Ok(Outcome::done()) };
        let (website, meta) = (&cached.object, cached.meta());
        if meta.is_terminating() {
            self.hosts.free(&website.spec.host, &website.full_name()).await?;
            session.remove_finalizer(&WEBSITES, meta, FINALIZER).await?;
            return Ok(Outcome::done());
        }
        if session.add_finalizer(&WEBSITES, meta, FINALIZER).await? {
            return Ok(Outcome::done());
        }
        let host = self.hosts.publish(&website.spec.host, &website.full_name()).await?;
        let deployment = self.deployments.get(key);
        if !deployment.as_ref().is_some_and(|deployment| deployment.is_current(website)) {
            session.apply(&OwnedDeployment::RESOURCE, key, MANAGER, &website.deployment()).await?;
        }
        if !self.services.get(key).is_some_and(|service| service.is_current(website)) {
            session.apply(&OwnedService::RESOURCE, key, MANAGER, &website.service()).await?;
        }
        let ready = deployment.map_or(0, |deployment| deployment.ready_replicas);
        let status = website.next_status(&host, ready, session.now());
        if website.status.as_ref() != Some(&status) {
            let condition = &status.conditions[0];
            let before = website.status.iter().flat_map(|status| &status.conditions).next();
            if before.is_none_or(|before| before.reason != condition.reason) {
                let (event_type, reason) = match &host {
                    HostState::Taken(_) => (EventType::Warning, "HostTaken"),
                    HostState::Published if condition.status == "True" => (EventType::Normal, "Available"),
                    HostState::Published => (EventType::Normal, "Progressing"),
                };
                session.record_for(&WEBSITES, meta, &(event_type, reason, condition.message.clone()));
                self.published.inc_by(u64::from(condition.status == "True"));
            }
            session.merge_status(&WEBSITES, meta, &status).await?;
        }
        Ok(Outcome::done())
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
