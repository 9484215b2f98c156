//! The metrics of exec plugins, by upstream's names.

use std::process::ExitStatus;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::time::Instant;

use super::ClientCertificate;
use crate::x509::{Validity, validity};

const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;
const MONTH: f64 = 30.0 * DAY;

// As upstream.
const AGES: [f64; 11] = [
    HOUR / 6.0,
    HOUR / 2.0,
    HOUR,
    4.0 * HOUR,
    DAY,
    7.0 * DAY,
    MONTH,
    3.0 * MONTH,
    6.0 * MONTH,
    12.0 * MONTH,
    48.0 * MONTH,
];

/// The metrics of the exec plugins of all kubeconfigs.
///
/// # Upstream
/// `client-go/plugin/pkg/client/auth/exec/metrics.go`. `rest_client_exec_plugin_policy_call_total` is declared there and
/// never registered.
#[derive(Clone)]
pub struct ExecPluginMetrics {
    calls: Family<Call, Counter>,
    /// Without labels. It is shown once a certificate was replaced: empty buckets are most of an idle scrape.
    rotation_age: Family<[(&'static str, &'static str); 0], Histogram>,
    ttl: Gauge<f64, AtomicU64>,
    /// The certificate of each plugin.
    certificates: Arc<Mutex<Vec<Weak<Slot>>>>,
}

type Slot = Mutex<Option<Returned>>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    call_status: &'static str,
    code: i64,
}

/// The client certificate that a plugin returned last.
struct Returned {
    certificate: Arc<ClientCertificate>,
    validity: Validity,
    /// When it was returned, by both clocks.
    at: (Instant, Timestamp),
}

impl Default for ExecPluginMetrics {
    fn default() -> Self {
        let (calls, certificates) = Default::default();
        let ttl = Gauge::default();
        ttl.set(f64::INFINITY);
        let rotation_age = Family::new_with_constructor((|| Histogram::new(AGES)) as fn() -> Histogram);
        Self { calls, rotation_age, ttl, certificates }
    }
}

impl std::fmt::Debug for ExecPluginMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecPluginMetrics").finish_non_exhaustive()
    }
}

impl ExecPluginMetrics {
    /// Registers the metrics of exec plugins in `registry`.
    pub fn register(&self, registry: &mut Registry) {
        // The encoder adds `_total`.
        registry.register(
            "rest_client_exec_plugin_call",
            "[ALPHA] Calls of exec plugins, by their result and the exit code, which is 0 for a success alone",
            self.calls.clone(),
        );
        registry.register(
            "rest_client_exec_plugin_certificate_rotation_age",
            "[ALPHA] How old in seconds the client certificate of an exec plugin was when another took its place",
            self.rotation_age.clone(),
        );
        registry.register(
            "rest_client_exec_plugin_ttl_seconds",
            "[ALPHA] For how many more seconds the client certificates of exec plugins are valid, the least of all; infinite without any",
            self.ttl.clone(),
        );
    }

    /// Computes the metrics that depend on the time.
    pub fn refresh(&self) {
        let mut certificates = self.certificates.lock();
        certificates.retain(|slot| slot.strong_count() > 0);
        let slots = certificates.iter().filter_map(Weak::upgrade);
        let left = slots.filter_map(|slot| slot.lock().as_ref().map(Returned::seconds_left));
        self.ttl.set(left.fold(f64::INFINITY, f64::min));
    }

    /// The metrics of one plugin.
    pub(super) fn of_plugin(&self) -> OfPlugin {
        let certificate = Arc::default();
        self.certificates.lock().push(Arc::downgrade(&certificate));
        OfPlugin { metrics: self.clone(), certificate }
    }
}

impl Returned {
    fn seconds_left(&self) -> f64 {
        let (at, wall) = self.at;
        self.validity.not_after.duration_since(wall).as_secs_f64() - at.elapsed().as_secs_f64()
    }
}

/// The metrics of one plugin.
pub(super) struct OfPlugin {
    metrics: ExecPluginMetrics,
    certificate: Arc<Slot>,
}

impl OfPlugin {
    /// Counts a call that ended; a plugin that was killed has no status.
    pub(super) fn ended(&self, status: Option<ExitStatus>) {
        /// Go's exit code of a process that a signal ended.
        const SIGNALLED: i32 = -1;
        let code = status.and_then(|status| status.code()).unwrap_or(SIGNALLED);
        self.called(if code == 0 { "no_error" } else { "plugin_execution_error" }, code);
    }

