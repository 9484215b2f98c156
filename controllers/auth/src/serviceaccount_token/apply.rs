//! The requests, and the documents that they carry.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kcm_framework::api::Documented;
use kcm_framework::client::{ApiError, ResponseExt as _};
use kcm_framework::{Delete, ReconcileError, Session};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::claims::Claims;
use super::key::TokenKey;
use super::plan::{Missing, RootCa};
use super::secret::{ACCOUNT_NAME, ACCOUNT_UID, CA_KEY, NAMESPACE_KEY, TOKEN_KEY, TokenSecret};
use super::signer::Signer;
use crate::shared::ServiceAccount;

/// A secret with its document. It holds the token: it is neither kept nor logged.
pub(super) type LiveSecret = Documented<TokenSecret>;

/// An account with its document.
pub(super) type LiveAccount = Documented<ServiceAccount>;

/// Deletes a secret. It is no error if it was deleted or recreated meanwhile.
pub(super) async fn delete_secret(session: &Session, key: &TokenKey) -> Result<(), ApiError> {
    let deleted = session.delete_named::<TokenSecret>(&key.secret, &key.uid, Delete::default()).await;
    deleted.ignore(ApiError::is_other_object).map(drop)
}

/// Writes what a secret lacks. It is no error if it was deleted or changed meanwhile: an event follows.
pub(super) async fn fill_secret(
    session: &Session,
    mut secret: LiveSecret,
    account: &ServiceAccount,
    missing: Missing,
    root_ca: &RootCa,
    signer: &Signer,
) -> Result<(), ReconcileError> {
    let key = secret.metadata.key.clone();
    let account = &account.metadata;
    let document = &mut secret.document;
    if missing.ca {
        document.set(&["data", CA_KEY], root_ca.base64())?;
    }
    if missing.namespace {
        document.set(&["data", NAMESPACE_KEY], &STANDARD.encode(key.namespace().unwrap_or_default()))?;
    }
    if missing.token {
        let token =
            signer.sign(&Claims::of(&account.key, &account.uid, key.name())).map_err(ReconcileError::terminal)?;
        document.set(&["data", TOKEN_KEY], &STANDARD.encode(token))?;
    }
    document.set(&["metadata", "annotations", ACCOUNT_NAME], account.key.name())?;
    document.set(&["metadata", "annotations", ACCOUNT_UID], &account.uid)?;
    let updated = session.update(&secret, &secret.document).await;
    updated.ignore(|error| error.is_conflict() || error.is_not_found())?;
    Ok(())
}

/// Removes the reference to a secret from an account. It is no error if the account was deleted meanwhile.
pub(super) async fn remove_reference(
    session: &Session,
    mut account: LiveAccount,
    secret: &str,
) -> Result<(), ReconcileError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Reference {
        name: String,
    }
    let items = account.document.items(&["secrets"])?;
    let is_other = |json: &&RawValue| {
        serde_json::from_str::<Reference>(json.get()).map_or(true, |reference| reference.name != secret)
    };
    let others: Vec<Box<RawValue>> = items.into_iter().filter(is_other).map(ToOwned::to_owned).collect();
    if others.is_empty() {
        account.document.remove(&["secrets"])?;
    } else {
        account.document.set(&["secrets"], &others)?;
    }
    session.update(&account, &account.document).await.ignore_not_found()?;
    Ok(())
}
