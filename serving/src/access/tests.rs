//! The access table against an API server that knows three tokens, and the number of reviews.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use kcm_framework::client::{ClientBuilder, Limits};
use kcm_framework::clock::SimulatedClock;
use kcm_framework::{Format, Metrics, user_agent};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::advance;

use super::authorities::Authorities;
use super::cluster_config::ClusterConfig;
use super::reviewer::Reviewer;
use super::trust::BundleSource;
use super::*;
use crate::answers::Answers;
use crate::connection_limit::ConnectionLimit;
use crate::peer::Peer;
use crate::revocation::AllowedRequest;
use crate::routes::router;
use crate::tests::authority::Authority;
use crate::tests::{settings, state};
use upstream_metrics::{scraped, table};

#[path = "../../../controller-manager/src/tests/upstream_metrics.rs"]
mod upstream_metrics;

const TABLE: &str = include_str!("../../../controller-manager/tests/data/access.tsv");

/// The reviews that an API server was sent.
type Reviews = Arc<Mutex<Vec<Value>>>;

/// Whose token it is, and who may get `/metrics`.
fn answer(review: &Value) -> Value {
    if review["kind"] == "TokenReview" {
        let user = match review["spec"]["token"].as_str() {
            Some("reader's") => "reader",
            Some("nobody's") => "nobody",
            Some("slow") => "slow",
            _other => return json!({ "authenticated": false, "error": "invalid bearer token" }),
        };
        return json!({ "authenticated": true, "user": { "username": user, "groups": ["people"] } });
    }
    let spec = &review["spec"];
    let attributes = &spec["nonResourceAttributes"];
    let allowed = spec["user"] == "reader" && attributes["path"] == "/metrics" && attributes["verb"] == "get";
    json!({ "allowed": allowed })
}

fn api_server(reviews: &Reviews, decides: &Arc<Mutex<Decides>>) -> kube::Client {
    let (reviews, decides) = (Arc::clone(reviews), Arc::clone(decides));
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (reviews, decides) = (Arc::clone(&reviews), Arc::clone(&decides));
        async move {
            let body = request.into_body().collect().await.expect("it is memory").to_bytes();
            let mut review: Value = serde_json::from_slice(&body).expect("it is JSON");
            reviews.lock().push(review.clone());
            // Time for equal reviews to meet.
            let hangs = review["spec"]["token"] == "hangs";
            tokio::time::sleep(if hangs { Duration::from_mins(10) } else { Duration::from_millis(100) }).await;
            let (code, status) = match *decides.lock() {
                Decides::AsStated => (201, answer(&review)),
                Decides::AgainstAll => (201, json!({ "authenticated": false, "allowed": false })),
                Decides::Never => (500, json!({})),
            };
            review["status"] = status;
            let response =
                Response::builder().status(code).body(kube::client::Body::from(review.to_string().into_bytes()));
            Ok::<_, Infallible>(response.expect("it is a response"))
        }
    });
    kube::Client::new(service, "default")
}

/// The decisions of the API server from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decides {
    AsStated,
    Never,
    /// All tokens and rights were revoked.
    AgainstAll,
}

struct World {
    clients: Authority,
    proxies: Authority,
    strangers: Authority,
    answers: Answers,
    reviews: Reviews,
    metrics: Arc<Metrics>,
    access: Arc<Access>,
    decides: Arc<Mutex<Decides>>,
}

impl World {
    fn new() -> Self {
        Self::with(true)
    }

    /// A world in which reviews are sent, or there is no API server for them.
    fn with(has_reviews: bool) -> Self {
        let (clients, proxies) = (Authority::new(), Authority::new());
        let one = |text: &str| vec![text.to_owned()];
        let headers = HeaderNames {
            username: one("X-Remote-User"),
            group: one("X-Remote-Group"),
            allowed_names: one("front-proxy"),
            ..HeaderNames::default()
        };
        let trust = Arc::new(Trust::new(BundleSource::Cluster, BundleSource::Cluster, HeaderNames::default()));
        trust.follow(&ClusterConfig { client_ca: clients.pem(), request_header_ca: proxies.pem(), headers });
        let reviews = Reviews::default();
        let decides = Arc::new(Mutex::new(Decides::AsStated));
        let api = ClientBuilder::new(api_server(&reviews, &decides), user_agent(), Limits::UNLIMITED);
        let metrics = Metrics::new();
        let counted = metrics.register(AccessMetrics::register);
        let reviewer = has_reviews.then(|| Arc::new(Reviewer::new(api.client_for("access"), counted.clone())));
        let clock = Arc::new(SimulatedClock::starting_at("2026-01-02T03:04:05Z".parse().expect("it is a time")));
        let second = Duration::from_secs(1);
        let authentication = Authentication::new(trust, clock, reviewer.clone(), 10 * second, counted.clone());
        let always_allow = AllowedPaths::read(&one("/healthz")).expect("it is a path");
        let options =
            AuthorizationOptions { kubeconfig: None, always_allow, allowed_ttl: 10 * second, denied_ttl: 10 * second };
        let access = Arc::new(Access::new(authentication, Authorization::new(options, reviewer), counted));
        let answers = Answers::new(Arc::clone(&access), router(&Arc::new(state(&settings(&[]))), None));
        Self { clients, proxies, strangers: Authority::new(), answers, reviews, metrics, access, decides }
    }