    /// Counts a call of a program that cannot be started.
    pub(super) fn not_started(&self) {
        self.called("plugin_not_found_error", 1);
    }

    fn called(&self, call_status: &'static str, code: i32) {
        self.metrics.calls.get_or_create(&Call { call_status, code: code.into() }).inc();
    }

    /// The plugin has returned credentials, with this client certificate.
    pub(super) fn returned(&self, certificate: Option<&Arc<ClientCertificate>>, wall: Timestamp) {
        let mut last = self.certificate.lock();
        if let Some(last) = last.as_ref().filter(|last| certificate != Some(&last.certificate)) {
            let age = wall.duration_since(last.validity.not_before);
            self.metrics.rotation_age.get_or_create(&[]).observe(age.as_secs_f64());
        }
        *last = certificate.and_then(|certificate| {
            let validity = validity_of(certificate)?;
            Some(Returned { certificate: Arc::clone(certificate), validity, at: (Instant::now(), wall) })
        });
    }
}

/// The validity of the first certificate; `None` if there is none.
fn validity_of(certificate: &ClientCertificate) -> Option<Validity> {
    let pem = STANDARD.decode(&certificate.certificate).ok()?;
    validity(&CertificateDer::from_pem_slice(&pem).ok()?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::time::Duration;

    use rcgen::{CertificateParams, KeyPair};
    use tokio::time::advance;

    use super::*;

    /// Returns the lines of the metrics in a scrape.
    fn shown(metrics: &ExecPluginMetrics) -> Vec<String> {
        metrics.refresh();
        let (mut registry, mut page) = (Registry::default(), String::new());
        metrics.register(&mut registry);
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        let is_shown = |line: &&str| !line.starts_with('#') && !line.contains("_bucket");
        page.lines()
            .filter(is_shown)
            .map(|line| line.replace("rest_client_exec_plugin_", "").replace("{}", ""))
            .collect()
    }

    /// A certificate that is valid for the days of 2030 from the first to the other.
    fn certificate(from: u8, to: u8) -> Arc<ClientCertificate> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.not_before = rcgen::date_time_ymd(2030, 1, from);
        params.not_after = rcgen::date_time_ymd(2030, 1, to);
        let pem = params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
        Arc::new(ClientCertificate { certificate: STANDARD.encode(pem), key: String::new() })
    }

    #[test]
    fn calls_are_counted_by_their_result_and_exit_code() {
        let metrics = ExecPluginMetrics::default();
        let plugin = metrics.of_plugin();
        plugin.ended(Some(ExitStatus::from_raw(0)));
        plugin.ended(Some(ExitStatus::from_raw(0)));
        plugin.ended(Some(ExitStatus::from_raw(2 << 8)));
        plugin.ended(None);
        plugin.not_started();
        let shown = shown(&metrics);
        for sample in [
            "call_total{call_status=\"no_error\",code=\"0\"} 2",
            "call_total{call_status=\"plugin_execution_error\",code=\"2\"} 1",
            "call_total{call_status=\"plugin_execution_error\",code=\"-1\"} 1",
            "call_total{call_status=\"plugin_not_found_error\",code=\"1\"} 1",
        ] {
            assert!(shown.iter().any(|line| line == sample), "{sample} is not in {shown:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_certificate_that_ends_first_counts_and_a_replaced_one_has_an_age() {
        let metrics = ExecPluginMetrics::default();
        let (one, other) = (metrics.of_plugin(), metrics.of_plugin());
        let is = |age: Option<&str>, ttl: &str| {
            let sum = age.map(|age| format!("certificate_rotation_age_sum {age}"));
            let count = age.map(|_| "certificate_rotation_age_count 1".to_owned());
            let expected: Vec<_> = sum.into_iter().chain(count).chain([format!("ttl_seconds {ttl}")]).collect();
            assert_eq!(shown(&metrics), expected);
        };
        is(None, "inf");
        let noon: Timestamp = "2030-01-02T12:00:00Z".parse().unwrap();
        let (short, long) = (certificate(2, 3), certificate(1, 20));
        one.returned(Some(&short), noon);
        one.returned(Some(&short), noon);
        other.returned(Some(&long), noon);
        is(None, "43200.0");
        advance(Duration::from_hours(13)).await;
        is(None, "-3600.0");
        one.returned(None, noon);
        is(Some("43200.0"), "1465200.0");
        drop(other);
        is(Some("43200.0"), "inf");
    }
}
