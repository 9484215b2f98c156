//! The requests, and the documents that they put.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kcm_api::{Documented, EditError, KnownView as _, ObjectKey, Resource};
use kcm_framework::client::{ApiError, DeleteOptions, Subresource};
use kcm_framework::{Class, ReconcileError, Session};
use serde::Deserialize;

use super::claims::Claims;
use super::key::TokenKey;
use super::plan::{Missing, RootCa};
use super::secret::{ACCOUNT_NAME, ACCOUNT_UID, CA_KEY, NAMESPACE_KEY, TOKEN_KEY, TokenSecret};
use super::signer::{SignError, Signer};
use crate::shared::ServiceAccount;

/// A secret with its document. It holds the token: it is neither kept nor logged.
pub(super) type LiveSecret = Documented<TokenSecret>;

/// An account with its document.
pub(super) type LiveAccount = Documented<ServiceAccount>;

const SECRETS: &Resource = &TokenSecret::RESOURCE;
const ACCOUNTS: &Resource = &ServiceAccount::RESOURCE;

/// Why a secret or an account could not be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    /// A request failed.
    #[error("cannot update the object")]
    Request(#[from] ApiError),
    /// The object is not what the API server should send.
    #[error("cannot edit the object")]
    Edit(#[from] EditError),
    /// No token could be made.
    #[error("cannot make a token")]
    Sign(#[from] SignError),
}

impl From<WriteError> for ReconcileError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Request(error) => error.into(),
            WriteError::Edit(_) | WriteError::Sign(_) => Self::new(Class::Terminal, error),
        }
    }
}

/// Reads a secret; absent if it does not exist.
pub(super) async fn read_secret(session: &Session, key: &ObjectKey) -> Result<Option<LiveSecret>, ApiError> {
    found(session.api().get(SECRETS, key).await)
}

/// Reads an account; absent if it does not exist.
pub(super) async fn read_account(session: &Session, key: &ObjectKey) -> Result<Option<LiveAccount>, ApiError> {
    found(session.api().get(ACCOUNTS, key).await)
}

fn found<T>(read: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match read {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Deletes a secret. That it was deleted or recreated meanwhile is no failure.
pub(super) async fn delete_secret(session: &Session, key: &TokenKey) -> Result<(), ApiError> {
    let options = DeleteOptions::of_uid(key.uid.clone());
    match session.raw_delete(SECRETS, &key.secret, &key.uid, &options).await {
        Err(error) if error.is_conflict() => Ok(()),
        deleted => deleted.map(drop),
    }
}

/// Writes what a secret lacks. That it was deleted or changed meanwhile is no failure: the event of that follows.
pub(super) async fn fill_secret(
    session: &Session,
    mut secret: LiveSecret,
    account: &ServiceAccount,
    missing: Missing,
    root_ca: &RootCa,
    signer: &Signer,
) -> Result<(), WriteError> {
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
        let token = signer.sign(&Claims::of(&account.key, &account.uid, key.name()))?;
        document.set(&["data", TOKEN_KEY], &STANDARD.encode(token))?;
    }
    document.set(&["metadata", "annotations", ACCOUNT_NAME], account.key.name())?;
    document.set(&["metadata", "annotations", ACCOUNT_UID], &account.uid)?;
    match session.put_document(SECRETS, &key, Subresource::None, document).await {
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(()),
        written => Ok(written.map(drop)?),
    }
}

/// Removes the reference to a secret from an account. That the account was deleted meanwhile is no failure.
pub(super) async fn remove_reference(
    session: &Session,
    mut account: LiveAccount,
    secret: &str,
) -> Result<(), WriteError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Reference {
        name: String,
    }
    let items = account.document.items(&["secrets"])?;
    let is_other = |json: &&serde_json::value::RawValue| {
        serde_json::from_str::<Reference>(json.get()).map_or(true, |reference| reference.name != secret)
    };
    let others: Vec<Box<serde_json::value::RawValue>> =
        items.into_iter().filter(is_other).map(ToOwned::to_owned).collect();
    if others.is_empty() {
        account.document.remove(&["secrets"])?;
    } else {
        account.document.set(&["secrets"], &others)?;
    }
    let key = account.metadata.key.clone();
    match session.put_document(ACCOUNTS, &key, Subresource::None, &account.document).await {
        Err(error) if error.is_not_found() => Ok(()),
        written => Ok(written.map(drop)?),
    }
}
