//! The order of a reconcile: plan, write.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::informers::{Informer, Lookup};
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};
use tokio::time::Instant;

use super::CONFIG_MAP;
use super::apply::apply;
use super::plan::{Action, ConfigMap, plan};
use crate::shared::{RootCaSource, SyncMetrics};

pub(super) struct Reconciler {
    pub(super) config_maps: Informer<ConfigMap>,
    pub(super) root_ca: Arc<RootCaSource>,
    pub(super) metrics: SyncMetrics,
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, namespace: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let started = Instant::now();
        let key = ObjectKey::namespaced(namespace.name(), CONFIG_MAP);
        let existing = match self.config_maps.lookup(&key) {
            Lookup::Found(config_map) => Some(config_map),
            Lookup::Absent => None,
            Lookup::Undecodable(config_map) => {
                session.requeue_when_decodable(&self.config_maps.cache(), &config_map);
                session.explain(|| "leaves the config map kube-root-ca.crt as it is, as it cannot be decoded");
                return Ok(());
            }
        };
        let action = plan(namespace.name(), existing.as_deref(), &self.root_ca.current())?;
        session.explain(|| match action {
            Action::None => "the config map kube-root-ca.crt is right",
            Action::Create(_) => "creates the config map kube-root-ca.crt",
            Action::Update(_) => "repairs the config map kube-root-ca.crt",
        });
        let written = apply(session, &key, action).await;
        self.metrics.synced(written.as_ref().err(), started.elapsed());
        Ok(written?)
    }
}
