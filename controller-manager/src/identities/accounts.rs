//! The clients of service accounts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderValue, Request, Response, StatusCode};
use kcm_framework::api::{ObjectKey, PartialObjectMeta, Resource};
use kcm_framework::client::{ApiClient, ApiError, ClientProvider, CredentialsError, Payload, Subresource};
use kcm_framework::clock::Clock;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::token::{Token, TokenRequest};

const SERVICE_ACCOUNTS: Resource = Resource::namespaced("", "v1", "serviceaccounts", "ServiceAccount");

/// The namespace of the service accounts of controllers.
const NAMESPACE: &str = "kube-system";

/// The delays before a token is requested again; a request that needs it fails after the last.
const PAUSES: [Duration; 3] = [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];

/// The delay before a token that still holds is renewed again.
const RENEWAL_PAUSE: Duration = Duration::from_secs(10);

/// A [`ClientProvider`] whose clients act as the service accounts of controllers, and as the manager for every other
/// identity.
pub(crate) struct ServiceAccounts {
    /// The client with the manager's own credentials.
    manager: kube::Client,
    /// The same API server over connections without credentials.
    anonymous: kube::Client,
    /// The names of the service accounts.
    accounts: BTreeSet<String>,
    /// The client that creates service accounts and requests tokens.
    api: ApiClient,
    clock: Arc<dyn Clock>,
    sources: Mutex<BTreeMap<String, Arc<TokenSource>>>,
}

impl ServiceAccounts {
    /// The clients of `accounts`, whose tokens `api` requests.
    pub(crate) fn new(
        manager: kube::Client,
        anonymous: kube::Client,
        accounts: impl IntoIterator<Item = String>,
        api: ApiClient,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let accounts = accounts.into_iter().collect();
        Self { manager, anonymous, accounts, api, clock, sources: Mutex::default() }
    }

    fn source(&self, account: &str) -> Arc<TokenSource> {
        let mut sources = self.sources.lock();
        let source = sources.entry(account.to_owned()).or_insert_with(|| {
            Arc::new(TokenSource {
                account: ObjectKey::namespaced(NAMESPACE, account),
                api: self.api.clone(),
                clock: Arc::clone(&self.clock),
                token: tokio::sync::Mutex::new(None),
            })
        });
        Arc::clone(source)
    }
}

impl ClientProvider for ServiceAccounts {
    fn client_for(&self, identity: &str) -> kube::Client {
        if !self.accounts.contains(identity) {
            return self.manager.clone();
        }
        let (source, client) = (self.source(identity), self.anonymous.clone());
        let default_namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (source, client) = (Arc::clone(&source), client.clone());
            async move { send(&client, &source, request).await }
        });
        kube::Client::new(service, default_namespace)
    }
}

async fn send(
    client: &kube::Client,
    source: &TokenSource,
    mut request: Request<Body>,
) -> Result<Response<Body>, kcm_framework::BoxError> {
    if let Some(agent) = user_agent(request.headers().get(USER_AGENT), source.account.name()) {
        request.headers_mut().insert(USER_AGENT, agent);
    }
    let token = source.token().await?;
    let repetition = copy(&request);
    request.headers_mut().insert(AUTHORIZATION, token.header.clone());
    let response = client.send(request).await?;
    match repetition {
        Some(mut request) if response.status() == StatusCode::UNAUTHORIZED => {
            source.refused(&token).await;
            let token = source.token().await?;
            request.headers_mut().insert(AUTHORIZATION, token.header);
            Ok(client.send(request).await?)
        }
        Some(_) | None => Ok(response),
    }
}

/// The User-Agent of a service account: its whole user name stands where the name of the controller would.
///
/// # Upstream
/// `constructClient` in `controller-manager/pkg/clientbuilder`.
fn user_agent(agent: Option<&HeaderValue>, account: &str) -> Option<HeaderValue> {
    let prefix = agent?.to_str().ok()?.strip_suffix(account)?;
    HeaderValue::try_from(format!("{prefix}system:serviceaccount:{NAMESPACE}:{account}")).ok()
}

