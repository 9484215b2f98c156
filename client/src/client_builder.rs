//! Clients by identity over one connection pool.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::{ACCEPT, HeaderMap};
use http::{HeaderValue, Request, Response};
use kcm_informers::Connection;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::api_client::ApiClient;
use super::client_identity::{ClientIdentity, UserAgent};
use super::client_limits::ClientLimits;
use super::client_provider::ClientProvider;
use super::counted_body::CountedBody;
use super::fence::Fence;
use super::metrics::{ClientMetrics, NoMetrics};
use super::rate_limiter::{Limits, RateLimiter};
use super::request::WriteRecord;
use super::transport::is_watch;
use super::warnings::Warnings;

/// A builder of clients by identity, all over one connection pool.
///
/// Each identity has a User-Agent. Credentials are up to the [`ClientProvider`].
///
/// # Rate limits
/// Clients of [`client_for`](Self::client_for) share the rate limiter of the identity. Clients of
/// [`named_client_for`](Self::named_client_for) share a rate limiter per name.
///
/// # Upstream
/// The client builders of `k8s.io/controller-manager`, which give each new client its own rate limiter.
#[derive(Clone)]
pub struct ClientBuilder {
    shared: Arc<SharedClients>,
}

struct SharedClients {
    provider: Box<dyn ClientProvider>,
    user_agent: UserAgent,
    fence: Fence,
    writes: WriteRecord,
    connection: Connection,
    /// The connection of the identities whose connections are separate.
    separate: Option<Connection>,
    warnings: Arc<Warnings>,
    metrics: Arc<dyn ClientMetrics>,
    identities: Mutex<Identities>,
}

impl SharedClients {
    fn connection_of(&self, identity: &str) -> &Connection {
        self.separate.as_ref().filter(|_| self.provider.is_separate(identity)).unwrap_or(&self.connection)
    }
}

/// The clients there are, and the limits of the settings.
struct Identities {
    limits: Limits,
    by_key: BTreeMap<ClientKey, Arc<ClientIdentity>>,
    /// Fences of controllers that have their own.
    fences: BTreeMap<String, Fence>,
}

/// Key that distinguishes clients.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ClientKey {
    identity: String,
    /// Empty for the client that all of the identity share.
    name: String,
    limits: ClientLimits,
}

impl ClientBuilder {
    /// The identity of the manager itself, for reads that no controller may make.
    pub const MANAGER: &str = "kube-controller-manager";

    /// The identity of the shared caches.
    ///
    /// # Upstream
    /// The client of the shared informer factory has that name.
    pub const SHARED_INFORMERS: &str = "shared-informers";

    /// The identity of the caches that hold metadata alone.
    ///
    /// # Upstream
    /// The client of the metadata informers has that name, and rate limits of its own.
    pub const METADATA_INFORMERS: &str = "metadata-informers";

    /// The identity of discovery, which has limits of its own: [`DISCOVERY_LIMITS`](Self::DISCOVERY_LIMITS).
    ///
    /// # Upstream
    /// The discovery client of the shared context has that name.
    pub const DISCOVERY: &str = "controller-discovery";

    /// The limits of discovery: many requests at once, and then none for long.
    ///
    /// # Upstream
    /// `DiscoveryClient` of the client builders.
    pub const DISCOVERY_LIMITS: ClientLimits = ClientLimits::Fixed { qps: 20, burst: 200 };

    /// The identity of the probe of an API server that may be unreachable: no other request uses up its rate limit.
    pub const PROBE: &str = "connection-probe";

