//! The order of a reconcile.

use kcm_framework::api::{ObjectKey, Typed, View as _};
use kcm_framework::client::{Patch, Payload, Subresource};
use kcm_framework::events::{EventDetails, EventType};
use kcm_framework::informers::Informer;
use kcm_framework::prometheus_client::metrics::counter::Counter;
use kcm_framework::{Class, Outcome, Reconcile, ReconcileError, Session, async_trait};
use serde_json::{Value, json};

use crate::WEBSITES;
use crate::hosts::{HostError, Hosts};
use crate::owned::{OwnedDeployment, OwnedService};
use crate::website::{FINALIZER, MANAGER, Website, WebsiteCondition};

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
        let has_finalizer = meta.finalizers.iter().any(|finalizer| &**finalizer == FINALIZER);
        if meta.is_terminating() {
            if has_finalizer {
                self.hosts.free(&website.spec.host, &website.full_name()).await?;
                let others = meta.finalizers.iter().filter(|finalizer| &***finalizer != FINALIZER);
                set_finalizers(session, &cached, others.map(|finalizer| &**finalizer).collect()).await?;
            }
            return Ok(Outcome::done());
        }
        if !has_finalizer {
            let finalizers = meta.finalizers.iter().map(|finalizer| &**finalizer).chain([FINALIZER]);
            set_finalizers(session, &cached, finalizers.collect()).await?;
            return Ok(Outcome::done());
        }
        let host = self.hosts.publish(&website.spec.host, &website.full_name()).await?;
        let deployment = self.deployments.get(key);
        if !deployment.as_ref().is_some_and(|deployment| deployment.is_current(website)) {
            apply::<OwnedDeployment>(session, key, &website.deployment()).await?;
        }
        if !self.services.get(key).is_some_and(|service| service.is_current(website)) {
            apply::<OwnedService>(session, key, &website.service()).await?;
        }
        let ready = deployment.map_or(0, |deployment| deployment.ready_replicas);
        let status = website.next_status(&host, ready, session.now());
        if website.status.as_ref() != Some(&status) {
            let condition = &status.conditions[0];
            let before = website.status.iter().flat_map(|status| &status.conditions).next();
            if before.is_none_or(|before| before.reason != condition.reason) {
                session.record_for(&WEBSITES, meta, &Changed(condition));
                self.published.inc_by(u64::from(condition.status == "True"));
            }
            let patch = json!({ "metadata": { "uid": meta.uid }, "status": status });
            session.patch(&WEBSITES, key, Subresource::Status, Patch::Merge(Payload::json(&patch))).await?;
        }
        Ok(Outcome::done())
    }
}

async fn apply<V: kcm_framework::api::KnownView>(
    session: &Session,
    key: &ObjectKey,
    wanted: &Value,
) -> Result<(), ReconcileError> {
    let body = Payload::json(wanted);
    let patch = Patch::Apply { field_manager: MANAGER.to_owned(), force: true, body };
    session.patch(const { &V::RESOURCE }, key, Subresource::None, patch).await?;
    Ok(())
}

/// Replaces the finalizers of the version in the cache: those that another client has added meanwhile stay.
async fn set_finalizers(
    session: &Session,
    website: &Typed<Website>,
    finalizers: Vec<&str>,
) -> Result<(), ReconcileError> {
    let meta = website.meta();
    let metadata = json!({ "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": finalizers });
    let patch = Patch::Merge(Payload::json(&json!({ "metadata": metadata })));
    session.patch(&WEBSITES, &meta.key, Subresource::None, patch).await?;
    Ok(())
}

/// The condition `Ready` has another reason.
struct Changed<'a>(&'a WebsiteCondition);

impl EventDetails for Changed<'_> {
    fn event_type(&self) -> EventType {
        if self.0.reason == "HostTaken" { EventType::Warning } else { EventType::Normal }
    }

    fn reason(&self) -> &'static str {
        match &*self.0.reason {
            "HostTaken" => "HostTaken",
            "Available" => "Available",
            _ => "Progressing",
        }
    }

    fn message(&self) -> String {
        self.0.message.clone()
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
