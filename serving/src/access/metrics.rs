//! The metrics of authentication and authorization.

use std::time::Duration;

use kcm_framework::prometheus_client::metrics::counter::Counter;
use kcm_framework::prometheus_client::metrics::family::Family;
use kcm_framework::prometheus_client::metrics::gauge::Gauge;
use kcm_framework::prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use kcm_framework::prometheus_client::registry::Registry;
use tokio::time::Instant;

type Label = [(&'static str, &'static str); 1];
type Code = [(&'static str, String); 1];

/// The default of Prometheus' client for Go.
const LOOKUP_SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const REVIEW_SECONDS: [f64; 8] = [0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0];

const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;
const MONTH: f64 = 30.0 * DAY;
const REMAINING_SECONDS: [f64; 14] = [
    0.0,
    HOUR / 2.0,
    HOUR,
    2.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
    DAY,
    2.0 * DAY,
    4.0 * DAY,
    7.0 * DAY,
    MONTH,
    3.0 * MONTH,
    6.0 * MONTH,
    12.0 * MONTH,
];

/// The metrics of authentication and authorization.
///
/// # Upstream
/// `apiserver/pkg/authentication`: `token/cache/stats.go`, `authenticatorfactory/metrics.go` and
/// `request/x509/x509.go`; `apiserver/pkg/endpoints/filters/metrics.go`, which counts a request after its response.
#[derive(Debug, Clone)]
pub(super) struct AccessMetrics {
    lookups: Family<Label, Counter>,
    lookup_seconds: Family<Label, Histogram>,
    fetches: Family<Label, Counter>,
    active_fetches: Family<Label, Gauge>,
    pub(super) token_reviews: Reviews,
    pub(super) access_reviews: Reviews,
    certificate_seconds: Histogram,
    users: Family<Label, Counter>,
    authentications: Family<Label, Counter>,
    authentication_seconds: Family<Label, Histogram>,
    authorizations: Family<Label, Counter>,
    authorization_seconds: Family<Label, Histogram>,
}

impl AccessMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            lookups: Family::default(),
            lookup_seconds: Family::new_with_constructor(|| Histogram::new(LOOKUP_SECONDS)),
            fetches: Family::default(),
            active_fetches: Family::default(),
            token_reviews: Reviews::new(),
            access_reviews: Reviews::new(),
            certificate_seconds: Histogram::new(REMAINING_SECONDS),
            users: Family::default(),
            authentications: Family::default(),
            authentication_seconds: decision_seconds(),
            authorizations: Family::default(),
            authorization_seconds: decision_seconds(),
        };
        // The encoder adds `_total`.
        registry.register(
            "authentication_token_cache_request",
            "[ALPHA] Tokens that were looked up in the cache of reviews, by hit and miss",
            metrics.lookups.clone(),
        );
        registry.register(
            "authentication_token_cache_request_duration_seconds",
            "[ALPHA] How long in seconds a token takes to be known, by hit and miss of the cache of reviews",
            metrics.lookup_seconds.clone(),
        );
        registry.register(
            "authentication_token_cache_fetch",
            "[ALPHA] Reviews of tokens, by whether they had an answer",
            metrics.fetches.clone(),
        );
        registry.register(
            "authentication_token_cache_active_fetch_count",
            "[ALPHA] Reviews of tokens that are in flight, and requests that wait for one",
            metrics.active_fetches.clone(),
        );
        metrics.token_reviews.register(registry, "authn", "a token");
        metrics.access_reviews.register(registry, "authz", "access");
        registry.register(
            "apiserver_client_certificate_expiration_seconds",
            "[ALPHA] For how many more seconds the certificate of a client is valid",
            metrics.certificate_seconds.clone(),
        );
        registry.register(
            "authenticated_user_requests",
            "[ALPHA] Requests of authenticated users, by the class of the name of the user",
            metrics.users.clone(),
        );
        registry.register(
            "authentication_attempts",
            "[ALPHA] Requests by the result of their authentication",
            metrics.authentications.clone(),
        );
        registry.register(
            "authentication_duration_seconds",
            "[ALPHA] How long in seconds the authentication of a request takes, by its result",
            metrics.authentication_seconds.clone(),
        );
        registry.register(
            "authorization_attempts",
            "[ALPHA] Requests by the result of their authorization: allowed, denied, no-opinion or error",
            metrics.authorizations.clone(),
        );
        registry.register(
            "authorization_duration_seconds",
            "[ALPHA] How long in seconds the authorization of a request takes, by its result",
            metrics.authorization_seconds.clone(),
        );
        metrics
    }

    /// Counts a lookup of a token in the cache of reviews, and the time until its user was known.
    pub(super) fn token_looked_up(&self, is_hit: bool, took: Duration) {
        let status = [("status", if is_hit { "hit" } else { "miss" })];
        self.lookups.get_or_create(&status).inc();
        self.lookup_seconds.get_or_create(&status).observe(took.as_secs_f64());
    }

    /// Counts a request that waits for the review of a token, until the value is dropped.
    pub(super) fn waits_for_review(&self) -> Active {
        self.active("blocked")
    }

    /// Counts a review of a token that is in flight, until the value is dropped.
    pub(super) fn reviews_token(&self) -> Active {
        self.active("in_flight")
    }

    fn active(&self, status: &'static str) -> Active {
        let gauge = self.active_fetches.get_or_create(&[("status", status)]).clone();
        gauge.inc();
        Active(gauge)
    }

    /// Counts a review of a token that ended.
    pub(super) fn token_reviewed(&self, succeeded: bool) {
        self.fetches.get_or_create(&[("status", if succeeded { "ok" } else { "error" })]).inc();
    }

    /// Counts a request whose user is known, or whose credentials are not valid.
    pub(super) fn authenticated(&self, username: Option<&str>, since: Instant) {
        if let Some(username) = username {
            self.users.get_or_create(&[("username", class_of(username))]).inc();
        }
        let outcome = [("result", if username.is_some() { "success" } else { "error" })];
        self.authentications.get_or_create(&outcome).inc();
        self.authentication_seconds.get_or_create(&outcome).observe(since.elapsed().as_secs_f64());
    }

    /// Counts a request by the result of its authorization.
    pub(super) fn authorized(&self, result: &'static str, since: Instant) {
        let outcome = [("result", result)];
        self.authorizations.get_or_create(&outcome).inc();
        self.authorization_seconds.get_or_create(&outcome).observe(since.elapsed().as_secs_f64());
    }

    /// Observes the time for which a certificate of a client is still valid, which is negative after its end.
    pub(super) fn certificate_presented(&self, remaining_seconds: f64) {
        self.certificate_seconds.observe(remaining_seconds);
    }
}

