//! Clients by identity over one connection pool.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderValue, Request, Response};
use kcm_informers::Connection;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::api_client::ApiClient;
use super::client_identity::{ClientIdentity, UserAgent};
use super::client_provider::ClientProvider;
use super::fence::Fence;
use super::metrics::{ClientMetrics, NoMetrics};
use super::rate_limiter::{Limits, RateLimiter};
use super::transport::is_watch;
use super::warnings::Warnings;

/// A builder of one client per identity, all over one connection pool.
///
/// # Upstream
/// The client builders of client-go: each identity has its own User-Agent and its own rate limiter. Here a second client
/// of an identity shares the rate limiter of the first. Credentials are up to the [`ClientProvider`].
#[derive(Clone)]
pub struct ClientBuilder {
    shared: Arc<SharedClients>,
}

struct SharedClients {
    provider: Box<dyn ClientProvider>,
    user_agent: UserAgent,
    fence: Fence,
    connection: Connection,
    warnings: Arc<Warnings>,
    metrics: Arc<dyn ClientMetrics>,
    identities: Mutex<Identities>,
}

/// The identities that have clients, and the limits of each.
struct Identities {
    limits: Limits,
    by_name: BTreeMap<String, Arc<ClientIdentity>>,
}

impl ClientBuilder {
    /// The identity of the manager itself, for reads that no controller may make.
    pub const MANAGER: &str = "kube-controller-manager";

    /// The identity of the shared caches.
    ///
    /// # Upstream
    /// The client of the shared informer factory has that name.
    pub const SHARED_INFORMERS: &str = "shared-informers";

    /// The identity of the probe of an API server that may be unreachable: no other request uses up its rate limit.
    pub const PROBE: &str = "connection-probe";

    /// A builder whose clients send through those of `provider`, each within `limits`.
    #[must_use]
    pub fn new(provider: impl ClientProvider, user_agent: UserAgent, limits: Limits) -> Self {
        Self::with_metrics(provider, user_agent, limits, Arc::new(NoMetrics))
    }

    /// As [`new`](Self::new), with requests counted in `metrics`.
    #[must_use]
    pub fn with_metrics(
        provider: impl ClientProvider,
        user_agent: UserAgent,
        limits: Limits,
        metrics: Arc<dyn ClientMetrics>,
    ) -> Self {
        Self::over_connection(Connection::unmonitored(), provider, user_agent, limits, metrics)
    }

    /// As [`with_metrics`](Self::with_metrics), over a connection whose monitor is notified of failures that may be an
    /// outage.
    #[must_use]
    pub fn over_connection(
        connection: Connection,
        provider: impl ClientProvider,
        user_agent: UserAgent,
        limits: Limits,
        metrics: Arc<dyn ClientMetrics>,
    ) -> Self {
        let shared = SharedClients {
            provider: Box::new(provider),
            user_agent,
            fence: Fence::default(),
            connection,
            warnings: Arc::default(),
            metrics,
            identities: Mutex::new(Identities { limits, by_name: BTreeMap::new() }),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Changes the limits of every identity from now on; a request that waits already keeps its turn.
    pub fn set_limits(&self, limits: Limits) {
        let mut identities = self.shared.identities.lock();
        identities.limits = limits;
        for identity in identities.by_name.values() {
            identity.rate_limiter.set_limits(limits);
        }
    }

    /// The fence that all writes of these clients pass.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.shared.fence
    }

    /// The connection that all these clients share.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.shared.connection
    }

    /// The client through which a controller writes and lists.
    ///
    /// # Panics
    /// If the identity is not valid in a header; names of controllers always are.
    #[must_use]
    pub fn client_for(&self, identity: &str) -> ApiClient {
        ApiClient::new(self.shared.provider.client_for(identity), self.identity(identity))
    }

    /// A kube client of that identity, for informers. Its requests carry the same User-Agent and rate limit; watches
    /// are not limited.
    ///
    /// # Panics
    /// As [`client_for`](Self::client_for), and outside of a tokio runtime.
    #[must_use]
    pub fn kube_client_for(&self, identity: &str) -> kube::Client {
        let client = self.shared.provider.client_for(identity);
        let identity = self.identity(identity);
        let default_namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |request| {
            let (client, identity) = (client.clone(), Arc::clone(&identity));
            async move { send_as(&client, &identity, request).await }
        });
        kube::Client::new(service, default_namespace)
    }

    fn identity(&self, name: &str) -> Arc<ClientIdentity> {
        let shared = &self.shared;
        let mut identities = shared.identities.lock();
        if let Some(identity) = identities.by_name.get(name) {
            return Arc::clone(identity);
        }
        let user_agent =
            HeaderValue::from_str(&shared.user_agent.of(name)).expect("the name of an identity is plain text");
        let identity = Arc::new(ClientIdentity {
            user_agent,
            rate_limiter: RateLimiter::new(identities.limits),
            fence: shared.fence.clone(),
            connection: shared.connection.clone(),
            warnings: Arc::clone(&shared.warnings),
            metrics: Arc::clone(&shared.metrics),
        });
        identities.by_name.insert(name.to_owned(), Arc::clone(&identity));
        identity
    }
}

async fn send_as(
    client: &kube::Client,
    identity: &ClientIdentity,
    mut request: Request<Body>,
) -> Result<Response<Body>, kube::Error> {
    let method = request.method().clone();
    // As upstream: a watch is one long request, and the reflector backs off its restarts.
    if !is_watch(request.uri()) {
        identity.wait(method.as_str()).await;
    }
    identity.sign(request.headers_mut());
    // Its caller sets the deadline of such a request.
    identity.fence.limit(&method, Instant::now()).map_err(|fenced| kube::Error::Service(fenced.into()))?;
    let started = Instant::now();
    let answer = client.send(request).await;
    identity.observe(method.as_str(), started, answer.as_ref().ok(), false);
    answer
}
