//! Which keys wait for which of their own writes to come back, as a pure state machine.
//!
//! One [`PendingWrites`] per queue. The caches of a queue's loop are numbered by their position in the loop's list;
//! nothing here knows what a cache is. Time is an argument.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Duration;

use kcm_api::{ObjectKey, ResourceVersion, Uid};
use kcm_informers::ObjectState;
use tokio::time::Instant;

/// How long a mark may stay before the API server is asked about it.
pub const CHECK_AFTER: Duration = Duration::from_secs(30);

/// The position of a cache in its loop's list.
pub type CacheIndex = usize;

/// What one write leaves behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingWrite {
    /// The write succeeded: settled when the cache has observed `version`.
    Version {
        /// The cache of the written resource.
        cache: CacheIndex,
        /// The object written, for a live check.
        object: ObjectKey,
        /// The version that the API server answered with.
        version: ResourceVersion,
    },
    /// A deletion was accepted: settled when the cache shows the object gone or terminating.
    Deletion {
        /// The cache of the deleted object's resource.
        cache: CacheIndex,
        /// The object deleted, for a live check.
        object: ObjectKey,
        /// Its identity.
        uid: Uid,
    },
    /// The answer was lost: settled by what a live list begun after `deadline` shows.
    OutcomeUnknown {
        /// The cache of the written resource.
        cache: CacheIndex,
        /// The object written.
        object: ObjectKey,
        /// The identity of the object, where the write was a deletion.
        deleted: Option<Uid>,
        /// When the request can no longer take effect: the API server has given it up, or has refused its repeat.
        deadline: Instant,
    },
}

impl PendingWrite {
    const fn cache(&self) -> CacheIndex {
        match self {
            Self::Version { cache, .. } | Self::Deletion { cache, .. } | Self::OutcomeUnknown { cache, .. } => *cache,
        }
    }

    const fn object(&self) -> &ObjectKey {
        match self {
            Self::Version { object, .. } | Self::Deletion { object, .. } | Self::OutcomeUnknown { object, .. } => {
                object
            }
        }
    }
}

/// What the API server shows of one object, and what the cache shows of it, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveState {
    /// The version of the live list.
    pub list_version: ResourceVersion,
    /// The object in the live list.
    pub live: Option<ObjectState>,
    /// The object in the cache, looked up after the list was answered.
    pub cached: Option<ObjectState>,
}

/// A live look that is due: list `object` in the resource of `cache`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCheck<K> {
    /// The key that waits.
    pub key: K,
    /// Where to look.
    pub cache: CacheIndex,
    /// What to look for.
    pub object: ObjectKey,
}

/// The marks of one queue.
#[derive(Debug)]
pub struct PendingWrites<K> {
    pending: BTreeMap<K, Pending>,
    // Per cache, the keys that wait for a version, the nearest first: an event pays for what it settles.
    versions: Vec<BTreeSet<(Ordered, K)>>,
    deletions: HashMap<(CacheIndex, Uid), Vec<K>>,
}

#[derive(Debug)]
struct Pending {
    owner: Option<Uid>,
    // At most one `Version` per cache: the caches move forward, so the latest version stands for all.
    marks: Vec<PendingWrite>,
    check_at: Instant,
}

/// A version known to be a decimal, so that all of a set compare.
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

fn is_decimal(version: &ResourceVersion) -> bool {
    version.compare(version).is_some()
}

/// Whether there is an end to waiting for it: with a version that is no decimal no other compares.
fn can_be_settled(mark: &PendingWrite) -> bool {
    match mark {
        PendingWrite::Version { version, .. } => is_decimal(version),
        PendingWrite::Deletion { .. } | PendingWrite::OutcomeUnknown { .. } => true,
    }
}

impl<K: Clone + Ord + Eq + Hash> PendingWrites<K> {
    /// No marks yet, for a loop with that many caches.
    #[must_use]
    pub fn new(caches: usize) -> Self {
        Self {
            pending: BTreeMap::new(),
            versions: (0..caches).map(|_| BTreeSet::new()).collect(),
            deletions: HashMap::new(),
        }
    }

    /// Whether `key` waits.
    #[must_use]
    pub fn waits(&self, key: &K) -> bool {
        self.pending.contains_key(key)
    }

