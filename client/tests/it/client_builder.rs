//! The parts that the clients of all identities share, and the parts of each.

#![expect(clippy::unwrap_used, reason = "a test fails where its helper does")]

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kcm_api::{ObjectKey, PartialObjectMeta, Resource};
use kcm_client::{
    ApiClient, ApiError, Cause, ClientBuilder, ClientLimits, ClientMetrics, ClientProvider, Fence, Limits, Patch,
    Payload, Subresource, UserAgent, Written,
};
use kube::client::Body;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");

/// The methods that the API server has seen, each with the credentials of the request.
type Seen = Arc<Mutex<Vec<String>>>;

/// Gives each identity a token of its own name.
struct Tokens(Seen);

impl ClientProvider for Tokens {
    fn client_for(&self, identity: &str) -> kube::Client {
        let (seen, token) = (Arc::clone(&self.0), identity.to_owned());
        let service = tower::service_fn(move |request: Request<Body>| {
            seen.lock().unwrap().push(format!("{} as {token}", request.method()));
            let object = json!({"metadata": {"name": "a", "namespace": "default"}}).to_string();
            std::future::ready(Ok::<_, Infallible>(Response::new(Body::from(object.into_bytes()))))
        });
        kube::Client::new(service, "default")
    }
}

fn builder(limits: Limits) -> (ClientBuilder, Seen) {
    let seen = Seen::default();
    let user_agent = UserAgent::new("kube-controller-manager", "v1.37.2", "");
    (ClientBuilder::new(Tokens(Arc::clone(&seen)), user_agent, limits), seen)
}

fn key() -> ObjectKey {
    ObjectKey::namespaced("default", "a")
}

async fn write(clients: &ClientBuilder, identity: &str) -> Result<Written, ApiError> {
    write_with(&clients.client_for(identity)).await
}

async fn write_with(client: &ApiClient) -> Result<Written, ApiError> {
    let patch = Patch::Merge(Payload::json(&json!({})));
    client.patch(&PODS, &key(), Subresource::None, patch).await
}

#[tokio::test]
async fn each_identity_has_the_credentials_that_the_provider_gives_it() {
    let (clients, seen) = builder(Limits::UNLIMITED);
    write(&clients, "a-controller").await.unwrap();
    clients.client_for("b-controller").get::<PartialObjectMeta>(&PODS, &key()).await.unwrap();
    let request = Request::get("/api/v1/pods").body(Vec::new()).unwrap();
    clients.kube_client_for("shared-informers").request_text(request).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["PATCH as a-controller", "GET as b-controller", "GET as shared-informers"]);
}

