//! Reasons and messages of conditions.

/// The reason of a condition `Running` that is true.
pub(super) const RUNNING_REASON: &str = "MigrationRunning";

/// The reason of the condition `Succeeded`.
pub(super) const SUCCEEDED_REASON: &str = "StorageVersionMigrationSucceeded";

/// The reason of the condition `Failed`.
pub(super) const FAILED_REASON: &str = "StorageVersionMigrationFailed";

/// The reason of a condition `Running` that is false.
pub(super) const COMPLETED_REASON: &str = "MigrationCompleted";

/// The message of the condition `Succeeded`, and of a condition `Running` that is false.
pub(super) const COMPLETED: &str = "Migration completed";

/// Numbers of objects of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    /// Objects that are not yet migrated.
    pub(super) left: u64,
    /// All objects of the resource.
    pub(super) total: u64,
}

/// Returns the message of the condition `Running`.
///
/// # Upstream
/// `migrationRunningMessage` of the package.
pub(super) fn running(counts: Option<Counts>, transient_error: Option<&str>) -> String {
    let progress = match counts {
        Some(Counts { left, total }) if total > 0 && left > 0 => format!(", {left}/{total} objects not yet migrated"),
        Some(Counts { total, .. }) if total > 0 => format!(", {total} objects verified migrated"),
        Some(_) | None => String::new(),
    };
    let error = transient_error.map(|error| format!("; transient error: {error}")).unwrap_or_default();
    format!("The migration is running{progress}{error}")
}

/// Returns the message of a migration that failed with `error`, before or amid its objects.
pub(super) fn failed(counts: Option<Counts>, error: &str) -> String {
    let unhandled = format!("migration encountered unhandled error: {error}");
    match counts {
        Some(Counts { left, total }) => format!("{left}/{total} not yet migrated. {unhandled}"),
        None => unhandled,
    }
}

/// Returns the text of a resource version that is not well formed.
pub(super) fn malformed_version(version: &impl std::fmt::Display) -> String {
    format!("resource version is not well formed: {version}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m22_messages_are_those_of_upstream() {
        let counts = |left, total| Some(Counts { left, total });
        for (counts, error, text) in [
            (None, None, "The migration is running"),
            (counts(0, 0), None, "The migration is running"),
            (counts(2, 3), None, "The migration is running, 2/3 objects not yet migrated"),
            (counts(0, 3), None, "The migration is running, 3 objects verified migrated"),
            (
                counts(2, 3),
                Some("slow"),
                "The migration is running, 2/3 objects not yet migrated; transient error: slow",
            ),
            (None, Some("slow"), "The migration is running; transient error: slow"),
        ] {
            assert_eq!(running(counts, error), text);
        }
        assert_eq!(failed(None, "no"), "migration encountered unhandled error: no");
        assert_eq!(failed(counts(1, 2), "no"), "1/2 not yet migrated. migration encountered unhandled error: no");
        assert_eq!(malformed_version(&"abc"), "resource version is not well formed: abc");
    }
}
