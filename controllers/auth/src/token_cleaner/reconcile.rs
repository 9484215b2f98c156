//! The order of a reconcile: plan, delete.

use std::sync::Arc;

use kcm_framework::client::{ApiError, ResponseExt as _};
use kcm_framework::{Delete, ReconcileError, ReconcileObject, Session, async_trait};

use super::plan::{Plan, plan};
use crate::shared::BootstrapToken;

pub(super) struct Reconciler;

#[async_trait]
impl ReconcileObject<BootstrapToken> for Reconciler {
    async fn reconcile(&self, token: &Arc<BootstrapToken>, session: &Session) -> Result<(), ReconcileError> {
        let planned = plan(token.expiry(), session.now());
        session.explain(|| planned.explain());
        match planned {
            Plan::Keep => {}
            Plan::Wait { until } => session.requeue_by(until),
            Plan::Delete(expired) => {
                let as_judged = Delete::default().at_version(&token.metadata.resource_version);
                // A conflict shows that the Secret has changed. Its event enqueues it.
                if session.delete(&**token, as_judged).await.ignore(ApiError::is_conflict)?.is_some() {
                    tracing::info!(?expired, "Deleted an expired bootstrap token");
                }
            }
        }
        Ok(())
    }
}
