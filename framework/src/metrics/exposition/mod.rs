//! The exposition of metrics: what a scrape returns, in the format that it accepts.
//!
//! Metrics are kept in registries of `prometheus_client`, which writes `OpenMetrics` alone. What it writes is read back into
//! [`Family`] values, from which each format follows: the text format of Prometheus with the names that upstream has, its
//! protobuf, and `OpenMetrics`.

mod family;
mod filter;
mod format;
mod openmetrics;
mod protobuf;
mod stability;
mod text;

pub(crate) use family::Family;
pub use filter::{ExpositionOptions, NotAMetricLabel};
pub use format::Format;

/// Families in a format.
pub(crate) fn write(families: &[Family], format: Format) -> Vec<u8> {
    match format {
        Format::Text => text::write(families).into_bytes(),
        Format::OpenMetrics => openmetrics::write(families).into_bytes(),
        Format::Protobuf => protobuf::write(families),
    }
}
