//! The metrics of the version.
//!
//! # Upstream
//! `k8s.io/component-base/metrics/version.go` and `k8s.io/component-base/compatibility`.

use kcm_config::{KUBERNETES_VERSION, Versions};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// The version of Kubernetes that this program behaves as, with upstream's labels.
#[derive(Debug)]
struct BuildInfo;

/// The versions that the settings choose.
#[derive(Debug)]
struct VersionInfo(Versions);

pub(super) fn register(registry: &mut Registry) {
    registry.register_collector(Box::new(BuildInfo));
}

/// Registers the metric of the emulated version, and of the oldest version with which the program stays compatible.
pub(super) fn register_versions(versions: Versions, registry: &mut Registry) {
    registry.register_collector(Box::new(VersionInfo(versions)));
}

impl Collector for BuildInfo {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let help = "[BETA] 1, with the version of Kubernetes as which this program behaves, and what it is built for";
        let mut metric = encoder.encode_descriptor("kubernetes_build_info", help, None, MetricType::Gauge)?;
        let git_version = format!("v{KUBERNETES_VERSION}");
        let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
        let mut parts = KUBERNETES_VERSION.split('.');
        let labels = [
            ("build_date", ""),
            ("compiler", "rustc"),
            ("git_commit", ""),
            ("git_tree_state", ""),
            ("git_version", &git_version),
            ("go_version", ""),
            ("major", parts.next().unwrap_or_default()),
            ("minor", parts.next().unwrap_or_default()),
            ("platform", &platform),
        ];
        ConstGauge::new(1_i64).encode(metric.encode_family(&labels)?)
    }
}

impl Collector for VersionInfo {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let help =
            "[ALPHA] 1, with the version of Kubernetes as which this program behaves, and the versions it agrees with";
        let mut metric = encoder.encode_descriptor("version_info", help, None, MetricType::Gauge)?;
        let [emulated, compatible] = [self.0.emulated(), self.0.compatible()].map(|minor| format!("1.{minor}"));
        let labels = [
            ("binary", KUBERNETES_VERSION),
            ("component", "kube"),
            ("emulation", &emulated),
            ("min_compat", &compatible),
        ];
        ConstGauge::new(1_i64).encode(metric.encode_family(&labels)?)
    }
}