    /// The certificate and the headers of a credential of the table.
    fn credential(&self, name: &str) -> (Option<CertificateDer<'static>>, Vec<(&'static str, &'static str)>) {
        let token = |token| vec![("authorization", token)];
        let user = |user| vec![("x-remote-user", user), ("x-remote-group", "people")];
        let (reader, nobody) = ("Bearer reader's", "Bearer nobody's");
        match name {
            "none" => (None, Vec::new()),
            "wrong-token" => (None, token("Bearer wrong")),
            "token-that-hangs" => (None, token("Bearer hangs")),
            "token-of-nobody" => (None, token(nobody)),
            "token-of-reader" => (None, token(reader)),
            "certificate-of-nobody" => (Some(self.clients.certify("nobody", &["people"])), Vec::new()),
            "certificate-of-reader" => (Some(self.clients.certify("reader", &["people"])), Vec::new()),
            "certificate-of-masters-until-tomorrow" => {
                let ends = |params: &mut rcgen::CertificateParams| params.not_after = rcgen::date_time_ymd(2026, 1, 3);
                (Some(self.clients.certify_with("root", &["system:masters"], ends)), Vec::new())
            }
            "certificate-of-masters" => (Some(self.clients.certify("root", &["system:masters"])), Vec::new()),
            "unknown-certificate" => (Some(self.strangers.certify("reader", &["people"])), Vec::new()),
            "unknown-certificate-and-token-of-reader" => {
                (Some(self.strangers.certify("x", &["people"])), token(reader))
            }
            "certificate-of-nobody-and-token-of-reader" => {
                (Some(self.clients.certify("nobody", &["x"])), token(reader))
            }
            "certificate-of-nobody-and-headers-for-reader" => {
                (Some(self.clients.certify("nobody", &["people"])), user("reader"))
            }
            "headers-for-reader" => (None, user("reader")),
            "proxy-for-nobody" => (Some(self.proxies.certify("front-proxy", &["x"])), user("nobody")),
            "proxy-for-reader" => (Some(self.proxies.certify("front-proxy", &["x"])), user("reader")),
            "proxy-without-headers" => (Some(self.proxies.certify("front-proxy", &["x"])), Vec::new()),
            "other-proxy-for-reader" => (Some(self.proxies.certify("other", &["x"])), user("reader")),
            other => panic!("no credential is called {other}"),
        }
    }

    async fn get(&self, path: &str, credential: &str) -> u16 {
        self.answer(path, credential).await.status().as_u16()
    }

    async fn answer(&self, path: &str, credential: &str) -> Response<Body> {
        let (request, peer) = self.request(path, credential);
        let place = Arc::new(ConnectionLimit::new(1).enter([10, 0, 0, 1].into(), Instant::now()));
        let in_place = place.admit(0).expect("it is the first");
        self.answers.answer(request, &peer, in_place).await.response
    }

    fn request(&self, path: &str, credential: &str) -> (Request<Body>, Arc<Peer>) {
        let (certificate, headers) = self.credential(credential);
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::empty()).expect("it is a request");
        (request, Arc::new(Peer { certificates: certificate.into_iter().collect() }))
    }

    fn scrape(&self) -> String {
        String::from_utf8(self.metrics.expose(Format::Text)).expect("it is text")
    }

    fn reviews_of(&self, kind: &str) -> usize {
        self.reviews.lock().iter().filter(|review| review["kind"] == kind).count()
    }

    fn cost(&self) -> (usize, usize) {
        (self.reviews_of("TokenReview"), self.reviews_of("SubjectAccessReview"))
    }
}

#[tokio::test(start_paused = true)]
async fn every_credential_gets_what_the_table_says() {
    let world = World::new();
    let rows = TABLE.lines().filter(|line| !line.starts_with('#')).skip(1);
    let mut checked = 0;
    for row in rows {
        let columns: Vec<&str> = row.split('\t').collect();
        let [path, credential, code] = columns[..] else { panic!("{row:?} has no three columns") };
        assert_eq!(world.get(path, credential).await.to_string(), code, "{path} with {credential}");
        checked += 1;
    }
    assert!(checked > 30);
}

