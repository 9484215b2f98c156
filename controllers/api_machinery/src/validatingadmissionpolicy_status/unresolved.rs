//! The kinds of policies that could not be resolved, so that the policies are checked again when they can.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::ObjectKey;
use parking_lot::Mutex;

use super::kinds::Resource;

/// The delay before the first look for a schema that is missing. It doubles with each look.
const FIRST_DELAY: Duration = Duration::from_secs(1);

/// Number of looks for a missing schema. The last one is about four minutes after the check.
const LOOKS: u32 = 8;

/// Resources and schemas that the check of a policy did not find.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Unresolved {
    /// Generation of the policy.
    pub(super) generation: i64,
    /// Resources that discovery does not know.
    pub(super) resources: BTreeSet<Resource>,
    /// The missing schemas of kinds that discovery knows.
    pub(super) schemas: Option<MissingSchemas>,
}

/// Schemas that the API server did not serve. It serves the schema of a new definition some time after its resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MissingSchemas {
    /// Number of looks so far, without the first.
    looks: u32,
    /// The time of the next look. `None` after the last one: a change of discovery leads to the next.
    pub(super) next: Option<Timestamp>,
}

impl MissingSchemas {
    /// Returns the next look after a look at `now`.
    pub(super) fn after(previous: Option<Self>, now: Timestamp) -> Self {
        let looks = previous.map_or(0, |previous| previous.looks + 1);
        let delay = (looks < LOOKS).then(|| FIRST_DELAY * 2_u32.pow(looks));
        let next = delay.and_then(|delay| now.checked_add(SignedDuration::try_from(delay).ok()?).ok());
        Self { looks, next }
    }

    /// Returns `true` if the schemas are looked for at `now`.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.next.is_some_and(|next| next <= now)
    }
}

impl Unresolved {
    fn is_resolved(&self) -> bool {
        self.resources.is_empty() && self.schemas.is_none()
    }
}

/// The policies with something unresolved.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<ObjectKey, Unresolved>>);

impl Memory {
    /// Returns what is unresolved about a generation of a policy.
    pub(super) fn get(&self, policy: &ObjectKey, generation: i64) -> Option<Unresolved> {
        self.0.lock().get(policy).filter(|found| found.generation == generation).cloned()
    }

    /// Remembers what is unresolved, or forgets the policy if nothing is.
    pub(super) fn set(&self, policy: &ObjectKey, unresolved: Unresolved) {
        if unresolved.is_resolved() {
            self.forget(policy);
        } else {
            self.0.lock().insert(policy.clone(), unresolved);
        }
    }

    pub(super) fn forget(&self, policy: &ObjectKey) {
        self.0.lock().remove(policy);
    }

    /// Makes the next look for missing schemas due at `now`, and returns the policies with something unresolved.
    pub(super) fn look_again(&self, now: Timestamp) -> Vec<ObjectKey> {
        let mut policies = self.0.lock();
        for schemas in policies.values_mut().filter_map(|unresolved| unresolved.schemas.as_mut()) {
            *schemas = MissingSchemas { looks: 0, next: Some(now) };
        }
        let mut keys: Vec<ObjectKey> = policies.keys().cloned().collect();
        keys.sort_unstable();
        keys
    }
}
