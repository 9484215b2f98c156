//! The settings.

use kcm_framework::config::{Section, Setting, Workers};
use serde::Deserialize;

const SECTION: Section = Section::new("Garbage-collector-controller", "GarbageCollectorController");

pub(super) const SYNCS: Setting<Workers> =
    SECTION.workers("concurrent-gc-syncs", "ConcurrentGCSyncs", "objects (by the garbage collector)", 20);

pub(super) const ENABLED: Setting<bool> = SECTION
    .bool("enable-garbage-collector", "EnableGarbageCollector", true)
    .help("Delete objects whose owners are deleted. Must equal the same flag of the API server.");

pub(super) const IGNORED_RESOURCES: Setting<Vec<GroupResource>> = SECTION
    .objects(
        "GarbageCollectorController.GCIgnoredResources",
        &["Group", "Resource"],
        &[&["", "events"], &["events.k8s.io", "events"]],
    )
    .help("Resources that the garbage collector ignores.");

/// A resource in any version.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct GroupResource {
    /// The API group; empty for the core group.
    pub(super) group: String,
    /// The plural name.
    pub(super) resource: String,
}
