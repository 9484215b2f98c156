//! The options of a sandbox.

use jiff::Timestamp;

/// Options of a [`Sandbox`](crate::Sandbox).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxOptions {
    /// The time at the start; it advances with tokio's clock.
    pub start: Timestamp,
    /// Seed of uids, generated names and watch durations.
    pub seed: u64,
    /// Number of past events that are kept, about 4 kB each for pods; a watch that is further behind is closed.
    pub watch_window: usize,
    /// Number of latest requests that [`Sandbox::requests`](crate::Sandbox::requests) returns; 0 disables the log.
    pub request_log: usize,
    /// Serve alpha and beta resources that have no stable version, as `--runtime-config=api/all=true` does.
    pub beta_apis: bool,
    /// Keep unknown fields of built-in kinds, like an API server of a later version that knows them. Otherwise they are
    /// dropped.
    pub keep_unknown_fields: bool,
    /// Keep `metadata.managedFields`, which server-side apply needs; without them objects are smaller.
    pub managed_fields: bool,
}

impl Default for SandboxOptions {
    /// The first second of 2026, seed 0, a window of 10,000 events, 20,000 requests, stable resources, managed fields.
    fn default() -> Self {
        let start = Timestamp::from_second(1_767_225_600).expect("2026 is a time");
        Self {
            start,
            seed: 0,
            watch_window: 10_000,
            request_log: 20_000,
            beta_apis: false,
            keep_unknown_fields: false,
            managed_fields: true,
        }
    }
}