    /// A builder whose clients send through the clients of `provider`, each within `limits`.
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
        Self::over_connections(connection, None, provider, user_agent, limits, metrics)
    }

    /// As [`over_connection`](Self::over_connection), with another connection for the identities that the provider calls
    /// [separate](ClientProvider::is_separate).
    #[must_use]
    pub fn over_connections(
        connection: Connection,
        separate: Option<Connection>,
        provider: impl ClientProvider,
        user_agent: UserAgent,
        limits: Limits,
        metrics: Arc<dyn ClientMetrics>,
    ) -> Self {
        let shared = SharedClients {
            provider: Box::new(provider),
            user_agent,
            fence: Fence::default(),
            writes: WriteRecord::default(),
            connection,
            separate,
            warnings: Arc::default(),
            metrics,
            identities: Mutex::new(Identities { limits, by_key: BTreeMap::new(), fences: BTreeMap::new() }),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Changes the limits of the settings and of every client whose limits follow from them. A request that waits
    /// already keeps its turn.
    pub fn set_limits(&self, limits: Limits) {
        let mut identities = self.shared.identities.lock();
        identities.limits = limits;
        for (key, identity) in &identities.by_key {
            identity.rate_limiter.set_limits(key.limits.resolve(limits));
        }
    }

    /// Has the writes of clients that are named after `controller` pass `fence` instead of the fence of all clients.
    ///
    /// For controllers that run under a lease of their own. Called before these clients are made.
    pub fn set_fence(&self, controller: &str, fence: Fence) {
        self.shared.identities.lock().fences.insert(controller.to_owned(), fence);
    }

    /// The fence that the writes of these clients pass, except clients with a [fence of their own](Self::set_fence).
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.shared.fence
    }

    /// The record of the writes of these clients that pass the fence.
    #[must_use]
    pub fn writes(&self) -> &WriteRecord {
        &self.shared.writes
    }

    /// The connection of the manager and its caches.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.shared.connection
    }

    /// Returns `true` unless the API server is known to be unreachable over a connection of these clients.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        // A separate connection depends on the other.
        self.shared.separate.as_ref().unwrap_or(&self.shared.connection).is_reachable()
    }

    /// A kube client that probes the separate connections, as [`PROBE`](Self::PROBE). `None` if there are none.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn separate_probe(&self) -> Option<kube::Client> {
        Some(self.kube_client(self.shared.provider.separate_probe()?, Self::PROBE))
    }

    /// The client through which an identity writes and lists, within the limits of the settings.
    ///
    /// # Panics
    /// If the identity is not valid in a header; names of controllers always are.
    #[must_use]
    pub fn client_for(&self, identity: &str) -> ApiClient {
        self.named_client_for(identity, "", ClientLimits::OfSettings)
    }

    /// A further client of an identity, with a rate limiter that only clients of the same name and limits share.
    ///
    /// # Panics
    /// As [`client_for`](Self::client_for).
    #[must_use]
    pub fn named_client_for(&self, identity: &str, name: &str, limits: ClientLimits) -> ApiClient {
        ApiClient::new(self.shared.provider.client_for(identity), self.identity(identity, name, limits))
    }

    /// A kube client of that identity, for informers. Its requests carry the same User-Agent and rate limit; watches
    /// are not limited.
    ///
    /// # Panics
    /// As [`client_for`](Self::client_for), and outside of a tokio runtime.
    #[must_use]
    pub fn kube_client_for(&self, identity: &str) -> kube::Client {
        self.kube_client(self.shared.provider.client_for(identity), identity)
    }

    fn kube_client(&self, client: kube::Client, identity: &str) -> kube::Client {
        let identity = self.identity(identity, "", ClientLimits::OfSettings);
        let default_namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |request| {
            let (client, identity) = (client.clone(), Arc::clone(&identity));
            async move { send_as(&client, identity, request).await }
        });
        kube::Client::new(service, default_namespace)
    }

    /// The kube client of the shared informer factory. It sends requests for metadata only as
    /// [`METADATA_INFORMERS`](Self::METADATA_INFORMERS), all others as [`SHARED_INFORMERS`](Self::SHARED_INFORMERS).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn informer_client(&self) -> kube::Client {
        let [metadata, shared] =
            [Self::METADATA_INFORMERS, Self::SHARED_INFORMERS].map(|identity| self.kube_client_for(identity));
        let default_namespace = shared.default_namespace().to_owned();
        let service = tower::service_fn(move |request: Request<Body>| {
            let client = if wants_metadata_alone(request.headers()) { metadata.clone() } else { shared.clone() };
            async move { client.send(request).await }
        });
        kube::Client::new(service, default_namespace)
    }

    fn identity(&self, identity: &str, name: &str, limits: ClientLimits) -> Arc<ClientIdentity> {
        let shared = &self.shared;
        let key = ClientKey { identity: identity.to_owned(), name: name.to_owned(), limits };
        let mut identities = shared.identities.lock();
        if let Some(identity) = identities.by_key.get(&key) {
            return Arc::clone(identity);
        }
        // The name is the controller, or the controller and the name of one of its clients.
        let controller = name.split('/').next().unwrap_or_default();
        let fence = identities.fences.get(controller).unwrap_or(&shared.fence).clone();
        let user_agent =
            HeaderValue::from_str(&shared.user_agent.of(identity)).expect("the name of an identity is plain text");
        let identity = Arc::new(ClientIdentity {
            user_agent,
            rate_limiter: RateLimiter::new(limits.resolve(identities.limits)),
            fence,
            writes: shared.writes.clone(),
            connection: shared.connection_of(identity).clone(),
            warnings: Arc::clone(&shared.warnings),
            metrics: Arc::clone(&shared.metrics),
        });
        identities.by_key.insert(key, Arc::clone(&identity));
        identity
    }
}

fn wants_metadata_alone(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.contains(";as=PartialObjectMetadata")
}

async fn send_as(
    client: &kube::Client,
    identity: Arc<ClientIdentity>,
    mut request: Request<Body>,
) -> Result<Response<CountedBody>, kube::Error> {
    let method = request.method().clone();
    // As upstream: a watch is one long request, and the reflector backs off its restarts.
    let is_watch = is_watch(request.uri());
    if !is_watch {
        identity.wait(method.as_str()).await;
        identity.sending(method.as_str(), request.body());
    }
    identity.sign(request.headers_mut());
    // Its caller sets the deadline of such a request.
    identity.fence.limit(&method, Instant::now()).map_err(|fenced| kube::Error::Service(fenced.into()))?;
    let started = Instant::now();
    let answer = client.send(request).await;
    identity.observe(method.as_str(), started, answer.as_ref().ok(), false);
    let counter = (!is_watch).then(|| (method, Arc::clone(&identity.metrics)));
    answer.map(|answer| answer.map(|body| CountedBody::new(body, counter)))
}
