//! The metrics of requests to the API server, by upstream's names.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::client::ClientMetrics;

// As upstream.
const SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// The families that the requests to all hosts share.
///
/// # Upstream
/// `k8s.io/component-base/metrics/prometheus/restclient`.
#[derive(Clone)]
pub(crate) struct RequestMetrics {
    requests: Family<Answered, Counter>,
    latency: Family<Asked, Histogram>,
    throttled: Family<Asked, Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    code: String,
    host: String,
    method: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    host: String,
    verb: String,
}

impl Default for RequestMetrics {
    fn default() -> Self {
        let histogram = || Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        Self { requests: Family::default(), latency: histogram(), throttled: histogram() }
    }
}

impl RequestMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("rest_client_requests", "Requests by code, method and host", self.requests.clone());
        registry.register(
            "rest_client_request_duration_seconds",
            "How long in seconds a request takes, by verb and host",
            self.latency.clone(),
        );
        registry.register(
            "rest_client_rate_limiter_duration_seconds",
            "How long in seconds a request waits for the client-side rate limit, by verb and host",
            self.throttled.clone(),
        );
    }

    pub(super) fn to(&self, host: String) -> ToHost {
        ToHost { host, families: self.clone() }
    }
}

/// The requests to one host.
pub(super) struct ToHost {
    host: String,
    families: RequestMetrics,
}

impl ToHost {
    fn asked(&self, method: &str) -> Asked {
        Asked { host: self.host.clone(), verb: method.to_owned() }
    }
}

impl ClientMetrics for ToHost {
    fn request(&self, method: &str, code: Option<u16>, latency: Duration) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        let answered = Answered { code, host: self.host.clone(), method: method.to_owned() };
        self.families.requests.get_or_create(&answered).inc();
        self.families.latency.get_or_create(&self.asked(method)).observe(latency.as_secs_f64());
    }

    fn throttled(&self, method: &str, waited: Duration) {
        self.families.throttled.get_or_create(&self.asked(method)).observe(waited.as_secs_f64());
    }
}
