//! The order of a reconcile: plan, update.

use std::sync::Arc;

use kcm_framework::api::InternedStr;
use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};
use kcm_framework::client::ResponseExt as _;
use kcm_framework::informers::{Index, Informer};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::plan::{FINALIZER, explain, plan};
use super::view::VolumeAttributesClass;
use crate::shared::protection::{Protection, protected};

pub(super) struct Reconciler {
    pub(super) claims: Informer<PersistentVolumeClaim>,
    pub(super) claims_of_class: Index<PersistentVolumeClaim, InternedStr>,
    pub(super) volumes: Informer<PersistentVolume>,
    pub(super) volumes_of_class: Index<PersistentVolume, InternedStr>,
}

#[async_trait]
impl ReconcileObject<VolumeAttributesClass> for Reconciler {
    async fn reconcile(&self, class: &Arc<VolumeAttributesClass>, session: &Session) -> Result<(), ReconcileError> {
        let protection = plan(class, || self.is_used(class.metadata.key.name()));
        if protection == Protection::Remove && self.waits_for_undecodable(session) {
            return Ok(());
        }
        session.explain(|| explain(protection));
        let Some(changed) = protected(&class.document, &class.metadata, FINALIZER, protection)? else { return Ok(()) };
        if session.update(&**class, &changed).await.ignore_not_found()?.is_some() {
            tracing::info!(?protection, "Changed the protection of a volume attributes class");
        }
        Ok(())
    }
}

impl Reconciler {
    fn is_used(&self, class: &str) -> bool {
        self.claims_of_class.count(class) > 0 || self.volumes_of_class.count(class) > 0
    }

    /// Returns `true` if an object that cannot be decoded may name the class. Its change reconciles the class again.
    fn waits_for_undecodable(&self, session: &Session) -> bool {
        let caches = [
            (self.claims.cache(), self.claims.undecodable_objects()),
            (self.volumes.cache(), self.volumes.undecodable_objects()),
        ];
        for (cache, objects) in caches {
            let Some(object) = objects.first() else { continue };
            session.requeue_when_decodable(&cache, object);
            session.explain(|| format!("keeps the finalizer: {} cannot be decoded and may name the class", object.key));
            return true;
        }
        false
    }
}
