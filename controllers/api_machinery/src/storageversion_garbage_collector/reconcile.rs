//! The order of the reconciles: live reads of unknown Leases, plan, write.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_framework::api::{InternedStr, ObjectKey, PartialObjectMeta, views};
use kcm_framework::client::ResponseExt as _;
use kcm_framework::informers::{Index, Informer, Lookup};
use kcm_framework::workqueue::{Priority, Queue};
use kcm_framework::{Delete, Reconcile, ReconcileError, ReconcileObject, Session, async_trait};

use super::plan::{Plan, can_name_a_lease, is_identity, lease_key, plan};
use super::view::StorageVersion;

/// Reconciles deleted Leases: enqueues the storage versions that name them.
pub(super) struct LeaseReconciler {
    pub(super) of_server: Index<StorageVersion, InternedStr>,
    pub(super) queue: Queue<ObjectKey>,
}

#[async_trait]
impl Reconcile for LeaseReconciler {
    async fn reconcile(&self, lease: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let named_by = self.of_server.get(lease.name());
        session.explain(|| format!("{} storage versions name the API server, whose Lease is deleted", named_by.len()));
        for storage_version in named_by {
            self.queue.add(storage_version.metadata.key.clone(), Priority::Live);
        }
        Ok(())
    }
}

/// Reconciles storage versions.
pub(super) struct Reconciler {
    pub(super) leases: Informer<PartialObjectMeta>,
}

#[async_trait]
impl ReconcileObject<StorageVersion> for Reconciler {
    async fn reconcile(&self, object: &Arc<StorageVersion>, session: &Session) -> Result<(), ReconcileError> {
        let mut gone = BTreeSet::new();
        for server in object.servers() {
            if self.is_gone(&server, session).await? {
                gone.insert(server);
            }
        }
        let planned = plan(object, &gone, session.now())?;
        session.explain(|| planned.explain(&gone));
        match planned {
            Plan::Keep | Plan::Terminating => {}
            Plan::Delete => {
                let as_judged = Delete::default().at_version(&object.metadata.resource_version);
                session.delete(&**object, as_judged).await?;
                tracing::info!(?gone, "Deleted a storage version without API servers");
            }
            Plan::Update { document, .. } => {
                if session.update_status(&**object, &document).await.ignore_not_found()?.is_some() {
                    tracing::info!(?gone, "Removed the entries of API servers that do not exist");
                }
            }
        }
        Ok(())
    }
}

impl Reconciler {
    /// Returns `true` if an API server has no identity Lease, which a live read must have shown.
    async fn is_gone(&self, server: &str, session: &Session) -> Result<bool, ReconcileError> {
        if !can_name_a_lease(server) {
            return Ok(true);
        }
        let key = lease_key(server);
        match self.leases.lookup(&key) {
            Lookup::Found(_) | Lookup::Undecodable(_) => Ok(false),
            Lookup::Absent => {
                let live = session.live_meta::<views::Lease>(&key).await?;
                Ok(!is_identity(live.as_ref().map(|lease| &lease.metadata)))
            }
        }
    }
}
