//! The order of a reconcile: plan, requeue at the next expiry, update.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_framework::informers::Informer;
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::plan::{ClusterInfo, Data, Plan, plan};
use crate::shared::BootstrapToken;

pub(super) struct Reconciler {
    pub(super) tokens: Informer<BootstrapToken>,
}

#[async_trait]
impl ReconcileObject<ClusterInfo> for Reconciler {
    async fn reconcile(&self, cluster_info: &Arc<ClusterInfo>, session: &Session) -> Result<(), ReconcileError> {
        let data = match cluster_info.raw(&["data"]) {
            Some(data) => serde_json::from_str::<Option<Data>>(data.get()).map_err(ReconcileError::terminal)?,
            None => None,
        };
        let undecodable = self.tokens.undecodable_objects();
        for token in &undecodable {
            session.requeue_when_decodable(&self.tokens.cache(), token);
        }
        let kept: BTreeSet<&str> =
            undecodable.iter().filter_map(|token| BootstrapToken::id_of(token.key.name())).collect();
        let tokens = self.tokens.list();
        let planned = plan(&data.unwrap_or_default(), tokens.iter().map(|token| &**token), &kept, session.now());
        session.explain(|| planned.explain());
        let Plan::Sign(signatures) = planned else { return Ok(()) };
        session.requeue_by(signatures.expires_at);
        if !signatures.is_at_rest() {
            let changed = signatures.applied_to(&cluster_info.document)?;
            session.update(&**cluster_info, &changed).await?;
            let (written, removed) = (signatures.set.len(), signatures.remove.len());
            tracing::info!(written, removed, "Updated the signatures of cluster-info");
        }
        Ok(())
    }
}
