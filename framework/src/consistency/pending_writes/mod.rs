//! The writes that the caches do not show yet, and the keys that wait for them: a pure state machine.
//!
//! One [`PendingWrites`] per queue. The caches of a loop are numbered by their position in the list of the loop. Time
//! is an argument.

mod live_check;
mod waiting_order;
mod write;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Duration;

use kcm_api::{ResourceVersion, Uid};
use tokio::time::Instant;

use live_check::after_check;
use waiting_order::WaitingOrder;
use write::{can_be_confirmed, is_decimal};

pub use live_check::{LiveCheck, LiveState};
pub use write::{CacheIndex, PendingWrite};

/// Time for which a write may be pending before a live list checks it.
pub const CHECK_AFTER: Duration = Duration::from_secs(30);

/// The pending writes of the keys of one queue.
#[derive(Debug, Clone)]
pub struct PendingWrites<K> {
    waiting: BTreeMap<K, WaitingKey>,
    order: WaitingOrder<K>,
    // Per cache, the keys that wait for a version, the lowest first: an event costs only the writes that it confirms.
    versions: Vec<BTreeSet<(Ordered, K)>>,
    deletions: HashMap<(CacheIndex, Uid), Vec<K>>,
    /// Number of calls that have added writes.
    added: u64,
}

#[derive(Debug, Clone)]
struct WaitingKey {
    owner: Option<Uid>,
    // At most one `Version` per cache: caches move forward, so the latest version confirms the earlier ones.
    writes: Vec<PendingWrite>,
    check_at: Instant,
    /// The call that added the last of its writes. A live list that was due before says nothing about them.
    added: u64,
}

impl WaitingKey {
    /// Moves the live check of `key` to `deadline`, if it is later.
    fn check_by<K: Clone + Ord + Eq + Hash>(&mut self, deadline: Instant, key: &K, order: &mut WaitingOrder<K>) {
        let next = self.check_at.min(deadline);
        order.reschedule(key, self.check_at, next);
        self.check_at = next;
    }
}

