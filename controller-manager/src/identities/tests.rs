//! Clients of service accounts against an API server that knows tokens alone.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{Method, Request, Response, StatusCode};
use kcm_framework::api::{ObjectKey, PartialObjectMeta, Resource};
use kcm_framework::client::{ApiError, ClientBuilder, Limits, UserAgent};
use kcm_framework::clock::{Clock, SimulatedClock};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tracing::field::Field;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use super::{ServiceAccounts, TokenHealth};

const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");
const ACCOUNT: &str = "replicaset-controller";
/// Longer than a request waits for its response.
const NEVER: Duration = Duration::from_hours(24);

#[derive(Default)]
struct Server {
    accounts: BTreeSet<String>,
    tokens_requested: usize,
    /// The only token that is accepted.
    valid: String,
    /// The responses to the next token requests; others succeed.
    refusals: VecDeque<StatusCode>,
    refuses_tokens: bool,
    /// The API server has accounts and no tokens.
    has_no_tokens: bool,
    /// Time after which a token request gets its response.
    delay: Duration,
    /// Token requests without a response so far, and the largest number of them at any time.
    open: usize,
    most_open: usize,
    /// All requests for tokens.
    asked: usize,
    /// Authorization and User-Agent of each request for pods.
    requests: Vec<(String, String)>,
}

impl Server {
    fn answer(&mut self, request: &Request<Body>, clock: &SimulatedClock) -> (StatusCode, Value) {
        let path = request.uri().path();
        let header = |name: &str| {
            request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        if path.contains("/pods/") {
            let authorization = header(AUTHORIZATION.as_str());
            let known = authorization == format!("Bearer {}", self.valid) || authorization == "manager";
            self.requests.push((authorization, header("user-agent")));
            let status = if known { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
            return (status, json!({ "metadata": { "namespace": "a", "name": "p" } }));
        }
        assert_eq!(header(AUTHORIZATION.as_str()), "manager", "{path}");
        let missing = (StatusCode::NOT_FOUND, json!({ "kind": "Status", "code": 404, "reason": "NotFound" }));
        if let Some(account) = path.strip_prefix("/api/v1/namespaces/kube-system/serviceaccounts/") {
            let account = account.strip_suffix("/token").expect("only tokens are asked for");
            self.asked += 1;
            if self.has_no_tokens {
                return missing;
            }
            if let Some(code) = self.refusals.pop_front() {
                return (code, json!({ "kind": "Status", "code": code.as_u16() }));
            }
            if self.refuses_tokens {
                return (StatusCode::FORBIDDEN, json!({ "kind": "Status", "code": 403, "reason": "Forbidden" }));
            }
            if !self.accounts.contains(account) {
                return missing;
            }
            self.tokens_requested += 1;
            let token = format!("token-{}", self.tokens_requested);
            let expires = clock.now() + Duration::from_hours(1);
            let status = json!({ "token": token, "expirationTimestamp": expires.to_string() });
            // A token that never arrives replaces no other.
            if self.delay < NEVER {
                self.valid = token;
            }
            let body = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}, "status": status });
            return (StatusCode::CREATED, body);
        }
        match (request.method(), path) {
            (&Method::GET, "/api/v1/namespaces/kube-system") => missing,
            (&Method::POST, "/api/v1/namespaces") => {
                (StatusCode::CREATED, json!({ "metadata": { "name": "kube-system" } }))
            }
            (&Method::POST, "/api/v1/namespaces/kube-system/serviceaccounts") => {
                self.accounts.insert(ACCOUNT.to_owned());
                (StatusCode::CREATED, json!({ "metadata": { "namespace": "kube-system", "name": ACCOUNT } }))
            }
            (method, path) => panic!("{method} {path}"),
        }
    }
}

/// A token request that waits for its response.
struct Open(Arc<Mutex<Server>>);

impl Open {
    fn new(server: &Arc<Mutex<Server>>) -> Self {
        let mut counts = server.lock();
        counts.open += 1;
        counts.most_open = counts.most_open.max(counts.open);
        Self(Arc::clone(server))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().open -= 1;
    }
}

