//! The order of a reconcile: plan, update.

use std::sync::Arc;

use kcm_framework::api::views::PersistentVolume;
use kcm_framework::client::ResponseExt as _;
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::plan::{FINALIZER, explain, plan};
use crate::shared::protection::protected;

pub(super) struct Reconciler;

#[async_trait]
impl ReconcileObject<PersistentVolume> for Reconciler {
    async fn reconcile(&self, volume: &Arc<PersistentVolume>, session: &Session) -> Result<(), ReconcileError> {
        let protection = plan(volume);
        session.explain(|| explain(protection));
        let Some(changed) = protected(&volume.document, &volume.metadata, FINALIZER, protection)? else {
            return Ok(());
        };
        if session.update(&**volume, &changed).await.ignore_not_found()?.is_some() {
            tracing::info!(?protection, "Changed the protection of a volume");
        }
        Ok(())
    }
}
