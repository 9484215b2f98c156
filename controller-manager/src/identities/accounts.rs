//! The clients of service accounts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderValue, Request, Response, StatusCode};
use kcm_framework::api::ObjectKey;
use kcm_framework::client::{ApiClient, ClientProvider};
use kcm_framework::clock::Clock;
use kube::client::Body;
use parking_lot::Mutex;

use super::token::NAMESPACE;
use super::token_source::TokenSource;

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
            let account = ObjectKey::namespaced(NAMESPACE, account);
            Arc::new(TokenSource::new(account, self.api.clone(), Arc::clone(&self.clock)))
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
    if let Some(agent) = user_agent(request.headers().get(USER_AGENT), source.account().name()) {
        request.headers_mut().insert(USER_AGENT, agent);
    }
    let token = source.token().await?;
    let repetition = copy(&request);
    request.headers_mut().insert(AUTHORIZATION, token.header.clone());
    let response = client.send(request).await?;
    match repetition {
        Some(mut request) if response.status() == StatusCode::UNAUTHORIZED => {
            source.refused(&token);
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