/// The requests for reviews of one kind.
#[derive(Debug, Clone)]
pub(super) struct Reviews {
    requests: Family<Code, Counter>,
    seconds: Family<Code, Histogram>,
}

impl Reviews {
    fn new() -> Self {
        Self { requests: Family::default(), seconds: Family::new_with_constructor(|| Histogram::new(REVIEW_SECONDS)) }
    }

    /// Registers the metrics of reviews of this `subject`.
    fn register(&self, registry: &mut Registry, kind: &str, subject: &str) {
        let name = format!("apiserver_delegated_{kind}_request");
        registry.register(
            &name,
            format!("[ALPHA] Requests for a review of {subject}, by the code of the response"),
            self.requests.clone(),
        );
        registry.register(
            format!("{name}_duration_seconds"),
            format!(
                "[ALPHA] How long in seconds a request for a review of {subject} takes, by the code of the response"
            ),
            self.seconds.clone(),
        );
    }

    /// Counts an attempt of a review, by the code of its response if it has one.
    pub(super) fn answered(&self, code: Option<u16>, since: Instant) {
        let code = [("code", code.map_or_else(|| "<error>".to_owned(), |code| code.to_string()))];
        self.requests.get_or_create(&code).inc();
        self.seconds.get_or_create(&code).observe(since.elapsed().as_secs_f64());
    }
}

/// The class of a user's name, so that no scrape shows names and their number is bounded.
///
/// # Upstream
/// `compressUsername`.
fn class_of(username: &str) -> &'static str {
    const KNOWN: [&str; 5] = ["admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"];
    match KNOWN.into_iter().find(|known| *known == username) {
        Some(known) => known,
        None if username.contains('@') => "email_id",
        None => "other",
    }
}

fn decision_seconds() -> Family<Label, Histogram> {
    Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 15)))
}

/// Something that is counted until it is dropped.
pub(super) struct Active(Gauge);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.dec();
    }
}
