//! Clients by identity: one connection pool, a name and a token bucket each.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::{HeaderMap, USER_AGENT};
use http::{HeaderValue, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::api_client::ApiClient;
use super::metrics::{ClientMetrics, NoMetrics};
use super::rate_limiter::{Limits, RateLimiter};
use super::transport::is_watch;
use super::warnings::Warnings;

/// The User-Agent of the whole manager, to which each identity adds its name.
///
/// The API server derives field managers from what stands before the first slash.
///
/// # Upstream
/// client-go's default and `rest.AddUserAgent`:
/// `kube-controller-manager/v1.36.3 (linux/amd64) kubernetes/0123456/replicaset-controller`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserAgent(String);

impl UserAgent {
    /// The User-Agent of a program, from its version (`v1.36.3`) and the commit that it was built from.
    #[must_use]
    pub fn new(program: &str, version: &str, commit: &str) -> Self {
        let known = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
        let version = known(version.split('-').next().unwrap_or_default());
        let commit = known(&commit.chars().take(7).collect::<String>());
        Self(format!("{program}/{version} ({}/{}) kubernetes/{commit}", go_os(), go_arch()))
    }

    /// The User-Agent of one identity.
    #[must_use]
    pub fn of(&self, identity: &str) -> String {
        format!("{}/{identity}", self.0)
    }
}

fn go_os() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    }
}

fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

/// Who makes a request: its name, its share of the API server, and where its observations go.
pub(crate) struct Caller {
    user_agent: HeaderValue,
    bucket: RateLimiter,
    warnings: Arc<Warnings>,
    metrics: Arc<dyn ClientMetrics>,
}

impl Caller {
    /// Waits for the bucket.
    pub(crate) async fn admit(&self, method: &str) {
        const WORTH_TELLING: std::time::Duration = std::time::Duration::from_secs(1);
        let waited = self.bucket.acquire().await;
        self.metrics.throttled(method, waited);
        if waited > WORTH_TELLING {
            tracing::debug!(?waited, method, "Waited for the client-side rate limit");
        }
    }

    pub(crate) fn sign(&self, headers: &mut HeaderMap) {
        headers.insert(USER_AGENT, self.user_agent.clone());
    }

    pub(crate) fn observe<B>(&self, method: &str, started: Instant, answer: Option<&Response<B>>) {
        self.metrics.request(method, answer.map(|answer| answer.status().as_u16()), started.elapsed());
        if let Some(answer) = answer {
            self.warnings.log(answer.headers());
        }
    }
}

/// Makes the clients of all identities over one connection pool.
///
/// # Upstream
/// `SimpleControllerClientBuilder`: all identities share credentials and connections; each has its own
/// User-Agent and its own token bucket. Here an identity asked for twice gets the same bucket.
#[derive(Clone)]
pub struct ClientBuilder {
    shared: Arc<SharedClients>,
}

struct SharedClients {
    client: kube::Client,
    user_agent: UserAgent,
    limits: Limits,
    warnings: Arc<Warnings>,
    metrics: Arc<dyn ClientMetrics>,
    callers: Mutex<BTreeMap<String, Arc<Caller>>>,
}

impl ClientBuilder {
    /// The identity of the manager itself, for reads that no controller may make.
    pub const MANAGER: &str = "kube-controller-manager";

    /// The identity of the shared caches.
    ///
    /// # Upstream
    /// The client of the shared informer factory has that name.
    pub const SHARED_INFORMERS: &str = "shared-informers";

    /// Clients over `client`, each within `limits`.
    #[must_use]
    pub fn new(client: kube::Client, user_agent: UserAgent, limits: Limits) -> Self {
        Self::with_metrics(client, user_agent, limits, Arc::new(NoMetrics))
    }

    /// As [`new`](Self::new), with requests counted.
    #[must_use]
    pub fn with_metrics(
        client: kube::Client,
        user_agent: UserAgent,
        limits: Limits,
        metrics: Arc<dyn ClientMetrics>,
    ) -> Self {
        let warnings = Arc::default();
        let callers = Mutex::default();
        Self { shared: Arc::new(SharedClients { client, user_agent, limits, warnings, metrics, callers }) }
    }

    /// The client through which a controller writes and lists.
    ///
    /// # Panics
    /// If the identity cannot stand in a header: names of controllers always can.
    #[must_use]
    pub fn client_for(&self, identity: &str) -> ApiClient {
        ApiClient::new(self.shared.client.clone(), self.caller(identity))
    }

    /// A kube client of that identity, for informers: signed and limited in the same way, watches not limited.
    ///
    /// # Panics
    /// As [`client_for`](Self::client_for), and outside of a tokio runtime.
    #[must_use]
    pub fn kube_client_for(&self, identity: &str) -> kube::Client {
        let client = self.shared.client.clone();
        let caller = self.caller(identity);
        let default_namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |request| {
            let (client, caller) = (client.clone(), Arc::clone(&caller));
            async move { send_as(&client, &caller, request).await }
        });
        kube::Client::new(service, default_namespace)
    }

    fn caller(&self, identity: &str) -> Arc<Caller> {
        let shared = &self.shared;
        let mut callers = shared.callers.lock();
        if let Some(caller) = callers.get(identity) {
            return Arc::clone(caller);
        }
        let user_agent = HeaderValue::from_str(&shared.user_agent.of(identity)).expect("an identity is plain text");
        let caller = Arc::new(Caller {
            user_agent,
            bucket: RateLimiter::new(shared.limits),
            warnings: Arc::clone(&shared.warnings),
            metrics: Arc::clone(&shared.metrics),
        });
        callers.insert(identity.to_owned(), Arc::clone(&caller));
        caller
    }
}

async fn send_as(
    client: &kube::Client,
    caller: &Caller,
    mut request: Request<Body>,
) -> Result<Response<Body>, kube::Error> {
    let method = request.method().clone();
    // Upstream: a watch is one request for a long time, and restarts are backed off by who watches.
    if !is_watch(request.uri()) {
        caller.admit(method.as_str()).await;
    }
    caller.sign(request.headers_mut());
    let started = Instant::now();
    let answer = client.send(request).await;
    caller.observe(method.as_str(), started, answer.as_ref().ok());
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_agent_is_client_gos() {
        let agent = UserAgent::new("kube-controller-manager", "v1.36.3-alpha.1", "0123456789abcdef");
        let of = agent.of("replicaset-controller");
        assert!(of.starts_with("kube-controller-manager/v1.36.3 ("), "{of}");
        assert!(of.ends_with(") kubernetes/0123456/replicaset-controller"), "{of}");
        assert!(UserAgent::new("a", "", "").0.ends_with(" kubernetes/unknown"));
    }
}