    /// How many keys wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether no key waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Makes `key` wait for `marks`, on behalf of the object `owner`. A version that is not a decimal blocks nothing.
    ///
    /// Returns whether the key waits now. After this, and after [`looked`](Self::looked), the caller must report what
    /// its caches have already observed, as an event may have come before the answer.
    pub fn add(&mut self, key: &K, owner: Option<&Uid>, marks: Vec<PendingWrite>, now: Instant) -> bool {
        for mark in marks.into_iter().filter(can_be_settled) {
            let pending = self.pending.entry(key.clone()).or_insert_with(|| Pending {
                owner: owner.cloned(),
                marks: Vec::new(),
                check_at: now + CHECK_AFTER,
            });
            if let PendingWrite::OutcomeUnknown { deadline, .. } = &mark {
                pending.check_at = pending.check_at.min(*deadline);
            }
            Self::insert(&mut self.versions, &mut self.deletions, key, pending, mark);
        }
        self.waits(key)
    }

    fn insert(
        versions: &mut [BTreeSet<(Ordered, K)>],
        deletions: &mut HashMap<(CacheIndex, Uid), Vec<K>>,
        key: &K,
        pending: &mut Pending,
        mark: PendingWrite,
    ) {
        match &mark {
            PendingWrite::Version { cache, version, .. } => {
                let earlier = pending.marks.iter().position(
                    |known| matches!(known, PendingWrite::Version { cache: known_cache, .. } if known_cache == cache),
                );
                if let Some(at) = earlier
                    && let PendingWrite::Version { version: known, .. } = &pending.marks[at]
                {
                    if known.is_at_least(version) == Some(true) {
                        return;
                    }
                    versions[*cache].remove(&(Ordered(known.clone()), key.clone()));
                    pending.marks.swap_remove(at);
                }
                versions[*cache].insert((Ordered(version.clone()), key.clone()));
            }
            PendingWrite::Deletion { cache, uid, .. } => {
                deletions.entry((*cache, uid.clone())).or_default().push(key.clone());
            }
            PendingWrite::OutcomeUnknown { .. } => {}
        }
        pending.marks.push(mark);
    }

    /// The cache has observed `version`: returns the keys that wait no longer.
    pub fn observed(&mut self, cache: CacheIndex, version: &ResourceVersion) -> Vec<K> {
        let mut woken = Vec::new();
        if self.versions[cache].is_empty() || !is_decimal(version) {
            return woken;
        }
        let version = Ordered(version.clone());
        while let Some((next, _)) = self.versions[cache].first()
            && *next <= version
        {
            let (_, key) = self.versions[cache].pop_first().expect("the set has a first entry");
            self.settle(
                &key,
                |mark| matches!(mark, PendingWrite::Version { cache: marked, .. } if *marked == cache),
                &mut woken,
            );
        }
        woken
    }

    /// The cache shows the object `uid` gone or terminating: returns the keys that wait no longer.
    pub fn ended(&mut self, cache: CacheIndex, uid: &Uid) -> Vec<K> {
        let mut woken = Vec::new();
        if self.deletions.is_empty() {
            return woken;
        }
        for key in self.deletions.remove(&(cache, uid.clone())).unwrap_or_default() {
            self.settle(
                &key,
                |mark| {
                    matches!(mark, PendingWrite::Deletion { cache: marked, uid: marked_uid, .. }
                        if *marked == cache && marked_uid == uid)
                },
                &mut woken,
            );
        }
        woken
    }

    /// The object `uid`, which a key of this queue named, is gone: its marks go with it, as an object that is
    /// created under the same name starts without any. `is_gone` tells that from its beginning to terminate.
    /// Returns the keys that wait no longer.
    pub fn owner_ended(&mut self, uid: &Uid, is_gone: impl Fn(&K) -> bool) -> Vec<K> {
        let orphaned: Vec<K> = self
            .pending
            .iter()
            .filter(|(key, pending)| pending.owner.as_ref() == Some(uid) && is_gone(key))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &orphaned {
            self.forget(key);
        }
        orphaned
    }