/// A resource version that is a decimal, so that all versions in a set compare.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ordered(ResourceVersion);

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.compare(&other.0).expect("only decimals are wrapped")
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Clone + Ord + Eq + Hash> PendingWrites<K> {
    /// No pending writes, for a loop with that many caches.
    #[must_use]
    pub fn new(caches: usize) -> Self {
        Self {
            waiting: BTreeMap::new(),
            order: WaitingOrder::new(),
            versions: (0..caches).map(|_| BTreeSet::new()).collect(),
            deletions: HashMap::new(),
            added: 0,
        }
    }

    /// Returns `true` if `key` waits for pending writes.
    #[must_use]
    pub fn waits(&self, key: &K) -> bool {
        self.waiting.contains_key(key)
    }

    /// Returns the pending writes of `key` and the time of their live check. `None` if the key does not wait.
    #[must_use]
    pub fn of(&self, key: &K) -> Option<(&[PendingWrite], Instant)> {
        self.waiting.get(key).map(|waiting| (&*waiting.writes, waiting.check_at))
    }

    /// Number of pending writes of all keys.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.waiting.values().map(|waiting| waiting.writes.len()).sum()
    }

    /// Number of keys that wait for pending writes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns `true` if no key waits for pending writes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Makes `key` wait for `writes`, which were made for the object `owner`. A version that is not a decimal blocks
    /// nothing.
    ///
    /// Returns `true` if the key waits now. After this, and after [`checked`](Self::checked), the caller must report
    /// the versions that its caches have reached, because an event may have come before the response.
    pub fn add(&mut self, key: &K, owner: Option<&Uid>, writes: Vec<PendingWrite>, now: Instant) -> bool {
        self.added += 1;
        let added = self.added;
        for write in writes.into_iter().filter(can_be_confirmed) {
            let order = &mut self.order;
            let pending = self.waiting.entry(key.clone()).or_insert_with(|| {
                let check_at = now + CHECK_AFTER;
                order.insert(key, owner, check_at);
                WaitingKey { owner: owner.cloned(), writes: Vec::new(), check_at, added }
            });
            pending.added = added;
            if let PendingWrite::OutcomeUnknown { deadline, .. } = &write {
                pending.check_by(*deadline, key, order);
            }
            Self::insert(&mut self.versions, &mut self.deletions, key, pending, write);
        }
        self.waits(key)
    }

    fn insert(
        versions: &mut [BTreeSet<(Ordered, K)>],
        deletions: &mut HashMap<(CacheIndex, Uid), Vec<K>>,
        key: &K,
        pending: &mut WaitingKey,
        write: PendingWrite,
    ) {
        match &write {
            PendingWrite::Version { cache, version, .. } => {
                let earlier = pending.writes.iter().position(
                    |known| matches!(known, PendingWrite::Version { cache: known_cache, .. } if known_cache == cache),
                );
                if let Some(at) = earlier
                    && let PendingWrite::Version { version: known, .. } = &pending.writes[at]
                {
                    if known.is_at_least(version) == Some(true) {
                        return;
                    }
                    versions[*cache].remove(&(Ordered(known.clone()), key.clone()));
                    pending.writes.swap_remove(at);
                }
                versions[*cache].insert((Ordered(version.clone()), key.clone()));
            }
            PendingWrite::Deletion { cache, uid, .. } => {
                deletions.entry((*cache, uid.clone())).or_default().push(key.clone());
            }
            PendingWrite::OutcomeUnknown { .. } => {}
        }
        pending.writes.push(write);
    }

    /// Confirms the writes that a cache at `version` shows. Returns the keys that no longer wait.
    pub fn cache_reached(&mut self, cache: CacheIndex, version: &ResourceVersion) -> Vec<K> {
        let mut released = Vec::new();
        if self.versions[cache].is_empty() || !is_decimal(version) {
            return released;
        }
        let version = Ordered(version.clone());
        while let Some((next, _)) = self.versions[cache].first()
            && *next <= version
        {
            let (_, key) = self.versions[cache].pop_first().expect("the set has a first entry");
            self.confirm(
                &key,
                |write| matches!(write, PendingWrite::Version { cache: of, .. } if *of == cache),
                &mut released,
            );
        }
        released
    }

    /// Confirms the deletions of the object `uid`, which is deleted or terminating in the cache. Returns the keys that
    /// no longer wait.
    pub fn object_ended(&mut self, cache: CacheIndex, uid: &Uid) -> Vec<K> {
        let mut released = Vec::new();
        if self.deletions.is_empty() {
            return released;
        }
        for key in self.deletions.remove(&(cache, uid.clone())).unwrap_or_default() {
            self.confirm(
                &key,
                |write| {
                    matches!(write, PendingWrite::Deletion { cache: of, uid: deleted_uid, .. }
                        if *of == cache && deleted_uid == uid)
                },
                &mut released,
            );
        }
        released
    }

    /// Drops the pending writes of keys whose object `uid` is deleted: an object recreated under the same name starts
    /// without any. `is_gone` distinguishes a deleted object from a terminating object. Returns the keys that no longer
    /// wait.
    pub fn owner_ended(&mut self, uid: &Uid, is_gone: impl Fn(&K) -> bool) -> Vec<K> {
        let orphaned: Vec<K> = self.order.of_owner(uid).iter().filter(|key| is_gone(key)).cloned().collect();
        for key in &orphaned {
            self.forget(key);
        }
        orphaned
    }

    /// Drops the pending writes of a cache whose resource, with its objects, has disappeared. Returns the keys that no
    /// longer wait.
    pub fn cache_emptied(&mut self, cache: CacheIndex) -> Vec<K> {
        let mut released = Vec::new();
        self.versions[cache].clear();
        self.deletions.retain(|(of, _), _| *of != cache);
        let waiting: Vec<K> = self.waiting.keys().cloned().collect();
        for key in waiting {
            self.confirm(&key, |write| write.cache() == cache, &mut released);
        }
        released
    }

    /// Drops all pending writes of `key`.
    pub fn forget(&mut self, key: &K) {
        let Some(pending) = self.waiting.remove(key) else { return };
        self.order.remove(key, pending.owner.as_ref(), pending.check_at);
        for write in pending.writes {
            match write {
                PendingWrite::Version { cache, version, .. } => {
                    self.versions[cache].remove(&(Ordered(version), key.clone()));
                }
                PendingWrite::Deletion { cache, uid, .. } => {
                    Self::remove_deletion(&mut self.deletions, cache, &uid, key);
                }
                PendingWrite::OutcomeUnknown { .. } => {}
            }
        }
    }

    fn remove_deletion(deletions: &mut HashMap<(CacheIndex, Uid), Vec<K>>, cache: CacheIndex, uid: &Uid, key: &K) {
        let at = (cache, uid.clone());
        if let Some(keys) = deletions.get_mut(&at) {
            keys.retain(|waiting| waiting != key);
            if keys.is_empty() {
                deletions.remove(&at);
            }
        }
    }

    /// Time of the next live check.
    #[must_use]
    pub fn next_check(&self) -> Option<Instant> {
        self.order.next_check()
    }

    /// The live checks that are due at `now`; a key that still waits is checked again [`CHECK_AFTER`] later.
    pub fn due(&mut self, now: Instant) -> Vec<LiveCheck<K>> {
        let mut checks = Vec::new();
        for key in self.order.due(now) {
            let pending = self.waiting.get_mut(&key).expect("a key with a live check must wait");
            let mut next = now + CHECK_AFTER;
            for write in &pending.writes {
                if let PendingWrite::OutcomeUnknown { deadline, .. } = write
                    && *deadline > now
                {
                    next = next.min(*deadline);
                    continue;
                }
                checks.push(LiveCheck {
                    key: key.clone(),
                    cache: write.cache(),
                    object: write.object().clone(),
                    added: pending.added,
                });
            }
            self.order.reschedule(&key, pending.check_at, next);
            pending.check_at = next;
        }
        checks
    }

    /// Returns `true` if a check that was due is still needed: its key may have been released since.
    #[must_use]
    pub fn needs(&self, check: &LiveCheck<K>) -> bool {
        let pending = self.waiting.get(&check.key).filter(|pending| pending.added == check.added);
        pending.is_some_and(|pending| {
            pending.writes.iter().any(|write| write.cache() == check.cache && *write.object() == check.object)
        })
    }

    /// Applies the result of a live check that began at `begun`. Returns the key if it no longer waits.
    ///
    /// A check decides nothing about writes that were added after it was [due](Self::due): its list may be older.
    /// A check that began before the deadline of a lost response decides nothing. A later check shows the outcome of
    /// the write: either it is confirmed, or the key waits until the cache shows the state of the live list.
    pub fn checked(&mut self, check: &LiveCheck<K>, begun: Instant, state: &LiveState) -> Vec<K> {
        let pending = self.waiting.get_mut(&check.key).filter(|pending| pending.added == check.added);
        let Some(pending) = pending else { return Vec::new() };
        let (checked, kept): (Vec<PendingWrite>, Vec<PendingWrite>) = std::mem::take(&mut pending.writes)
            .into_iter()
            .partition(|write| write.cache() == check.cache && *write.object() == check.object);
        pending.writes = kept;
        for write in checked {
            match &write {
                PendingWrite::Version { cache, version, .. } => {
                    self.versions[*cache].remove(&(Ordered(version.clone()), check.key.clone()));
                }
                PendingWrite::Deletion { cache, uid, .. } => {
                    Self::remove_deletion(&mut self.deletions, *cache, uid, &check.key);
                }
                PendingWrite::OutcomeUnknown { .. } => {}
            }
            if let Some(write) = after_check(write, begun, state).filter(can_be_confirmed) {
                Self::insert(&mut self.versions, &mut self.deletions, &check.key, pending, write);
            }
        }
        let mut released = Vec::new();
        self.confirm(&check.key, |_| false, &mut released);
        released
    }

    fn confirm(&mut self, key: &K, confirmed: impl Fn(&PendingWrite) -> bool, released: &mut Vec<K>) {
        let Some(pending) = self.waiting.get_mut(key) else { return };
        pending.writes.retain(|write| !confirmed(write));
        if pending.writes.is_empty() {
            self.order.remove(key, pending.owner.as_ref(), pending.check_at);
            self.waiting.remove(key);
            released.push(key.clone());
        }
    }
}
