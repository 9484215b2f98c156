//! Back-off: how long a job waits before it replaces failed pods.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::{ObjectKey, Uid};
use parking_lot::Mutex;

use super::job_pod::JobPod;

/// The back-off after the first failure; each further one in a row doubles it.
const BASE: SignedDuration = SignedDuration::from_secs(10);

/// The longest back-off.
const MAX: SignedDuration = SignedDuration::from_mins(10);

/// The failures of a job since its last success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct BackoffRecord {
    failures: i32,
    last_failure: Option<Timestamp>,
}

impl BackoffRecord {
    /// The record after more pods have finished, each of which must be passed once.
    ///
    /// A success ends the row of failures: only those count that came after the last success.
    pub(super) fn after(self, succeeded: &[&JobPod], failed: &[&JobPod]) -> Self {
        let last_success = succeeded.iter().map(|pod| pod.finished_at()).max();
        let since = |time: &Timestamp| last_success.is_none_or(|success| *time > success);
        let failures: Vec<Timestamp> = failed.iter().map(|pod| pod.finished_at()).filter(since).collect();
        let before = if last_success.is_some() { Self::default() } else { self };
        let count = i32::try_from(failures.len()).unwrap_or(i32::MAX);
        Self {
            failures: before.failures.saturating_add(count),
            last_failure: failures.into_iter().max().or(before.last_failure),
        }
    }

    /// When pods may be created again; absent where they may be at `now`.
    pub(super) fn until(self, now: Timestamp) -> Option<Timestamp> {
        backoff_until(self.failures, self.last_failure?, now)
    }
}

/// When the index of a failed pod may have another one; absent where it may at `now`.
pub(super) fn index_backoff_until(last_failed: &JobPod, now: Timestamp) -> Option<Timestamp> {
    backoff_until(last_failed.all_index_failures().saturating_add(1), last_failed.finished_at(), now)
}

/// For example 10 s after the first failure, 40 s after the third, and 10 minutes from the seventh on.
fn backoff_until(failures: i32, last_failure: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let doubled = u32::try_from(failures).ok()?.checked_sub(1)?;
    let backoff = BASE.saturating_mul(1 << doubled.min(16)).min(MAX);
    let until = last_failure.saturating_add(backoff).unwrap_or(Timestamp::MAX);
    (until > now).then_some(until)
}

/// The records of all jobs. They are lost with the process, as upstream's.
#[derive(Debug, Default)]
pub(super) struct BackoffStore(Mutex<HashMap<ObjectKey, (Uid, BackoffRecord)>>);

impl BackoffStore {
    /// The record of a job.
    pub(super) fn get(&self, key: &ObjectKey, uid: &Uid) -> BackoffRecord {
        let records = self.0.lock();
        records.get(key).filter(|(of, _)| of == uid).map_or_else(BackoffRecord::default, |(_, record)| *record)
    }

    /// Stores the record of a job. A job without failures takes no memory.
    pub(super) fn put(&self, key: &ObjectKey, uid: &Uid, record: BackoffRecord) {
        if record == BackoffRecord::default() {
            self.remove(key);
        } else {
            self.0.lock().insert(key.clone(), (uid.clone(), record));
        }
    }

    /// Removes the record of a job that is finished or gone.
    pub(super) fn remove(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
}