/// A copy of a request, for a repetition; absent if its body is a stream.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let body = request.body().try_clone()?;
    let mut copy = Request::new(body);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    // Among them is the fence of a write.
    *copy.extensions_mut() = request.extensions().clone();
    // A write passes its fence again, whichever copy is sent.
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

/// The token of one service account.
struct TokenSource {
    account: ObjectKey,
    api: ApiClient,
    clock: Arc<dyn Clock>,
    /// Held while a token is requested, so that one request serves all that wait for it.
    token: tokio::sync::Mutex<Option<Token>>,
}

impl TokenSource {
    async fn token(&self) -> Result<Token, CredentialsError> {
        let mut held = self.token.lock().await;
        if let Some(token) = held.as_ref().filter(|token| Instant::now() < token.renew_at) {
            return Ok(token.clone());
        }
        let mut pauses = PAUSES.into_iter();
        loop {
            match self.request().await {
                Ok(token) => {
                    tracing::debug!(account = %self.account, "Requested a token");
                    return Ok(held.insert(token).clone());
                }
                Err(error) => {
                    tracing::warn!(
                        account = %self.account, error = &error as &(dyn std::error::Error + 'static),
                        "Cannot get a token of a service account"
                    );
                    let now = Instant::now();
                    if let Some(token) = held.as_mut().filter(|token| now < token.expires_at) {
                        token.renew_at = now + RENEWAL_PAUSE;
                        return Ok(token.clone());
                    }
                    match pauses.next() {
                        Some(pause) => sleep(pause).await,
                        None => return Err(CredentialsError::new(error)),
                    }
                }
            }
        }
    }

    /// Drops a token that the API server has refused, unless there is a newer one.
    async fn refused(&self, token: &Token) {
        self.token.lock().await.take_if(|held| held.header == token.header);
    }

    async fn request(&self) -> Result<Token, TokenError> {
        let body = Payload::json(&TokenRequest::new());
        let requested =
            self.api.post(&SERVICE_ACCOUNTS, &self.account, Subresource::Other("token"), body.clone()).await;
        let response = match requested {
            Err(error) if error.is_not_found() => {
                self.create_account().await?;
                self.api.post(&SERVICE_ACCOUNTS, &self.account, Subresource::Other("token"), body).await?
            }
            requested => requested?,
        };
        let response: TokenRequest = serde_json::from_slice(&response.body).map_err(TokenError::Unreadable)?;
        response.token(Instant::now(), self.clock.now()).ok_or(TokenError::NoToken)
    }

    async fn create_account(&self) -> Result<(), ApiError> {
        // Right at the first start of a cluster, its namespace may be missing too.
        let namespaces = Resource::cluster_scoped("", "v1", "namespaces", "Namespace");
        let namespace = ObjectKey::cluster_scoped(NAMESPACE);
        if self.api.get::<PartialObjectMeta>(&namespaces, &namespace).await.is_err_and(|error| error.is_not_found()) {
            let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
            settled(self.api.create(&namespaces, None, Payload::json(&body)).await)?;
        }
        let body = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "namespace": NAMESPACE, "name": self.account.name() },
        });
        settled(self.api.create(&SERVICE_ACCOUNTS, Some(NAMESPACE), Payload::json(&body)).await)?;
        tracing::info!(account = %self.account, "Created a service account");
        Ok(())
    }
}

/// A creation that found its object there is a success: another replica was first.
fn settled<T>(created: Result<T, ApiError>) -> Result<(), ApiError> {
    match created {
        Err(error) if !error.is_already_exists() => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The error of a token request.
#[derive(Debug, thiserror::Error)]
enum TokenError {
    #[error("the request failed")]
    Api(#[from] ApiError),
    #[error("the response is not a TokenRequest")]
    Unreadable(#[source] serde_json::Error),
    #[error("the response has no token")]
    NoToken,
}
