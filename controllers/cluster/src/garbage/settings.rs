//! The settings.

use kcm_config::{Initial, Row, checks};
use kcm_framework::SettingsSection;
use serde::Deserialize;

/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[
    Row::new("concurrent-gc-syncs", "Garbage-collector-controller", Initial::Int32(20))
        .path("GarbageCollectorController.ConcurrentGCSyncs")
        .help("How many objects the garbage collector processes at once. More is faster, and loads the API server and the network more.")
        .check(checks::positive),
    Row::new("enable-garbage-collector", "Garbage-collector-controller", Initial::Bool(true))
        .path("GarbageCollectorController.EnableGarbageCollector")
        .help("Delete objects whose owners are gone. It must be what the flag of the API server of the same name is."),
    Row::in_file("GarbageCollectorController.GCIgnoredResources", "Garbage-collector-controller", Initial::Objects {
            fields: &["Group", "Resource"],
            items: &[&["", "events"], &["events.k8s.io", "events"]],
        })
        .help("The resources that the garbage collector leaves alone."),
];

/// The values of the section.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Section {
    /// How many objects are processed at once.
    #[serde(rename = "ConcurrentGCSyncs")]
    pub(super) concurrent_syncs: u32,
    /// Whether the controller runs.
    #[serde(rename = "EnableGarbageCollector")]
    pub(super) enabled: bool,
    /// The resources that are left alone.
    #[serde(rename = "GCIgnoredResources")]
    pub(super) ignored_resources: Vec<GroupResource>,
}

/// A resource in any version.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct GroupResource {
    /// The API group; empty for the core group.
    pub(super) group: String,
    /// The plural name.
    pub(super) resource: String,
}

impl SettingsSection for Section {
    const SECTION: &str = "GarbageCollectorController";
}