#[tokio::test(start_paused = true)]
async fn answers_count_for_their_time_and_equal_reviews_are_one() {
    let world = World::new();
    let world = &world;
    let at_once = (0..50).map(|_| world.get("/metrics", "token-of-reader"));
    assert!(futures::future::join_all(at_once).await.into_iter().all(|code| code == 200));
    assert_eq!(world.cost(), (1, 1));
    advance(Duration::from_millis(9500)).await;
    world.get("/metrics", "token-of-reader").await;
    assert_eq!(world.cost(), (1, 1));
    advance(Duration::from_secs(1)).await;
    world.get("/metrics", "token-of-reader").await;
    assert_eq!(world.cost(), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_request_without_valid_credentials_costs_one_review_at_most_which_is_kept() {
    let world = World::new();
    for (credential, cost) in
        [("none", (0, 1)), ("wrong-token", (1, 1)), ("headers-for-reader", (1, 1)), ("unknown-certificate", (1, 1))]
    {
        for _ in 0..20 {
            world.get("/metrics", credential).await;
        }
        assert_eq!(world.cost(), cost, "{credential}");
    }
    for path in ["/healthz", "/healthz?exclude=a", "/healthz?exclude=b"] {
        world.get(path, "none").await;
    }
    assert_eq!(world.cost(), (1, 1), "open paths cost nothing");
}

/// Too many requests that wait for reviews; a probe does not wait.
#[tokio::test(start_paused = true)]
async fn a_probe_is_answered_while_too_many_requests_wait() {
    let world = World::new();
    let world = &world;
    let flood = (0..1100).map(|_| world.get("/metrics", "token-of-nobody"));
    let probe = async {
        tokio::task::yield_now().await;
        (world.get("/healthz", "none").await, world.get("/healthz", "token-of-nobody").await)
    };
    let (codes, probe) = tokio::join!(futures::future::join_all(flood), probe);
    let count = |code| codes.iter().filter(|found| **found == code).count();
    assert_eq!((count(403), count(503)), (1024, 76));
    assert_eq!(probe, (200, 503));
    assert_eq!(world.get("/metrics", "token-of-nobody").await, 403);
}

/// Forty responses that their user does not read.
#[tokio::test(start_paused = true)]
async fn a_user_that_reads_nothing_keeps_no_other_user_out() {
    let world = World::new();
    let world = &world;
    let unread = futures::future::join_all((0..40).map(|_| world.answer("/metrics", "token-of-reader"))).await;
    let count = |code: u16| unread.iter().filter(|response| response.status() == code).count();
    assert_eq!((count(200), count(503)), (24, 16));
    let begun = Instant::now();
    assert_eq!(world.get("/metrics", "certificate-of-masters").await, 200);
    assert_eq!((begun.elapsed(), world.get("/metrics", "token-of-reader").await), (Duration::ZERO, 503));
    advance(Duration::from_secs(30)).await;
    world.answers.drop_stalled(Instant::now());
    assert_eq!(world.get("/metrics", "token-of-reader").await, 200);
}

/// Refusals that their client does not read.
#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_gets_status_codes_only() {
    let world = World::new();
    let mut unread = Vec::new();
    let mut whole = 0;
    for _ in 0..100 {
        let response = world.answer("/metrics", "none").await;
        assert_eq!(response.status(), 403);
        whole += usize::from(!response.body().is_end_stream());
        unread.push(response);
    }
    assert_eq!(whole, 64);
    let probe = world.answer("/healthz", "none").await;
    assert_eq!(probe.into_body().collect().await.expect("it is memory").to_bytes(), "ok");
    let of_user = world.answer("/metrics", "token-of-nobody").await;
    assert!(!of_user.body().is_end_stream(), "users have permits of their own");
    drop(unread);
    assert!(!world.answer("/metrics", "none").await.body().is_end_stream());
}

/// Two users of one token at once, one later, one with a wrong token, and a certificate.
#[tokio::test(start_paused = true)]
async fn what_requests_cost_is_counted_in_upstreams_metrics() {
    let world = World::new();
    let world = &world;
    futures::future::join_all((0..2).map(|_| world.get("/metrics", "token-of-reader"))).await;
    for credential in ["token-of-reader", "wrong-token", "certificate-of-reader"] {
        world.get("/metrics", credential).await;
    }
    let page = world.scrape();
    for sample in [
        "authentication_token_cache_request_total{status=\"hit\"} 1",
        "authentication_token_cache_request_total{status=\"miss\"} 3",
        "authentication_token_cache_fetch_total{status=\"ok\"} 1",
        "authentication_token_cache_fetch_total{status=\"error\"} 1",
        "authentication_token_cache_active_fetch_count{status=\"blocked\"} 0",
        "authentication_token_cache_active_fetch_count{status=\"in_flight\"} 0",
        "apiserver_delegated_authn_request_total{code=\"201\"} 2",
        "apiserver_delegated_authz_request_total{code=\"201\"} 2",
        "apiserver_client_certificate_expiration_seconds_count 1",
        "authenticated_user_requests{username=\"other\"} 4",
        "authentication_attempts{result=\"success\"} 4",
        "authentication_attempts{result=\"error\"} 1",
        "authentication_duration_seconds_count{result=\"success\"} 4",
        "authorization_attempts_total{result=\"allowed\"} 4",
        "authorization_duration_seconds_count{result=\"allowed\"} 4",
    ] {
        assert!(page.lines().any(|line| line == sample), "{sample} is not in\n{page}");
    }
    let (ours, theirs) = (scraped(&page), table());
    let prefixes = ["authenticat", "authorization_", "apiserver_delegated_", "apiserver_client_"];
    let mut compared = 0;
    for (name, theirs) in theirs.iter().filter(|(name, _)| prefixes.iter().any(|prefix| name.starts_with(prefix))) {
        assert_eq!(ours.get(*name), Some(theirs), "{name}");
        compared += 1;
    }
    assert_eq!(compared, 14);
}

/// A response that never ends, to a request for `/metrics` that was allowed.
fn endless(world: &World, credential: &str) -> Body {
    let (request, peer) = world.request("/metrics", credential);
    let (parts, _) = request.into_parts();
    let endless = Body::from_stream(futures::stream::pending::<Result<&str, Infallible>>());
    AllowedRequest { access: Arc::clone(&world.access), parts, peer }.limit(endless)
}

/// Returns the time until the body ends, or `None` if it goes on for so long.
async fn ends_within(body: &mut Body, longest: Duration) -> Option<Duration> {
    let begun = Instant::now();
    let frame = tokio::time::timeout(longest, body.frame()).await.ok()?;
    assert!(frame.is_none(), "it has no content");
    Some(begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_within_a_minute_after_its_right_is_revoked() {
    let hour = Duration::from_hours(1);
    for credential in ["token-of-reader", "certificate-of-reader"] {
        let world = World::new();
        let mut body = endless(&world, credential);
        assert_eq!(ends_within(&mut body, hour).await, None, "{credential}");
        assert_eq!(world.reviews_of("SubjectAccessReview"), 59, "one a minute");
        *world.decides.lock() = Decides::AgainstAll;
        let ended = ends_within(&mut body, hour).await.expect("the right was revoked");
        assert!(ended < Duration::from_secs(61), "{credential}: {ended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_within_a_minute_after_its_certificate() {
    let world = World::new();
    let mut body = endless(&world, "certificate-of-masters-until-tomorrow");
    // The time is 03:04:05.
    let left = Duration::from_secs(24 * 3600 - (3 * 3600 + 4 * 60 + 5));
    let ended = ends_within(&mut body, 2 * left).await.expect("the certificate has ended");
    assert!(ended >= left && ended < left + Duration::from_mins(1), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_goes_on_while_the_api_server_does_not_decide() {
    let world = World::new();
    let mut body = endless(&world, "certificate-of-reader");
    *world.decides.lock() = Decides::Never;
    assert_eq!(ends_within(&mut body, Duration::from_hours(1)).await, None);
}

#[tokio::test(start_paused = true)]
async fn masters_cost_no_review() {
    let world = World::new();
    assert_eq!(world.get("/metrics", "certificate-of-masters").await, 200);
    assert_eq!(world.cost(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn without_an_api_server_to_ask_only_masters_get_more_than_open_paths() {
    let world = World::with(false);
    for (path, credential, code) in [
        ("/healthz", "none", 200),
        ("/healthz", "token-of-reader", 200),
        ("/metrics", "none", 403),
        ("/metrics", "token-of-reader", 403),
        ("/metrics", "certificate-of-reader", 403),
        ("/metrics", "certificate-of-masters", 200),
        ("/configz", "certificate-of-masters", 200),
    ] {
        assert_eq!(world.get(path, credential).await, code, "{path} with {credential}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_is_given_up_after_ten_seconds() {
    let world = World::with(true);
    let started = tokio::time::Instant::now();
    assert_eq!(world.get("/metrics", "token-that-hangs").await, 401);
    assert_eq!(started.elapsed().as_secs(), 10);
    assert_eq!(world.get("/metrics", "token-of-reader").await, 200);
}

#[test]
fn the_certificates_of_the_table_are_verified_by_their_authority_only() {
    let (one, other) = (Authority::new(), Authority::new());
    let now = rustls::pki_types::UnixTime::since_unix_epoch(Duration::from_secs(1_700_000_000));
    let authorities = Authorities::read(one.pem().as_bytes()).expect("it is an authority");
    assert!(authorities.verify(&[one.certify("a", &["b"])], now).is_ok());
    assert!(authorities.verify(&[other.certify("a", &["b"])], now).is_err());
    assert!(authorities.verify(&[], now).is_err());
}
