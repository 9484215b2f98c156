//! The settings.

use kcm_config::{Initial, Row};
use kcm_framework::SettingsSection;
use serde::Deserialize;

/// The rows of the settings.
pub(super) const ROWS: &[Row] =
    &[Row::new("terminated-pod-gc-threshold", "Pod-garbage-collector-controller", Initial::Int32(12500))
        .path("PodGCController.TerminatedPodGCThreshold")
        .help("How many terminated pods may exist before the oldest are deleted; zero or less for any number.")];

/// The values of the section.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Section {
    /// How many terminated pods may exist; zero or less for any number.
    #[serde(rename = "TerminatedPodGCThreshold")]
    pub(super) threshold: i32,
}

impl SettingsSection for Section {
    const SECTION: &str = "PodGCController";
}
