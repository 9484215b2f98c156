//! The order of a reconcile: plan, create.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::Namespace;
use kcm_framework::client::{Payload, ResponseExt as _};
use kcm_framework::informers::{Informer, Lookup};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};
use serde_json::json;

use super::ACCOUNT;
use super::plan::is_wanted;
use crate::shared::ServiceAccount;

pub(super) struct Reconciler {
    pub(super) accounts: Informer<ServiceAccount>,
}

#[async_trait]
impl ReconcileObject<Namespace> for Reconciler {
    async fn reconcile(&self, namespace: &Arc<Namespace>, session: &Session) -> Result<(), ReconcileError> {
        let account = ObjectKey::namespaced(namespace.metadata.key.name(), ACCOUNT);
        let existing = self.accounts.lookup(&account);
        if let Lookup::Undecodable(account) = &existing {
            session.requeue_when_decodable(&self.accounts.cache(), account);
        }
        let has_account = !existing.is_absent();
        if is_wanted(namespace, has_account) {
            session.explain(|| "creates the service account default");
            create(session, &account).await?;
        }
        Ok(())
    }
}

/// Creates the account. It is no error if another client created it first or the namespace is terminating.
async fn create(session: &Session, key: &ObjectKey) -> Result<(), ReconcileError> {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "namespace": key.namespace(), "name": key.name() },
    });
    let created = session.create::<ServiceAccount>(key, Payload::json(&account)).await;
    created.ignore(|error| error.is_already_exists() || error.is_namespace_terminating())?;
    Ok(())
}
