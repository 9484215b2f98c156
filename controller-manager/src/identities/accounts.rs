//! The clients of service accounts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderValue, Request, Response, StatusCode};
use kcm_framework::api::{ObjectKey, PartialObjectMeta, Resource};
use kcm_framework::client::{ApiClient, ApiError, ClientProvider, CredentialsError, Payload, Subresource, Written};
use kcm_framework::clock::Clock;
use kcm_framework::error_chain;
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

/// The longest time for which requests fail without another request for a token.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

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
    sources: Sources,
}

/// The token sources of the accounts that have sent a request.
type Sources = Arc<Mutex<BTreeMap<String, Arc<TokenSource>>>>;

/// The readiness check of the tokens: it fails while a service account that needs a token has none.
#[derive(Clone)]
pub(crate) struct TokenHealth {
    sources: Sources,
}

impl TokenHealth {
    /// The name of the check.
    pub(crate) const NAME: &str = "service-account-tokens";

    /// Checks all accounts now.
    ///
    /// # Errors
    /// The accounts without a token, each with the reason.
    pub(crate) fn check(&self) -> Result<(), String> {
        let sources = self.sources.lock();
        let problems: Vec<String> = sources.values().filter_map(|source| source.problem()).collect();
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }
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
        Self { manager, anonymous, accounts, api, clock, sources: Sources::default() }
    }

    /// The readiness check of the tokens.
    pub(crate) fn health(&self) -> TokenHealth {
        TokenHealth { sources: Arc::clone(&self.sources) }
    }

    fn source(&self, account: &str) -> Arc<TokenSource> {
        let mut sources = self.sources.lock();
        let source = sources.entry(account.to_owned()).or_insert_with(|| {
            Arc::new(TokenSource {
                account: ObjectKey::namespaced(NAMESPACE, account),
                api: self.api.clone(),
                clock: Arc::clone(&self.clock),
                token: tokio::sync::Mutex::new(None),
                refusal: Mutex::new(None),
            })
        });
        Arc::clone(source)
    }
}

/// Adds the token of any account that has one, because the API server may refuse anonymous requests.
fn authorize(sources: &Sources, request: &mut Request<Body>) {
    let header = sources.lock().values().find_map(|source| source.held());
    if let Some(header) = header {
        request.headers_mut().insert(AUTHORIZATION, header);
    }
}

impl ClientProvider for ServiceAccounts {
    fn is_separate(&self, identity: &str) -> bool {
        self.accounts.contains(identity)
    }

    fn separate_probe(&self) -> Option<kube::Client> {
        let (sources, client) = (Arc::clone(&self.sources), self.anonymous.clone());
        let default_namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |mut request: Request<Body>| {
            authorize(&sources, &mut request);
            let client = client.clone();
            async move { client.send(request).await }
        });
        Some(kube::Client::new(service, default_namespace))
    }

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

/// Returns the User-Agent of a service account, with the whole user name in place of the controller's name.
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
    /// `Some` while there is no token because the last round of requests failed.
    refusal: Mutex<Option<Refusal>>,
}

/// Rounds of requests for a token that failed, one after another.
#[derive(Debug, Clone)]
struct Refusal {
    rounds: u32,
    /// Before when no other round begins.
    until: Instant,
    error: Arc<TokenError>,
}

impl TokenSource {
    async fn token(&self) -> Result<Token, CredentialsError> {
        let rounds_before = self.rounds();
        let mut held = self.token.lock().await;
        if let Some(token) = held.as_ref().filter(|token| Instant::now() < token.renew_at) {
            return Ok(token.clone());
        }
        let refusal = self.refusal.lock().clone();
        if let Some(Refusal { rounds, until, error }) = &refusal
            && (*rounds > rounds_before || Instant::now() < *until)
        {
            return Err(CredentialsError::new(Arc::clone(error)));
        }
        // After a round that failed, one request shows whether the next would fail too.
        let mut pauses = if refusal.is_none() { PAUSES.as_slice() } else { &[] }.iter();
        loop {
            match self.request().await {
                Ok(token) => {
                    tracing::debug!(account = %self.account, "Requested a token");
                    *self.refusal.lock() = None;
                    return Ok(held.insert(token).clone());
                }
                Err(error) => {
                    tracing::warn!(
                        account = %self.account, error = &error as &(dyn std::error::Error + 'static),
                        "Cannot get a service account token"
                    );
                    let now = Instant::now();
                    if let Some(token) = held.as_mut().filter(|token| now < token.expires_at) {
                        token.renew_at = now + RENEWAL_PAUSE;
                        return Ok(token.clone());
                    }
                    if let Some(pause) = pauses.next() {
                        sleep(*pause).await;
                        continue;
                    }
                    let (rounds, error) =
                        (refusal.map_or(1, |refusal| refusal.rounds.saturating_add(1)), Arc::new(error));
                    let until = now + pause_after(rounds);
                    *self.refusal.lock() = Some(Refusal { rounds, until, error: Arc::clone(&error) });
                    return Err(CredentialsError::new(error));
                }
            }
        }
    }

    /// The header of the token, if there is one and nobody requests another now.
    fn held(&self) -> Option<HeaderValue> {
        Some(self.token.try_lock().ok()?.as_ref()?.header.clone())
    }

    /// Number of rounds in a row that have failed.
    fn rounds(&self) -> u32 {
        self.refusal.lock().as_ref().map_or(0, |refusal| refusal.rounds)
    }

    /// Returns the reason why the account has no token.
    fn problem(&self) -> Option<String> {
        let refusal = self.refusal.lock();
        let error = &refusal.as_ref()?.error;
        Some(format!("the service account {} has no token: {}", self.account, error_chain(&**error)))
    }

    /// Drops a token that the API server has refused, unless there is a newer one.
    async fn refused(&self, token: &Token) {
        self.token.lock().await.take_if(|held| held.header == token.header);
    }

    async fn request(&self) -> Result<Token, TokenError> {
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
enum TokenError {
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
}

impl TokenError {
    /// The error of a request for a token.
    fn of(error: ApiError) -> Self {
        if error.is_forbidden() { Self::Forbidden(error) } else { Self::Api(error) }
    }
}

/// Returns the time for which requests fail at once after a number of failed rounds of token requests. The first round
/// may have been too early. After that, the time doubles from a second to a minute.
fn pause_after(rounds: u32) -> Duration {
    match rounds.checked_sub(2) {
        None => Duration::ZERO,
        Some(doubled) => Duration::from_secs(1 << doubled.min(6)).min(LONGEST_PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_between_rounds_double_up_to_a_minute() {
        for (rounds, seconds) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (7, 32), (8, 60), (u32::MAX, 60)] {
            assert_eq!(pause_after(rounds), Duration::from_secs(seconds), "{rounds}");
        }
    }
}