fn client(server: &Arc<Mutex<Server>>, clock: &SimulatedClock, credentials: Option<&'static str>) -> kube::Client {
    let (server, clock) = (Arc::clone(server), *clock);
    let service = tower::service_fn(move |mut request: Request<Body>| {
        if let Some(credentials) = credentials {
            request.headers_mut().insert(AUTHORIZATION, http::HeaderValue::from_static(credentials));
        }
        let (status, body) = server.lock().answer(&request, &clock);
        let open = request.uri().path().ends_with("/token").then(|| (Open::new(&server), server.lock().delay));
        async move {
            if let Some((_open, delay)) = open {
                sleep(delay).await;
            }
            let response = Response::builder().status(status).body(Body::from(body.to_string().into_bytes()));
            Ok::<_, Infallible>(response.expect("the response is valid"))
        }
    });
    kube::Client::new(service, "default")
}

fn clients() -> (ClientBuilder, Arc<Mutex<Server>>) {
    let (clients, server, _) = clients_with_health();
    (clients, server)
}

fn clients_with_health() -> (ClientBuilder, Arc<Mutex<Server>>, TokenHealth) {
    let server = Arc::<Mutex<Server>>::default();
    let clock = SimulatedClock::starting_at("2030-01-01T00:00:00Z".parse().expect("it is a time"));
    let agent = || UserAgent::new("kube-controller-manager", "v0", "");
    let manager = client(&server, &clock, Some("manager"));
    let own = ClientBuilder::new(manager.clone(), agent(), Limits::UNLIMITED).client_for(ClientBuilder::MANAGER);
    let anonymous = client(&server, &clock, None);
    let accounts = ServiceAccounts::new(manager, anonymous, [ACCOUNT.to_owned()], own, Arc::new(clock));
    let health = accounts.health();
    (ClientBuilder::new(accounts, agent(), Limits::UNLIMITED), server, health)
}

