//! The requests for the token of one service account.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::{ObjectKey, PartialObjectMeta, Resource};
use kcm_framework::client::{ApiClient, ApiError, Payload, Subresource, Written};
use kcm_framework::clock::Clock;
use serde_json::json;
use tokio::time::Instant;

use super::token::{NAMESPACE, Token, TokenRequest};

const SERVICE_ACCOUNTS: Resource = Resource::namespaced("", "v1", "serviceaccounts", "ServiceAccount");

/// Requests tokens of one service account, and creates the account if it does not exist.
pub(super) struct TokenRequests {
    account: ObjectKey,
    /// The client that creates service accounts and requests tokens.
    api: ApiClient,
    clock: Arc<dyn Clock>,
}

impl TokenRequests {
    pub(super) fn new(account: ObjectKey, api: ApiClient, clock: Arc<dyn Clock>) -> Self {
        Self { account, api, clock }
    }

    pub(super) const fn account(&self) -> &ObjectKey {
        &self.account
    }

    pub(super) async fn send(&self) -> Result<Token, TokenError> {
        let response = match self.post().await {
            Err(error) if error.is_not_found() => {
                self.create_account().await.map_err(TokenError::Account)?;
                match self.post().await {
                    // The account exists, so that the API for its tokens is missing.
                    Err(error) if error.is_not_found() => return Err(TokenError::NotServed(error)),
                    again => again.map_err(TokenError::of)?,
                }
            }
            requested => requested.map_err(TokenError::of)?,
        };
        let response: TokenRequest = serde_json::from_slice(&response.body).map_err(TokenError::Unreadable)?;
        response.token(Instant::now(), self.clock.now()).ok_or(TokenError::NoToken)
    }

    async fn post(&self) -> Result<Written, ApiError> {
        let body = Payload::json(&TokenRequest::new());
        self.api.post(&SERVICE_ACCOUNTS, &self.account, Subresource::Other("token"), body).await
    }

    async fn create_account(&self) -> Result<(), ApiError> {
        // Right at the first start of a cluster, its namespace may be missing too.
        let namespaces = Resource::cluster_scoped("", "v1", "namespaces", "Namespace");
        let namespace = ObjectKey::cluster_scoped(NAMESPACE);
        if self.api.get::<PartialObjectMeta>(&namespaces, &namespace).await.is_err_and(|error| error.is_not_found()) {
            let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
            is_new(self.api.create(&namespaces, None, Payload::json(&body)).await)?;
        }
        let body = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "namespace": NAMESPACE, "name": self.account.name() },
        });
        if is_new(self.api.create(&SERVICE_ACCOUNTS, Some(NAMESPACE), Payload::json(&body)).await)? {
            tracing::info!(account = %self.account, "Created a service account");
        }
        Ok(())
    }
}

/// Returns `true` if the request created its object, and `false` if another replica was first, which is not an error.
fn is_new<T>(created: Result<T, ApiError>) -> Result<bool, ApiError> {
    match created {
        Ok(_) => Ok(true),
        Err(error) if error.is_already_exists() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The error of a token request.
#[derive(Debug, thiserror::Error)]
pub(super) enum TokenError {
    #[error("the request for its token failed")]
    Api(#[source] ApiError),
    #[error(
        "the request for its token was refused: grant the manager `create` of serviceaccounts/token, or leave \
         --use-service-account-credentials off"
    )]
    Forbidden(#[source] ApiError),
    #[error(
        "the API server issues no service account tokens: check its flags --service-account-issuer and \
         --service-account-signing-key-file, or leave --use-service-account-credentials off"
    )]
    NotServed(#[source] ApiError),
    #[error("it does not exist and cannot be created: create it, or grant the manager `create` of serviceaccounts")]
    Account(#[source] ApiError),
    #[error("the response is not a TokenRequest")]
    Unreadable(#[source] serde_json::Error),
    #[error("the response has no token")]
    NoToken,
    #[error("there has been no response to the request for its token for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("the request for its token has ended without a response")]
    Ended,
}

impl TokenError {
    /// The error of a request for a token.
    fn of(error: ApiError) -> Self {
        if error.is_forbidden() { Self::Forbidden(error) } else { Self::Api(error) }
    }
}
