//! The end of the kubeconfig's client certificate: a metric, and a check of readiness.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use kcm_framework::Metrics;
use kcm_framework::clock::Clock;
use kcm_framework::prometheus_client::collector::Collector;
use kcm_framework::prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use kcm_framework::prometheus_client::metrics::MetricType;
use kcm_framework::prometheus_client::metrics::gauge::ConstGauge;
use kcm_framework::x509::{Validity, validity};
use kube::config::AuthInfo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Time before the end of the certificate at which the check begins to fail.
const SOON: SignedDuration = SignedDuration::from_hours(24);

/// The part of a certificate's time in which the check fails, if that is less. Certificates that are replaced every few
/// hours always end soon.
const LAST_PART: i32 = 5;

/// The client certificate of a kubeconfig. A file is read again each time, as the connection does.
#[derive(Clone)]
pub(super) struct ClientCertificate {
    source: Source,
    clock: Arc<dyn Clock>,
}

#[derive(Clone)]
enum Source {
    Pem(Vec<u8>),
    File(PathBuf),
}

impl ClientCertificate {
    /// The name of the check.
    pub(super) const NAME: &'static str = "client-certificate";

    /// Returns the certificate of a user, if the kubeconfig has one. Data comes before files, as upstream.
    pub(super) fn of(user: &AuthInfo, clock: Arc<dyn Clock>) -> Option<Self> {
        let source = match (&user.client_certificate_data, &user.client_certificate) {
            (Some(data), _) => Source::Pem(STANDARD.decode(data).ok()?),
            (None, Some(path)) => Source::File(path.into()),
            (None, None) => return None,
        };
        Some(Self { source, clock })
    }

    /// Shows the time that is left in `metrics`.
    pub(super) fn register(&self, metrics: &Metrics) {
        /// Marks the metric as registered, so that it happens once.
        #[derive(Clone)]
        struct OfCertificate;
        metrics.register(|registry| {
            registry.register_collector(Box::new(self.clone()));
            OfCertificate
        });
    }

    /// # Errors
    /// If the certificate ends soon, or cannot be read.
    pub(super) fn check(&self) -> Result<(), String> {
        let Validity { not_before, not_after } = self.validity()?;
        let left = not_after.duration_since(self.clock.now());
        if left > SOON.min(not_after.duration_since(not_before) / LAST_PART) {
            return Ok(());
        }
        let ends = if left.is_negative() { "has ended" } else { "ends" };
        Err(format!("the client certificate of the kubeconfig {ends} at {not_after}: replace it"))
    }

    fn validity(&self) -> Result<Validity, String> {
        let read;
        let pem = match &self.source {
            Source::Pem(pem) => pem,
            Source::File(path) => {
                let unread = |error| {
                    format!("cannot read the client certificate of the kubeconfig in {}: {error}", path.display())
                };
                read = std::fs::read(path).map_err(unread)?;
                &read
            }
        };
        let certificate = CertificateDer::from_pem_slice(pem).ok();
        let validity = certificate.and_then(|certificate| validity(&certificate));
        validity.ok_or_else(|| "the client certificate of the kubeconfig is not a certificate in PEM".to_owned())
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}

impl Collector for ClientCertificate {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        // The check says why it cannot be read.
        let Ok(Validity { not_after, .. }) = self.validity() else { return Ok(()) };
        let name = "client_certificate_ttl_seconds";
        let help = "Seconds for which the client certificate of the kubeconfig is still valid; negative after the end, absent without one";
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(not_after.duration_since(self.clock.now()).as_secs_f64()).encode(metric)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kcm_framework::clock::SimulatedClock;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    /// A certificate of January 2026 that ends on that day.
    fn pem(until: u8) -> String {
        let mut params = CertificateParams::new(Vec::new()).expect("there are no names");
        (params.not_before, params.not_after) = (date_time_ymd(2026, 1, 1), date_time_ymd(2026, 1, until));
        let key = KeyPair::generate().expect("there is randomness");
        params.self_signed(&key).expect("it can be signed").pem()
    }

    fn of(user: &AuthInfo, now: &str) -> Option<ClientCertificate> {
        let now: Timestamp = now.parse().expect("it is a time");
        ClientCertificate::of(user, Arc::new(SimulatedClock::starting_at(now)))
    }

    fn with_data(pem: &str) -> AuthInfo {
        AuthInfo { client_certificate_data: Some(STANDARD.encode(pem)), ..AuthInfo::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn readiness_fails_in_the_last_day_or_the_last_fifth() {
        let (month, hours) = (with_data(&pem(31)), with_data(&pem(2)));
        for (user, now, reason) in [
            (&month, "2026-01-29T23:00:00Z", None),
            (&month, "2026-01-30T01:00:00Z", Some("ends at 2026-01-31T00:00:00Z: replace it")),
            (&month, "2026-02-01T00:00:00Z", Some("has ended at 2026-01-31T00:00:00Z: replace it")),
            (&hours, "2026-01-01T19:00:00Z", None),
            (&hours, "2026-01-01T20:00:00Z", Some("ends at 2026-01-02T00:00:00Z: replace it")),
        ] {
            let failed = of(user, now).expect("there is one").check().err();
            let is_expected = match (&failed, reason) {
                (Some(failed), Some(reason)) => failed.ends_with(reason),
                (failed, reason) => failed.is_none() && reason.is_none(),
            };
            assert!(is_expected, "{now}: {failed:?}");
        }
        assert!(of(&AuthInfo::default(), "2026-01-01T00:00:00Z").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_metric_follows_the_file() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let path = folder.path().join("client.crt");
        let user = AuthInfo { client_certificate: Some(path.display().to_string()), ..AuthInfo::default() };
        let certificate = of(&user, "2026-01-01T00:00:00Z").expect("there is one");
        let metrics = Metrics::new();
        certificate.register(&metrics);
        assert!(certificate.check().expect_err("there is no file").contains("client.crt"));
        assert!(!metrics.encode().contains("client_certificate_ttl_seconds"));
        for (until, left) in [(3, "172800.0"), (11, "864000.0")] {
            std::fs::write(&path, pem(until)).expect("there is room");
            let page = metrics.encode();
            assert!(page.contains(&format!("client_certificate_ttl_seconds {left}\n")), "{page}");
        }
    }
}
