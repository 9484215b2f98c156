//! The order of a reconcile: observe, plan, write.

use std::sync::Arc;

use kcm_framework::client::ApiError;
use kcm_framework::informers::{Informer, Lookup};
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};

use super::apply::{LiveAccount, LiveSecret, delete_secret, fill_secret, remove_reference};
use super::key::TokenKey;
use super::plan::{RootCa, plan};
use super::secret::TokenSecret;
use super::signer::Signer;
use crate::shared::{RootCaSource, ServiceAccount};

pub(super) struct Reconciler {
    pub(super) secrets: Informer<TokenSecret>,
    pub(super) accounts: Informer<ServiceAccount>,
    pub(super) root_ca: Arc<RootCaSource>,
    pub(super) signer: Signer,
}

#[async_trait]
impl Reconcile<TokenKey> for Reconciler {
    async fn reconcile(&self, key: &TokenKey, session: &Session) -> Result<(), ReconcileError> {
        let account = self.accounts.lookup(&key.account());
        if let Lookup::Undecodable(account) = &account {
            session.requeue_when_decodable(&self.accounts.cache(), account);
            session.explain(|| format!("waits: the service account {} cannot be decoded", account.key));
            return Ok(());
        }
        let cached = account.found().filter(|account| key.names(&account.metadata.uid));
        let secret = self.secrets.get(&key.secret).filter(|secret| secret.metadata.uid == key.uid);
        match (secret, cached) {
            (None, None) => {}
            (None, Some(_)) => self.forget(key, session).await?,
            (Some(secret), Some(account)) => self.fill(&secret, &account, session).await?,
            (Some(secret), None) => {
                if let Some(account) = self.live_account(key, session).await? {
                    self.fill(&secret, &account, session).await?;
                } else {
                    let (secret, account) = (&key.secret, key.account());
                    session.explain(|| format!("deletes the secret: there is no service account {account}"));
                    tracing::info!(%secret, serviceAccount = %account, "Deleting a token without a service account");
                    delete_secret(session, key).await?;
                }
            }
        }
        Ok(())
    }
}

impl Reconciler {
    /// Reads the account that a secret names from the API server.
    async fn live_account(&self, key: &TokenKey, session: &Session) -> Result<Option<ServiceAccount>, ApiError> {
        let account = session.live::<ServiceAccount>(&key.account()).await?;
        Ok(account.filter(|account| key.names(&account.metadata.uid)))
    }

    /// Removes the reference to a deleted secret from its account.
    async fn forget(&self, key: &TokenKey, session: &Session) -> Result<(), ReconcileError> {
        let account = session.live::<LiveAccount>(&key.account()).await?;
        let of_key = account.filter(|account| key.names(&account.metadata.uid));
        if let Some(account) = of_key.filter(|account| account.references(key.secret.name())) {
            session.explain(|| format!("removes the reference of the service account {}", key.account()));
            remove_reference(session, account, key.secret.name()).await?;
        }
        Ok(())
    }

    /// Writes what the secret lacks on the API server.
    async fn fill(
        &self,
        cached: &TokenSecret,
        account: &ServiceAccount,
        session: &Session,
    ) -> Result<(), ReconcileError> {
        let root_ca = RootCa::new(self.root_ca.current().as_bytes());
        if plan(cached, &root_ca).is_none() {
            return Ok(());
        }
        let Some(live) = session.live::<LiveSecret>(&cached.metadata.key).await? else { return Ok(()) };
        if live.metadata.resource_version != cached.metadata.resource_version {
            session.explain(|| "waits: the API server has another version of the secret");
            return Ok(());
        }
        if let Some(missing) = plan(&live, &root_ca) {
            session.explain(|| if missing.token { "signs a token" } else { "completes the secret" });
            fill_secret(session, live, account, missing, &root_ca, &self.signer).await?;
        }
        Ok(())
    }
}
