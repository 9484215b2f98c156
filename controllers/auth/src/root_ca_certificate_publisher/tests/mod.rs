mod apply;
mod event_mapping;
mod memory;
mod plan;

/// A certificate of no use but to be read.
const CA: &str = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