#[tokio::test]
async fn no_write_passes_a_closed_fence_and_reads_do() {
    let (clients, seen) = builder(Limits::UNLIMITED);
    clients.fence().close();
    let error = write(&clients, "a-controller").await.unwrap_err();
    assert!(!error.response_lost(), "nothing was sent, so nothing is in doubt");
    assert_eq!(error.message(), "this manager sends no writes at present, as another may act in its place");
    let request = Request::delete("/api/v1/namespaces/default/pods/a").body(Vec::new()).unwrap();
    clients.kube_client_for("a-controller").request_text(request).await.unwrap_err();
    clients.client_for("a-controller").get::<PartialObjectMeta>(&PODS, &key()).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["GET as a-controller"]);

    clients.fence().open();
    write(&clients, "a-controller").await.unwrap();
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_controller_under_a_lease_of_its_own_has_a_fence_of_its_own() {
    let (clients, seen) = builder(Limits::UNLIMITED);
    let fence = Fence::default();
    clients.set_fence("b-controller", fence.clone());
    let client = |name: &str| clients.named_client_for("an-account", name, ClientLimits::OfSettings);
    let names = ["a-controller", "b-controller", "b-controller/scale"];
    let sent = async || {
        let mut sent = Vec::new();
        for name in names {
            if write_with(&client(name)).await.is_ok() {
                sent.push(name);
            }
        }
        sent
    };
    fence.close();
    assert_eq!(sent().await, ["a-controller"]);
    clients.fence().close();
    fence.open();
    assert_eq!(sent().await, ["b-controller", "b-controller/scale"]);
    assert_eq!(seen.lock().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waits_for_its_rate_limit_when_the_fence_closes_is_not_sent() {
    let (clients, seen) = builder(Limits { qps: 1.0, burst: 1 });
    write(&clients, "a-controller").await.unwrap();
    let mut waiting = JoinSet::new();
    let of_task = clients.clone();
    waiting.spawn(async move { write(&of_task, "a-controller").await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    clients.fence().close();
    waiting.join_next().await.unwrap().unwrap().unwrap_err();
    assert_eq!(seen.lock().unwrap().len(), 1);
}

/// A provider whose requests are held on the way for an hour.
struct HeldOnTheWay(Seen);

impl ClientProvider for HeldOnTheWay {
    fn client_for(&self, _identity: &str) -> kube::Client {
        let seen = Arc::clone(&self.0);
        let service = tower::service_fn(move |request: Request<Body>| {
            seen.lock().unwrap().push(request.method().to_string());
            async {
                tokio::time::sleep(Duration::from_hours(1)).await;
                Ok::<_, Infallible>(Response::new(Body::empty()))
            }
        });
        kube::Client::new(service, "default")
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_held_on_the_way_is_given_up_when_the_fence_closes_and_not_sent_again() {
    let seen = Seen::default();
    let user_agent = UserAgent::new("kube-controller-manager", "v1.37.2", "");
    let clients = ClientBuilder::new(HeldOnTheWay(Arc::clone(&seen)), user_agent, Limits::UNLIMITED);
    let begun = tokio::time::Instant::now();
    clients.fence().open_until(begun + Duration::from_secs(10));
    let error = write(&clients, "a-controller").await.unwrap_err();
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
    assert!(error.response_lost(), "it was sent, and may still take effect");
    assert_eq!(*seen.lock().unwrap(), ["PATCH"]);
}

/// A provider whose connections break after ten seconds.
struct Breaking(Seen);

impl ClientProvider for Breaking {
    fn client_for(&self, _identity: &str) -> kube::Client {
        let seen = Arc::clone(&self.0);
        let service = tower::service_fn(move |request: Request<Body>| {
            seen.lock().unwrap().push(request.method().to_string());
            async {
                tokio::time::sleep(Duration::from_secs(10)).await;
                Err::<Response<Body>, _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
            }
        });
        kube::Client::new(service, "default")
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_connection_is_reset_with_the_fence_is_given_up_and_not_sent_again() {
    let (seen, given_up) = (Seen::default(), Arc::<GivenUp>::default());
    let user_agent = UserAgent::new("kube-controller-manager", "v1.37.2", "");
    let provider = Breaking(Arc::clone(&seen));
    let clients =
        ClientBuilder::with_metrics(provider, user_agent, Limits::UNLIMITED, Arc::<GivenUp>::clone(&given_up));
    clients.fence().open_until(tokio::time::Instant::now() + Duration::from_secs(10));
    let error = write(&clients, "a-controller").await.unwrap_err();
    assert!(matches!(error.cause(), Cause::GivenUp(after) if *after == Duration::from_secs(10)), "{error:?}");
    assert!(error.response_lost());
    assert_eq!(given_up.0.load(Ordering::Relaxed), 1);
    assert_eq!(*seen.lock().unwrap(), ["PATCH"]);
}

/// A provider whose responses take `delay`, either to their head or to their body.
#[derive(Clone, Copy)]
struct Slow {
    delay: Duration,
    is_body_late: bool,
}

impl Slow {
    fn builder(self) -> (ClientBuilder, Arc<GivenUp>) {
        let (user_agent, given_up) = (UserAgent::new("kube-controller-manager", "v1.37.2", ""), Arc::default());
        let metrics = Arc::<GivenUp>::clone(&given_up);
        (ClientBuilder::with_metrics(self, user_agent, Limits::UNLIMITED, metrics), given_up)
    }
}

impl ClientProvider for Slow {
    fn client_for(&self, _identity: &str) -> kube::Client {
        let Self { delay, is_body_late } = *self;
        let service = tower::service_fn(move |_: Request<Body>| async move {
            let late = tokio::time::sleep(delay).map(|()| {
                let object = json!({"metadata": {"name": "a", "namespace": "default"}}).to_string();
                Ok::<_, Infallible>(Frame::data(Bytes::from(object)))
            });
            let body = if is_body_late { late.into_stream().boxed() } else { stream::iter([late.await]).boxed() };
            Ok::<_, Infallible>(Response::new(StreamBody::new(body)))
        });
        kube::Client::new(service, "default")
    }
}

/// The number of writes that were given up.
#[derive(Default)]
struct GivenUp(AtomicUsize);

impl ClientMetrics for GivenUp {
    fn given_up(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Time for which a renewal of the lease keeps the fence open, with the default durations.
const RENEWAL: Duration = Duration::from_millis(14_250);

/// Opens the fence every two seconds, as the renewals of the lease do.
async fn renew(clients: &ClientBuilder, renewals: usize) {
    for _ in 0..renewals {
        clients.fence().open_until(Instant::now() + RENEWAL);
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_takes_longer_than_a_renewal_holds_succeeds_while_the_lease_is_renewed() {
    for is_body_late in [false, true] {
        let slow = Slow { delay: Duration::from_secs(20), is_body_late };
        let ((clients, given_up), begun) = (slow.builder(), Instant::now());
        clients.fence().open_until(begun + RENEWAL);
        tokio::select! {
            written = write(&clients, "a-controller") => drop(written.unwrap()),
            () = renew(&clients, 100) => panic!("no response"),
        }
        let expected = (slow.delay, 0);
        assert_eq!((begun.elapsed(), given_up.0.load(Ordering::Relaxed)), expected, "body late: {is_body_late}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_is_given_up_when_the_last_renewal_of_the_lease_no_longer_holds() {
    for is_body_late in [false, true] {
        let slow = Slow { delay: Duration::from_hours(1), is_body_late };
        let ((clients, given_up), begun) = (slow.builder(), Instant::now());
        clients.fence().open_until(begun + RENEWAL);
        let waits = async {
            let error = write(&clients, "a-controller").await.unwrap_err();
            (error, begun.elapsed())
        };
        // The last of four renewals is after six seconds.
        let ((error, waited), ()) = tokio::join!(waits, renew(&clients, 4));
        let expected = (Duration::from_secs(6) + RENEWAL, 1);
        assert_eq!((waited, given_up.0.load(Ordering::Relaxed)), expected, "body late: {is_body_late}");
        assert!(error.response_lost(), "it was sent, and may still take effect");
        assert_eq!(
            error.message(),
            "given up after 20.2s without a response, because another manager may act by now: it may still take effect"
        );
    }
}

/// Returns the time that so many concurrent reads take.
async fn duration_of(client: &ApiClient, requests: usize) -> Duration {
    let started = Instant::now();
    let reads = (0..requests).map(|_| async { client.get::<PartialObjectMeta>(&PODS, &key()).await });
    futures::future::try_join_all(reads).await.unwrap();
    started.elapsed()
}

#[tokio::test(start_paused = true)]
async fn each_client_has_a_rate_limiter_and_limits_of_its_own() {
    let (clients, _) = builder(Limits { qps: 1.0, burst: 2 });
    let own = ClientLimits::Times { qps: 2, burst: 3 };
    let named = clients.named_client_for("a-controller", "a-controller", own);
    let again = clients.named_client_for("a-controller", "a-controller", own);
    let other = clients.named_client_for("a-controller", "b-controller", ClientLimits::OfSettings);
    assert_eq!(duration_of(&named, 6).await, Duration::ZERO, "three times the burst");
    assert_eq!(duration_of(&again, 4).await, Duration::from_secs(2), "the same rate limiter, with twice the rate");
    assert_eq!(duration_of(&other, 3).await, Duration::from_secs(1), "that of the settings");
    assert_eq!(duration_of(&clients.client_for("a-controller"), 2).await, Duration::ZERO);
    let discovery = clients.named_client_for(ClientBuilder::DISCOVERY, "", ClientBuilder::DISCOVERY_LIMITS);
    assert_eq!(duration_of(&discovery, 210).await, Duration::from_millis(500));
}

#[tokio::test(start_paused = true)]
async fn changed_settings_change_the_limits_of_every_client_in_proportion() {
    let (clients, _) = builder(Limits { qps: 1.0, burst: 1 });
    let named = clients.named_client_for("a-controller", "a-controller", ClientLimits::Times { qps: 20, burst: 100 });
    let fixed = clients.named_client_for("a-controller", "", ClientLimits::Fixed { qps: 1, burst: 1 });
    assert_eq!(duration_of(&named, 120).await, Duration::from_secs(1));
    clients.set_limits(Limits { qps: 5.0, burst: 2 });
    assert_eq!(duration_of(&named, 100).await, Duration::from_secs(1));
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(duration_of(&named, 200).await, Duration::ZERO);
    assert_eq!(duration_of(&fixed, 2).await, Duration::from_secs(1), "they follow from no setting");
}

/// Answers every request with an object, and notes its User-Agent.
struct Agents(Seen);

impl ClientProvider for Agents {
    fn client_for(&self, _identity: &str) -> kube::Client {
        let seen = Arc::clone(&self.0);
        let service = tower::service_fn(move |request: Request<Body>| {
            seen.lock().unwrap().push(request.headers()["user-agent"].to_str().unwrap().to_owned());
            let object = json!({"metadata": {"name": "a", "namespace": "default"}}).to_string();
            std::future::ready(Ok::<_, Infallible>(Response::new(Body::from(object.into_bytes()))))
        });
        kube::Client::new(service, "default")
    }
}

/// The names come from upstream's clients: `CreateControllerContext` and `Run` in `cmd/kube-controller-manager/app`,
/// and `NewControllerManagerOptions` for the manager's own. The probe has no counterpart there.
#[tokio::test]
async fn the_shared_clients_have_upstreams_user_agents() {
    let seen = Seen::default();
    let user_agent = UserAgent::new("kube-controller-manager", "v1.37.2", "0123456789");
    let clients = ClientBuilder::new(Agents(Arc::clone(&seen)), user_agent.clone(), Limits::UNLIMITED);
    let informers = clients.informer_client();
    let whole = "application/vnd.kubernetes.protobuf,application/json";
    let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    let listed = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    for (accept, name) in
        [(whole, "shared-informers"), (metadata, "metadata-informers"), (listed, "metadata-informers")]
    {
        let request = Request::get("/api/v1/pods").header("accept", accept).body(Vec::new()).unwrap();
        informers.request_text(request).await.unwrap();
        assert_eq!(seen.lock().unwrap().pop(), Some(user_agent.of(name)), "{accept}");
    }
    for (identity, name) in [
        (ClientBuilder::MANAGER, "kube-controller-manager"),
        (ClientBuilder::DISCOVERY, "controller-discovery"),
        (ClientBuilder::PROBE, "connection-probe"),
    ] {
        clients.client_for(identity).get::<PartialObjectMeta>(&PODS, &key()).await.unwrap();
        assert_eq!(seen.lock().unwrap().pop(), Some(user_agent.of(name)));
    }
    assert!(user_agent.of("").ends_with(" kubernetes/0123456/"));
}

#[tokio::test(start_paused = true)]
async fn the_informers_of_metadata_have_a_rate_limit_of_their_own() {
    let (clients, _) = builder(Limits { qps: 1.0, burst: 1 });
    let informers = clients.informer_client();
    let started = Instant::now();
    for accept in ["application/json", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"] {
        let request = Request::get("/api/v1/pods").header("accept", accept).body(Vec::new()).unwrap();
        informers.request_text(request).await.unwrap();
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
}
