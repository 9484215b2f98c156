//! Metrics that several controllers of volumes have in common.

use std::collections::BTreeMap;
use std::fmt;

use kcm_framework::metrics::{Histograms, MetricError, Stability};
use kcm_framework::prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use kcm_framework::prometheus_client::metrics::MetricType;
use kcm_framework::prometheus_client::metrics::gauge::ConstGauge;

/// Buckets of the histograms of operations.
pub(crate) const BUCKETS: [f64; 13] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0];

/// Registers the histogram of operations, by plugin, operation, status and whether a CSI driver serves an in-tree volume.
///
/// Registers the histogram of calls of CSI drivers too, as upstream. Nothing is observed in it here.
pub(crate) fn storage_seconds(metrics: &kcm_framework::Metrics) -> Result<Histograms<4>, MetricError> {
    metrics.histograms::<4>(
        Stability::Alpha,
        "csi_operations_seconds",
        ["driver_name", "method_name", "grpc_status_code", "migrated"],
        BUCKETS,
        "Seconds of calls of CSI drivers",
    )?;
    metrics.histograms(
        Stability::Beta,
        "storage_operation_duration_seconds",
        ["volume_plugin", "operation_name", "status", "migrated"],
        BUCKETS,
        "Seconds of operations of storage",
    )
}

/// Numbers by the values of labels.
pub(crate) type Counts = BTreeMap<Vec<String>, i64>;

pub(crate) fn count(counts: &mut Counts, labels: &[&str]) {
    *counts.entry(labels.iter().map(|label| (*label).to_owned()).collect()).or_default() += 1;
}

/// Writes a gauge that was counted at the scrape.
pub(crate) fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    labels: &[&str],
    counts: &Counts,
) -> Result<(), fmt::Error> {
    if counts.is_empty() {
        return Ok(());
    }
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (values, number) in counts {
        let pairs: Vec<(&str, &str)> = labels.iter().copied().zip(values.iter().map(String::as_str)).collect();
        ConstGauge::new(*number).encode(metric.encode_family(&pairs)?)?;
    }
    Ok(())
}
