//! The order of a reconcile: plan, write.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::informers::{Informer, Lookup};
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};
use tokio::time::Instant;

use super::apply::apply;
use super::plan::{Publication, TrustBundle, name, plan};
use crate::shared::{RootCaSource, SyncMetrics};

pub(super) struct Reconciler {
    pub(super) bundles: Informer<TrustBundle>,
    pub(super) root_ca: Arc<RootCaSource>,
    pub(super) metrics: SyncMetrics,
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, _key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let started = Instant::now();
        // The CA may have changed since the key was enqueued.
        let root_ca = self.root_ca.current();
        let bundle = ObjectKey::cluster_scoped(name(&root_ca));
        if let Lookup::Undecodable(undecodable) = self.bundles.lookup(&bundle) {
            session.requeue_when_decodable(&self.bundles.cache(), &undecodable);
            session.explain(|| "leaves the trust bundle as it is, as it cannot be decoded");
            return Ok(());
        }
        let plan = plan(&root_ca, self.bundles.list())?;
        session.explain(|| {
            let publication = match plan.publication {
                Publication::None => "the trust bundle is right",
                Publication::Create(_) => "creates the trust bundle",
                Publication::Update(_) => "repairs the trust bundle",
            };
            format!("{publication}, outdated bundles to delete: {}", plan.outdated.len())
        });
        let written = apply(session, &bundle, plan).await;
        self.metrics.synced(written.as_ref().err(), started.elapsed());
        Ok(written?)
    }
}