    /// Drops all marks of `key`.
    pub fn forget(&mut self, key: &K) {
        let Some(pending) = self.pending.remove(key) else { return };
        for mark in pending.marks {
            match mark {
                PendingWrite::Version { cache, version, .. } => {
                    self.versions[cache].remove(&(Ordered(version), key.clone()));
                }
                PendingWrite::Deletion { cache, uid, .. } => {
                    Self::remove_deletion(&mut self.deletions, cache, &uid, key)
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

    /// When the next live look is due.
    #[must_use]
    pub fn next_check(&self) -> Option<Instant> {
        self.pending.values().map(|pending| pending.check_at).min()
    }

    /// The live looks that are due at `now`; each key is asked about again [`CHECK_AFTER`] later if it still waits.
    pub fn due(&mut self, now: Instant) -> Vec<LiveCheck<K>> {
        let mut checks = Vec::new();
        for (key, pending) in &mut self.pending {
            if pending.check_at > now {
                continue;
            }
            pending.check_at = now + CHECK_AFTER;
            for mark in &pending.marks {
                if let PendingWrite::OutcomeUnknown { deadline, .. } = mark
                    && *deadline > now
                {
                    pending.check_at = pending.check_at.min(*deadline);
                    continue;
                }
                checks.push(LiveCheck { key: key.clone(), cache: mark.cache(), object: mark.object().clone() });
            }
        }
        checks
    }

    /// Whether a look that was due still has something to tell: its key may have been woken since.
    #[must_use]
    pub fn needs(&self, check: &LiveCheck<K>) -> bool {
        let pending = self.pending.get(&check.key);
        pending.is_some_and(|pending| {
            pending.marks.iter().any(|mark| mark.cache() == check.cache && *mark.object() == check.object)
        })
    }

    /// Takes in a live look begun at `begun`: returns the key if it waits no longer.
    ///
    /// A look begun before the deadline of a lost answer says nothing about it. One begun after it tells what
    /// became of the write: nothing (settled), or a state for which the cache is then waited for as usual.
    pub fn looked(&mut self, check: &LiveCheck<K>, begun: Instant, answer: &LiveState) -> Vec<K> {
        let Some(pending) = self.pending.get_mut(&check.key) else { return Vec::new() };
        let (asked, kept): (Vec<PendingWrite>, Vec<PendingWrite>) = std::mem::take(&mut pending.marks)
            .into_iter()
            .partition(|mark| mark.cache() == check.cache && *mark.object() == check.object);
        pending.marks = kept;
        for mark in asked {
            match &mark {
                PendingWrite::Version { cache, version, .. } => {
                    self.versions[*cache].remove(&(Ordered(version.clone()), check.key.clone()));
                }
                PendingWrite::Deletion { cache, uid, .. } => {
                    Self::remove_deletion(&mut self.deletions, *cache, uid, &check.key);
                }
                PendingWrite::OutcomeUnknown { .. } => {}
            }
            if let Some(mark) = after_look(mark, begun, answer).filter(can_be_settled) {
                Self::insert(&mut self.versions, &mut self.deletions, &check.key, pending, mark);
            }
        }
        let mut woken = Vec::new();
        self.settle(&check.key, |_| false, &mut woken);
        woken
    }

    fn settle(&mut self, key: &K, settled: impl Fn(&PendingWrite) -> bool, woken: &mut Vec<K>) {
        let Some(pending) = self.pending.get_mut(key) else { return };
        pending.marks.retain(|mark| !settled(mark));
        if pending.marks.is_empty() {
            self.pending.remove(key);
            woken.push(key.clone());
        }
    }
}

/// What is left of `mark` after a live look, or `None` where there is nothing more to wait for.
fn after_look(mark: PendingWrite, begun: Instant, answer: &LiveState) -> Option<PendingWrite> {
    // The cache shows what the server shows: waiting longer would not tell more.
    let current = match (&answer.live, &answer.cached) {
        (None, None) => true,
        (Some(live), Some(cached)) => {
            live.uid == cached.uid && cached.resource_version.is_at_least(&live.resource_version) != Some(false)
        }
        (Some(_), None) | (None, Some(_)) => false,
    };
    match mark {
        PendingWrite::OutcomeUnknown { deadline, .. } if begun < deadline => Some(mark),
        PendingWrite::OutcomeUnknown { cache, object, deleted, .. } => match (deleted, &answer.live) {
            (Some(uid), Some(live)) if live.uid == uid && !live.terminating => None,
            (Some(uid), _) => match &answer.cached {
                Some(cached) if cached.uid == uid && !cached.terminating => {
                    Some(PendingWrite::Deletion { cache, object, uid })
                }
                Some(_) | None => None,
            },
            (None, _) if current => None,
            (None, Some(live)) => Some(PendingWrite::Version { cache, object, version: live.resource_version.clone() }),
            (None, None) => Some(PendingWrite::Version { cache, object, version: answer.list_version.clone() }),
        },
        PendingWrite::Version { ref version, .. } => {
            let restored = answer.list_version.is_at_least(version) == Some(false);
            // The mark stands for every write up to its version. A cache that shows this object has taken them all in;
            // one that does not may have missed the creation as well as the end of the object, and the others with it.
            let caught_up = current && answer.cached.is_some();
            (!caught_up && !restored).then_some(mark)
        }
        PendingWrite::Deletion { ref uid, .. } => {
            let undone = answer.live.as_ref().is_some_and(|live| live.uid == *uid && !live.terminating);
            let seen = answer.cached.as_ref().is_none_or(|cached| cached.uid != *uid || cached.terminating);
            (!undone && !seen).then_some(mark)
        }
    }
}
