//! The order of a reconcile: plan, write.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::informers::Informer;
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};
use tokio::time::Instant;

use super::apply::apply;
use super::plan::{Publication, TrustBundle, plan};
use crate::shared::SyncMetrics;

pub(super) struct Reconciler {
    pub(super) bundles: Informer<TrustBundle>,
    pub(super) root_ca: Arc<str>,
    pub(super) metrics: SyncMetrics,
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, bundle: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let started = Instant::now();
        let plan = plan(&self.root_ca, self.bundles.list())?;
        session.explain(|| {
            let publication = match plan.publication {
                Publication::None => "the trust bundle is right",
                Publication::Create(_) => "creates the trust bundle",
                Publication::Update(_) => "repairs the trust bundle",
            };
            format!("{publication}, outdated bundles to delete: {}", plan.outdated.len())
        });
        let written = apply(session, bundle, plan).await;
        self.metrics.synced(written.as_ref().err(), started.elapsed());
        Ok(written?)
    }
}
