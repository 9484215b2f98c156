mod apply;
mod memory;
mod plan;
mod event_mapping;

/// A certificate of no use but to be read.
const CA: &str = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
