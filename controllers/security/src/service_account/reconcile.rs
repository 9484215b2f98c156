//! One reconcile of a namespace.

use kcm_api::views::Namespace;
use kcm_api::{KnownView as _, ObjectKey};
use kcm_framework::client::Payload;
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};
use kcm_informers::Informer;
use serde_json::json;

use super::ACCOUNT;
use super::plan::is_wanted;
use crate::shared::ServiceAccount;

/// The reconciler.
pub(super) struct Reconciler {
    pub(super) namespaces: Informer<Namespace>,
    pub(super) accounts: Informer<ServiceAccount>,
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, namespace: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let account = ObjectKey::namespaced(namespace.name(), ACCOUNT);
        // One that cannot be decoded is there.
        let has_account = self.accounts.get(&account).is_some() || self.accounts.undecodable(&account).is_some();
        if is_wanted(self.namespaces.get(namespace).as_deref(), has_account) {
            session.explain(|| "creates the service account default");
            create(session, &account).await?;
        }
        Ok(())
    }
}

/// Creates the account. That another was first, or that the namespace is terminating by now, is no failure.
async fn create(session: &Session, key: &ObjectKey) -> Result<(), ReconcileError> {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "namespace": key.namespace(), "name": key.name() },
    });
    match session.raw_create(const { &ServiceAccount::RESOURCE }, key, Payload::json(&account)).await {
        Err(error) if error.is_already_exists() || error.is_namespace_terminating() => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}