async fn read(clients: &ClientBuilder, identity: &str) -> Result<(), ApiError> {
    let pod = ObjectKey::namespaced("a", "p");
    clients.client_for(identity).get::<PartialObjectMeta>(&PODS, &pod).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn an_account_is_created_and_one_token_serves_all_requests() {
    let (clients, server) = clients();
    for _ in 0..3 {
        read(&clients, ACCOUNT).await.expect("it has a token");
    }
    let server = server.lock();
    assert_eq!(server.tokens_requested, 1);
    for (authorization, agent) in &server.requests {
        assert_eq!(authorization, "Bearer token-1");
        assert!(agent.starts_with("kube-controller-manager/v0"), "{agent}");
        assert!(agent.ends_with("/system:serviceaccount:kube-system:replicaset-controller"), "{agent}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_of_the_connections_of_accounts_has_a_token_if_one_is_held() {
    let (clients, server) = clients();
    let probe = clients.separate_probe().expect("accounts have connections of their own");
    let probed = async || {
        let request = Request::get("/api/v1/namespaces/a/pods/p").body(Body::empty()).expect("the request is valid");
        probe.send(request).await.expect("the server answers").status()
    };
    assert_eq!(probed().await, StatusCode::UNAUTHORIZED, "no token is requested for it");
    read(&clients, ACCOUNT).await.expect("it has a token");
    assert_eq!(probed().await, StatusCode::OK);
    assert_eq!(server.lock().tokens_requested, 1);
}

#[tokio::test(start_paused = true)]
async fn requests_at_the_same_time_wait_for_one_token() {
    let (clients, server) = clients();
    let results = futures::future::join_all((0..10).map(|_| read(&clients, ACCOUNT))).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(server.lock().tokens_requested, 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_before_it_expires() {
    let (clients, server) = clients();
    read(&clients, ACCOUNT).await.expect("it has a token");
    sleep(Duration::from_mins(47)).await;
    read(&clients, ACCOUNT).await.expect("it has a token");
    assert_eq!(server.lock().tokens_requested, 1);
    sleep(Duration::from_mins(2)).await;
    read(&clients, ACCOUNT).await.expect("it has a token");
    sleep(Duration::from_millis(1)).await;
    read(&clients, ACCOUNT).await.expect("it has a token");
    let server = server.lock();
    let used: Vec<&str> = server.requests.iter().map(|(authorization, _)| authorization.as_str()).collect();
    assert_eq!((server.tokens_requested, used[2..].to_vec()), (2, vec!["Bearer token-1", "Bearer token-2"]));
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_delays_no_request_while_the_token_is_valid() {
    let (clients, server, health) = clients_with_health();
    read(&clients, ACCOUNT).await.expect("it has a token");
    sleep(Duration::from_mins(49)).await;
    server.lock().delay = NEVER;
    for _ in 0..10 {
        let begun = Instant::now();
        let results = futures::future::join_all((0..10).map(|_| read(&clients, ACCOUNT))).await;
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        assert_eq!(begun.elapsed(), Duration::ZERO);
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(health.check(), Ok(()));
    let server = server.lock();
    let counts = (server.asked, server.most_open);
    assert_eq!(counts, (3, 1), "one of the account that did not exist, one token, one renewal");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_is_tried_again_with_back_off() {
    let (clients, server) = clients();
    read(&clients, ACCOUNT).await.expect("it has a token");
    server.lock().refuses_tokens = true;
    sleep(Duration::from_mins(49)).await;
    let begun = Instant::now();
    let mut tried = Vec::new();
    while begun.elapsed() < Duration::from_mins(4) {
        let before = server.lock().asked;
        read(&clients, ACCOUNT).await.expect("the token is valid");
        sleep(Duration::from_secs(1)).await;
        if server.lock().asked > before {
            tried.push(begun.elapsed().as_secs());
        }
    }
    assert_eq!(tried, [1, 11, 31, 71, 131, 191]);
    server.lock().refuses_tokens = false;
    sleep(Duration::from_mins(1)).await;
    read(&clients, ACCOUNT).await.expect("the token is valid");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(server.lock().tokens_requested, 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_valid_token_a_request_waits_ten_seconds_for_one() {
    let (clients, server, health) = clients_with_health();
    server.lock().delay = NEVER;
    for waited in [10, 20] {
        let begun = Instant::now();
        let error = read(&clients, ACCOUNT).await.expect_err("there is no token");
        assert_eq!(begun.elapsed(), Duration::from_secs(10));
        assert!(!error.response_lost(), "it was not sent");
        let reason = format!("there has been no response to the request for its token for {waited} s");
        assert!(error.message().ends_with(&reason), "{}", error.message());
        let problem = format!("the service account kube-system/{ACCOUNT} has no token: {reason}");
        assert_eq!(health.check(), Err(problem));
    }
    server.lock().delay = Duration::ZERO;
    // The first request times out after 34 s.
    sleep(Duration::from_secs(14)).await;
    read(&clients, ACCOUNT).await.expect("another request succeeds");
    assert_eq!((server.lock().most_open, health.check()), (1, Ok(())));
}

#[tokio::test(start_paused = true)]
async fn a_token_request_goes_on_if_the_request_that_needs_it_is_given_up() {
    let (clients, server) = clients();
    server.lock().delay = Duration::from_secs(3);
    let second = Duration::from_secs(1);
    assert!(tokio::time::timeout(second, read(&clients, ACCOUNT)).await.is_err(), "it waits for its token");
    let begun = Instant::now();
    read(&clients, ACCOUNT).await.expect("it has a token");
    // One request for the account that did not exist, and one for its token.
    assert_eq!((begun.elapsed(), server.lock().asked), (Duration::from_secs(5), 2));
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_replaced_at_once() {
    let (clients, server) = clients();
    read(&clients, ACCOUNT).await.expect("it has a token");
    "another".clone_into(&mut server.lock().valid);
    read(&clients, ACCOUNT).await.expect("it got another token");
    let server = server.lock();
    let used: Vec<&str> = server.requests.iter().map(|(authorization, _)| authorization.as_str()).collect();
    assert_eq!(used, ["Bearer token-1", "Bearer token-1", "Bearer token-2"]);
}

/// Captures the messages of warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() == Level::WARN {
            event.record(&mut |field: &Field, value: &dyn Debug| {
                if field.name() == "message" {
                    self.0.lock().push(format!("{value:?}"));
                }
            });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_logged_once_although_its_requests_succeed() {
    let (clients, server) = clients();
    read(&clients, ACCOUNT).await.expect("it has a token");
    "another".clone_into(&mut server.lock().valid);
    let warnings = Warnings::default();
    let guard = tracing::subscriber::set_default(Registry::default().with(warnings.clone()));
    let results = futures::future::join_all((0..10).map(|_| read(&clients, ACCOUNT))).await;
    drop(guard);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(*warnings.0.lock(), ["Server rejected a service account token; requesting another"]);
}

#[tokio::test(start_paused = true)]
async fn other_identities_keep_the_credentials_of_the_manager() {
    let (clients, server) = clients();
    read(&clients, ClientBuilder::SHARED_INFORMERS).await.expect("the manager has credentials");
    let server = server.lock();
    assert_eq!((server.tokens_requested, server.requests[0].0.as_str()), (0, "manager"));
}

#[tokio::test(start_paused = true)]
async fn without_a_token_nothing_is_sent_and_the_outcome_is_known() {
    let (clients, server) = clients();
    server.lock().refuses_tokens = true;
    let error = read(&clients, ACCOUNT).await.expect_err("there is no token");
    assert!(!error.response_lost(), "{error:?}");
    assert!(server.lock().requests.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_account_that_is_deleted_while_it_is_used_is_created_again() {
    let (clients, server) = clients();
    read(&clients, ACCOUNT).await.expect("it has a token");
    server.lock().accounts.clear();
    "of no account".clone_into(&mut server.lock().valid);
    read(&clients, ACCOUNT).await.expect("it got another token");
    let server = server.lock();
    assert!(server.accounts.contains(ACCOUNT));
    assert_eq!(server.tokens_requested, 2);
}

#[tokio::test(start_paused = true)]
async fn a_token_request_that_fails_is_made_again_after_a_pause_up_to_three_times() {
    for code in [StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS, StatusCode::INTERNAL_SERVER_ERROR] {
        let (clients, server) = clients();
        server.lock().refusals = VecDeque::from([code; 3]);
        let began = Instant::now();
        read(&clients, ACCOUNT).await.expect("the fourth request succeeds");
        assert_eq!(began.elapsed(), Duration::from_millis(3500), "{code}");

        server.lock().refusals = VecDeque::from([code; 4]);
        "another".clone_into(&mut server.lock().valid);
        read(&clients, ACCOUNT).await.expect_err("there is no token");
        read(&clients, ACCOUNT).await.expect("the next request asks again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_cannot_be_renewed_is_used_until_it_expires() {
    let (clients, server) = clients();
    read(&clients, ACCOUNT).await.expect("it has a token");
    server.lock().refuses_tokens = true;
    sleep(Duration::from_mins(50)).await;
    let began = Instant::now();
    read(&clients, ACCOUNT).await.expect("the token holds");
    assert_eq!(began.elapsed(), Duration::ZERO, "nothing waits for the next token");
    sleep(Duration::from_mins(11)).await;
    read(&clients, ACCOUNT).await.expect_err("the token has expired");
    server.lock().refuses_tokens = false;
    read(&clients, ACCOUNT).await.expect("it got another token");
    assert_eq!(server.lock().tokens_requested, 2);
}

#[tokio::test(start_paused = true)]
async fn requests_that_waited_for_a_token_that_is_refused_fail_together() {
    let (clients, server) = clients();
    server.lock().refuses_tokens = true;
    let began = Instant::now();
    let results = futures::future::join_all((0..100).map(|_| read(&clients, ACCOUNT))).await;
    assert!(results.iter().all(Result::is_err));
    assert_eq!((began.elapsed(), server.lock().asked), (Duration::from_millis(3500), 4));
}

#[tokio::test(start_paused = true)]
async fn an_account_without_a_token_says_why_asks_less_and_less_often_and_recovers() {
    let refused = "the service account kube-system/replicaset-controller has no token: the request for its token was refused: \
                   grant the manager `create` of serviceaccounts/token, or leave --use-service-account-credentials off: \
                   cannot ";
    let missing = "the service account kube-system/replicaset-controller has no token: the API server issues no service \
                   account tokens: check its flags --service-account-issuer and --service-account-signing-key-file, or \
                   leave --use-service-account-credentials off: cannot ";
    for (is_missing, reason) in [(false, refused), (true, missing)] {
        let (clients, server, health) = clients_with_health();
        assert_eq!(health.check(), Ok(()));
        let set = |fails: bool| {
            let mut server = server.lock();
            if is_missing { server.has_no_tokens = fails } else { server.refuses_tokens = fails }
        };
        set(true);
        for _ in 0..600 {
            let error = read(&clients, ACCOUNT).await.expect_err("there is no token");
            let (_, message) = reason.split_once("has no token: ").expect("it is a reason");
            assert!(error.message().contains(message), "{}", error.message());
            sleep(Duration::from_secs(1)).await;
        }
        let problem = health.check().expect_err("there is no token");
        assert!(problem.starts_with(reason), "{problem}");
        // Each of the requests for a token that is not there is made again for the account that was created meanwhile.
        let asked = server.lock().asked;
        assert!((15..=60).contains(&asked), "{asked} requests in ten minutes");
        set(false);
        sleep(Duration::from_mins(1)).await;
        read(&clients, ACCOUNT).await.expect("there is a token");
        assert_eq!(health.check(), Ok(()));
    }
}
