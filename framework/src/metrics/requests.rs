//! The metrics of requests to the API server, by upstream's names.

use std::time::Duration;

use kcm_client::ClientMetrics;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

// As upstream.
const SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

const BYTES: [f64; 11] =
    [64.0, 256.0, 512.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0];

/// The metrics of requests to all hosts.
///
/// # Upstream
/// `k8s.io/component-base/metrics/prometheus/restclient`.
#[derive(Clone)]
pub(crate) struct RequestMetrics {
    requests: Family<Answered, Counter>,
    retries: Family<Repeated, Counter>,
    latency: Family<RequestLabels, Histogram>,
    throttled: Family<RequestLabels, Histogram>,
    request_size: Family<RequestLabels, Histogram>,
    response_size: Family<RequestLabels, Histogram>,
    given_up: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    code: String,
    host: String,
    method: String,
}

/// Upstream calls the method of a repetition its verb.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Repeated {
    code: String,
    host: String,
    verb: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    host: String,
    verb: String,
}

impl Default for RequestMetrics {
    fn default() -> Self {
        let seconds = || Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        let bytes = || Family::new_with_constructor((|| Histogram::new(BYTES)) as fn() -> Histogram);
        Self {
            requests: Family::default(),
            retries: Family::default(),
            latency: seconds(),
            throttled: seconds(),
            request_size: bytes(),
            response_size: bytes(),
            given_up: Counter::default(),
        }
    }
}

impl RequestMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("rest_client_requests", "[ALPHA] Requests by code, method and host", self.requests.clone());
        registry.register(
            "rest_client_request_retries",
            "Requests that repeat one that failed, by the code of their own response, verb and host",
            self.retries.clone(),
        );
        registry.register(
            "rest_client_request_duration_seconds",
            "[ALPHA] How long in seconds a request takes, by verb and host",
            self.latency.clone(),
        );
        registry.register(
            "rest_client_rate_limiter_duration_seconds",
            "[ALPHA] How long in seconds a request waits for the client-side rate limit, by verb and host",
            self.throttled.clone(),
        );
        registry.register(
            "rest_client_request_size_bytes",
            "[ALPHA] The size in bytes of the body of a request, by verb and host",
            self.request_size.clone(),
        );
        registry.register(
            "rest_client_response_size_bytes",
            "[ALPHA] The size in bytes of the body of a response, by verb and host",
            self.response_size.clone(),
        );
        registry.register(
            "api_server_writes_given_up",
            "Writes that were given up without a response, because another manager might act by then",
            self.given_up.clone(),
        );
    }

    pub(super) fn to(&self, host: String) -> ToHost {
        ToHost { host, families: self.clone(), methods: Mutex::default() }
    }
}

/// The metrics of the requests to one host by method, looked up once instead of at each request.
pub(super) struct ToHost {
    host: String,
    families: RequestMetrics,
    // There are not ten methods, nor many codes of one.
    methods: Mutex<Vec<OfMethod>>,
}

struct OfMethod {
    method: String,
    by_code: Vec<(Option<u16>, Counter)>,
    latency: Histogram,
    throttled: Histogram,
    request_size: Histogram,
    response_size: Histogram,
}

impl ToHost {
    fn with(&self, method: &str, count: impl FnOnce(&mut OfMethod)) {
        let mut methods = self.methods.lock();
        let at = methods.iter().position(|of| of.method == method).unwrap_or_else(|| {
            let labels = RequestLabels { host: self.host.clone(), verb: method.to_owned() };
            methods.push(OfMethod {
                method: method.to_owned(),
                by_code: Vec::new(),
                latency: self.families.latency.get_or_create(&labels).clone(),
                throttled: self.families.throttled.get_or_create(&labels).clone(),
                request_size: self.families.request_size.get_or_create(&labels).clone(),
                response_size: self.families.response_size.get_or_create(&labels).clone(),
            });
            methods.len() - 1
        });
        count(&mut methods[at]);
    }

    fn answered(&self, method: &str, code: Option<u16>) -> Counter {
        let answered = Answered { code: code_label(code), host: self.host.clone(), method: method.to_owned() };
        self.families.requests.get_or_create(&answered).clone()
    }
}

fn code_label(code: Option<u16>) -> String {
    code.map_or_else(|| "<error>".to_owned(), |code| code.to_string())
}

impl ClientMetrics for ToHost {
    fn request(&self, method: &str, code: Option<u16>, latency: Duration) {
        self.with(method, |of| {
            let at = of.by_code.iter().position(|(known, _)| *known == code).unwrap_or_else(|| {
                of.by_code.push((code, self.answered(method, code)));
                of.by_code.len() - 1
            });
            of.by_code[at].1.inc();
            of.latency.observe(latency.as_secs_f64());
        });
    }

    fn repetition(&self, method: &str, code: Option<u16>) {
        let labels = Repeated { code: code_label(code), host: self.host.clone(), verb: method.to_owned() };
        self.families.retries.get_or_create(&labels).inc();
    }

    fn given_up(&self) {
        self.families.given_up.inc();
    }

    fn throttled(&self, method: &str, waited: Duration) {
        self.with(method, |of| of.throttled.observe(waited.as_secs_f64()));
    }

    fn request_size(&self, method: &str, bytes: u64) {
        self.with(method, |of| of.request_size.observe(as_float(bytes)));
    }

    fn response_size(&self, method: &str, bytes: u64) {
        self.with(method, |of| of.response_size.observe(as_float(bytes)));
    }
}

/// A number of bytes as a float; more than 4 GiB count as 4 GiB.
fn as_float(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes).unwrap_or(u32::MAX))
}
