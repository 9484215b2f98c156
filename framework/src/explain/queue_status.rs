//! The status of the queue of a loop, for operators.

use std::time::Duration;

use kcm_workqueue::{QueueCounts, QueueSnapshot};
use serde::{Deserialize, Serialize};

use crate::queue_key::QueueKey;

/// The status of the queue of one reconcile loop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct QueueStatus {
    /// The controller of the loop.
    pub controller: String,
    /// The name of the loop and of its queue: the label `name` of its metrics.
    pub name: String,
    /// The resource whose objects the keys name, as `deployments.apps`.
    pub resource: Option<String>,
    /// The kind of these objects.
    pub kind: Option<String>,
    /// Number of keys that are ready for a worker.
    pub depth: usize,
    /// Seconds for which the oldest of them has been ready.
    pub oldest_seconds: Option<f64>,
    /// Number of keys that are processing.
    pub processing_count: usize,
    /// The keys that are processing, the longest first.
    pub processing: Vec<HeldKey>,
    /// Number of keys that wait for their pending writes.
    pub waiting_for_writes_count: usize,
    /// The keys that wait for their pending writes, the longest first.
    pub waiting_for_writes: Vec<HeldKey>,
    /// Number of writes that are pending.
    pub pending_writes: usize,
    /// Number of keys that are due later.
    pub delayed_count: usize,
    /// The keys that are due later, the next first.
    pub delayed: Vec<DelayedKey>,
    /// Number of keys whose last reconcile failed.
    pub failing_count: usize,
    /// These keys, the most failures first.
    pub failing: Vec<FailingKey>,
    /// The last error of any key, kept after its recovery.
    pub last_error: Option<KeyError>,
}

/// A key that is processing, or waits for its writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldKey {
    /// The key as text, mostly `NAMESPACE/NAME`.
    pub key: String,
    /// Seconds since it entered this state.
    pub seconds: f64,
}

/// A key that is due later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DelayedKey {
    /// The key as text, mostly `NAMESPACE/NAME`.
    pub key: String,
    /// Seconds until it is due.
    pub in_seconds: f64,
}

/// A key that fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailingKey {
    /// The key as text, mostly `NAMESPACE/NAME`.
    pub key: String,
    /// Number of failures in a row.
    pub failures: u32,
    /// Whether its back-off is at its maximum.
    pub at_longest_back_off: bool,
}

/// The error of a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyError {
    /// The key as text, mostly `NAMESPACE/NAME`.
    pub key: String,
    /// When its reconcile ended, in RFC 3339.
    pub at: String,
    /// The error with its causes.
    pub error: String,
}

impl QueueStatus {
    /// The part of the status that the queue knows.
    pub(crate) fn of<K: QueueKey>(snapshot: QueueSnapshot<K>) -> Self {
        let held = |keys: Vec<kcm_workqueue::Held<K>>| {
            let held = keys.into_iter();
            held.map(|held| HeldKey { key: held.key.to_string(), seconds: seconds(held.age) }).collect()
        };
        Self {
            oldest_seconds: snapshot.oldest.map(seconds),
            processing: held(snapshot.processing),
            waiting_for_writes: held(snapshot.parked),
            delayed: snapshot
                .delayed
                .into_iter()
                .map(|delayed| DelayedKey { key: delayed.key.to_string(), in_seconds: seconds(delayed.due_in) })
                .collect(),
            failing: snapshot
                .failing
                .into_iter()
                .map(|failing| FailingKey {
                    key: failing.key.to_string(),
                    failures: failing.failures,
                    at_longest_back_off: failing.at_longest_backoff,
                })
                .collect(),
            ..Self::of_counts(snapshot.counts)
        }
    }

    /// The numbers of the status, without keys.
    pub(crate) fn of_counts(counts: QueueCounts) -> Self {
        Self {
            depth: counts.ready,
            processing_count: counts.processing,
            waiting_for_writes_count: counts.parked,
            delayed_count: counts.delayed,
            failing_count: counts.failing,
            ..Self::default()
        }
    }
}

/// Seconds with three digits after the point.
pub(crate) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}
