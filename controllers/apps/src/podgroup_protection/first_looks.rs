//! The groups that had no active pod at a first look.

use std::collections::HashMap;
use std::time::Duration;

use kcm_framework::api::{ObjectKey, Uid};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The times of the first looks, which end with a group, and with an active pod of it.
#[derive(Debug, Default)]
pub(super) struct FirstLooks(Mutex<HashMap<ObjectKey, (Uid, Instant)>>);

impl FirstLooks {
    /// Returns the time since the first look at the group.
    pub(super) fn since(&self, key: &ObjectKey, uid: &Uid) -> Option<Duration> {
        let looks = self.0.lock();
        looks.get(key).filter(|(of, _)| of == uid).map(|(_, at)| at.elapsed())
    }

    /// Records a look at the group, unless there was one before.
    pub(super) fn look(&self, key: &ObjectKey, uid: &Uid) {
        let mut looks = self.0.lock();
        let look = looks.entry(key.clone()).or_insert_with(|| (uid.clone(), Instant::now()));
        if look.0 != *uid {
            *look = (uid.clone(), Instant::now());
        }
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
}
