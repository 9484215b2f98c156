//! An exhaustive model of read-your-own-writes: one key, two caches and three writes, in every order of responses, events,
//! lists, lost responses, live checks and time.
//!
//! The search runs [`PendingWrites`] itself. The model plays its surroundings: the API server, the caches, and the tracker
//! that reports to it. Times count relative to the present and own writes that a cache shows are forgotten, so the search
//! ends.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::time::Duration;

use kcm_api::{ObjectKey, ResourceVersion, Uid};
use kcm_framework::consistency::pending_writes::{LiveCheck, LiveState, PendingWrite, PendingWrites};
use kcm_informers::ObjectState;
use tokio::time::Instant;

const KEY: u8 = 0;

/// Time of one step: two steps are past the time after which a write is checked, and are the deadline of a request.
const STEP: u64 = 17;
const DEADLINE: u64 = 2 * STEP;

/// Largest number of writes of one reconcile.
const WRITES_AT_ONCE: usize = 2;

/// The caches; each holds one object at most. Deleted objects of the second are terminating first.
const CACHES: [usize; 2] = [0, 1];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Object {
    uid: u64,
    version: u64,
    terminating: bool,
}

/// A change of a resource: its version, and the object after it.
type Change = (u64, Option<Object>);

/// A resource and its cache.
#[derive(Debug, Clone, Default)]
struct Resource {
    live: Option<Object>,
    /// The object in the cache, and the version of the cache.
    cached: Option<Object>,
    cache_version: u64,
    /// Changes that the cache has not seen, the oldest first.
    unseen: VecDeque<Change>,
}

/// A write of the key that no cache is known to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Own {
    /// It has taken effect with that version.
    Landed { cache: usize, version: u64, is_answered: bool },
    /// Its response was lost, and it may take effect before the deadline.
    UnderWay { cache: usize, what: Write, deadline: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Write {
    /// Creates or updates the object.
    Put,
    /// Creates an object whose name the API server chooses.
    Generate,
    /// Deletes the object of that uid.
    Delete(u64),
    /// Removes the finalizer of the terminating object.
    Finalize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Response {
    Arrives,
    /// It is lost, though the write has taken effect.
    IsLost,
    /// It is lost, and the write is still under way.
    IsLostBefore,
}

/// A live list whose response has not been handled.
#[derive(Debug, Clone)]
struct Listing {
    check: LiveCheck<u8>,
    begun: u64,
    list_version: u64,
    live: Option<Object>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Begins,
    /// The reconcile writes to that cache.
    Writes(usize, Write, Response),
    Ends,
    /// A write that is under way takes effect.
    Lands(usize),
    /// Another client creates, updates, deletes or finalizes the object.
    Other(usize, Write),
    /// The cache applies the next change.
    Event(usize),
    /// The cache is listed again, or receives a bookmark.
    Relist(usize),
    Time,
    /// The live lists that are due begin.
    Lists,
    /// The first live list responds.
    Listed,
    /// The first live list fails.
    ListFails,
}

/// A mistake that is planted in the surroundings, to show that the search finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// A live list decides before the request can no longer take effect.
    DecidesBeforeTheDeadline,
    /// A write whose response was lost is not waited for.
    ForgetsLostResponses,
    /// The progress of one cache is reported for both.
    MixesCachesUp,
    /// Of the writes of a reconcile, the last is forgotten.
    ForgetsTheLastWrite,
    /// Live lists never begin.
    NeverLists,
}

#[derive(Debug, Clone)]
struct State {
    version: u64,
    resources: [Resource; 2],
    now: u64,
    /// The writes of the reconcile that runs.
    session: Option<Vec<PendingWrite>>,
    own: Vec<Own>,
    listings: VecDeque<Listing>,
    pending: PendingWrites<u8>,
    /// Numbers of writes, and of changes by others and relists, that may still come.
    writes_left: u8,
    others_left: u8,
    relists_left: u8,
}

struct Model {
    epoch: Instant,
    mistake: Option<Mistake>,
    writes: u8,
    others: u8,
    relists: u8,
}

/// A state, until it is visited, with the number of the state before it and the action between them.
type Reached = (Option<(usize, Action)>, Option<State>);

/// The result of a search.
#[derive(Debug)]
struct Visited {
    states: usize,
    /// Number of reconciles that began after a write.
    reconciles: usize,
}

fn object_key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("ns", name)
}

fn uid(uid: u64) -> Uid {
    Uid::from(&*uid.to_string())
}

fn observed(object: Object) -> ObjectState {
    ObjectState { uid: uid(object.uid), resource_version: object.version.into(), terminating: object.terminating }
}

impl Model {
    fn new(writes: u8, others: u8, relists: u8) -> Self {
        Self { epoch: Instant::now(), mistake: None, writes, others, relists }
    }

    /// Visits every state, and expects no mistake. Returns the number of reconciles that began after a write.
    fn holds(&self) -> usize {
        let visited = self.search().unwrap_or_else(|(path, wrong)| panic!("{wrong} after {path:#?}"));
        assert!(visited.states > 5_000, "{visited:?}");
        visited.reconciles
    }

    fn at(&self, seconds: u64) -> Instant {
        self.epoch + Duration::from_secs(seconds)
    }

    fn initial(&self) -> State {
        let object = Object { uid: 1, version: 1, terminating: false };
        let synced =
            Resource { live: Some(object), cached: Some(object), cache_version: 1, unseen: VecDeque::default() };
        State {
            version: 1,
            resources: [synced.clone(), synced],
            now: 0,
            session: None,
            own: Vec::new(),
            listings: VecDeque::new(),
            pending: PendingWrites::new(CACHES.len()),
            writes_left: self.writes,
            others_left: self.others,
            relists_left: self.relists,
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        match &state.session {
            None if !state.pending.waits(&KEY) && state.writes_left > 0 => actions.push(Action::Begins),
            None => {}
            Some(session) => {
                actions.push(Action::Ends);
                let may_write = state.writes_left > 0 && session.len() < WRITES_AT_ONCE;
                for cache in CACHES.into_iter().filter(|_| may_write) {
                    // A controller deletes what its cache shows.
                    let shown = state.resources[cache].cached.filter(|object| !object.terminating);
                    let delete = shown.map(|object| Write::Delete(object.uid));
                    for response in [Response::Arrives, Response::IsLost, Response::IsLostBefore] {
                        let writes = [Some(Write::Put), delete].into_iter().flatten();
                        actions.extend(writes.map(|write| Action::Writes(cache, write, response)));
                        if response != Response::Arrives && cache == 0 {
                            actions.push(Action::Writes(cache, Write::Generate, response));
                        }
                    }
                }
            }
        }
        let under_way = state.own.iter().enumerate().filter(|(_, own)| matches!(own, Own::UnderWay { .. }));
        actions.extend(under_way.map(|(at, _)| Action::Lands(at)));
        for cache in CACHES {
            let resource = &state.resources[cache];
            if state.others_left > 0 {
                actions.push(Action::Other(cache, Write::Put));
                let end = |object: Object| if object.terminating { Write::Finalize } else { Write::Delete(object.uid) };
                actions.extend(resource.live.map(|object| Action::Other(cache, end(object))));
            }
            if !resource.unseen.is_empty() {
                actions.push(Action::Event(cache));
            }
            if state.relists_left > 0 && resource.cache_version < state.version {
                actions.push(Action::Relist(cache));
            }
        }
        // A list takes one step at most.
        let is_listing = state.listings.front().is_some_and(|listing| listing.begun < state.now);
        if (state.pending.waits(&KEY) || !state.own.is_empty()) && !is_listing {
            actions.push(Action::Time);
        }
        if self.is_due(state) && state.listings.is_empty() && self.mistake != Some(Mistake::NeverLists) {
            actions.push(Action::Lists);
        }
        if !state.listings.is_empty() {
            actions.extend([Action::Listed, Action::ListFails]);
        }
        actions
    }

    fn is_due(&self, state: &State) -> bool {
        state.pending.next_check().is_some_and(|check| check <= self.at(state.now))
    }

    fn after(&self, state: &State, action: Action) -> State {
        let mut next = state.clone();
        match action {
            Action::Begins => next.session = Some(Vec::new()),
            Action::Writes(cache, what, response) => {
                next.writes_left -= 1;
                next.write(self, cache, what, response);
            }
            Action::Ends => next.end(self),
            Action::Lands(at) => {
                let Own::UnderWay { cache, what, .. } = next.own.remove(at) else { unreachable!("only those land") };
                if let Some(version) = next.apply(cache, what) {
                    next.own.push(Own::Landed { cache, version, is_answered: false });
                }
            }
            Action::Other(cache, what) => {
                next.others_left -= 1;
                next.apply(cache, what);
            }
            Action::Event(cache) => next.event(self, cache),
            Action::Relist(cache) => {
                next.relists_left -= 1;
                next.relist(self, cache);
            }
            Action::Time => next.now += STEP,
            Action::Lists => next.list(self),
            Action::Listed => next.listed(self),
            Action::ListFails => drop(next.listings.pop_front()),
        }
        next.forget_what_is_shown();
        next
    }

    /// The mistake that the state shows when the key is reconciled: a cache that is older than an own write, or a write
    /// that may still take effect.
    fn wrong(state: &State) -> Option<String> {
        let is_idle = !state.pending.waits(&KEY);
        if is_idle && state.session.is_none() && !state.own.is_empty() {
            return Some(format!("it is reconciled before its own writes are decided and shown: {:?}", state.own));
        }
        // What remains inside would release a key that waits for something else.
        let mut rest = state.pending.clone();
        let late: Vec<_> = CACHES.into_iter().flat_map(|cache| rest.cache_reached(cache, &u64::MAX.into())).collect();
        if is_idle && (!late.is_empty() || state.pending.next_check().is_some() || state.pending.writes() > 0) {
            return Some("something is left of a key that does not wait".to_owned());
        }
        None
    }

    /// Returns `true` if the key is released once the API server and the caches do their part.
    fn is_released_in_the_end(&self, state: &State) -> bool {
        let mut state = state.clone();
        state.listings.clear();
        state.session = None;
        for _ in 0..6 {
            for cache in CACHES {
                while !state.resources[cache].unseen.is_empty() {
                    state.event(self, cache);
                }
                state.relist(self, cache);
            }
            if !state.pending.waits(&KEY) {
                return true;
            }
            state.now += STEP;
            if self.is_due(&state) && self.mistake != Some(Mistake::NeverLists) {
                state.list(self);
                while !state.listings.is_empty() {
                    state.listed(self);
                }
            }
        }
        false
    }

    /// Visits every state. `Err` has the actions that lead to a mistake, and the mistake.
    fn search(&self) -> Result<Visited, (Vec<Action>, String)> {
        let initial = self.initial();
        let mut known = HashSet::from([self.fingerprint(&initial)]);
        let mut states: Vec<Reached> = vec![(None, Some(initial))];
        let (mut at, mut reconciles) = (0, 0);
        while at < states.len() {
            let state = states[at].1.take().expect("each state is visited once");
            let path = |states: &[Reached]| {
                let before = std::iter::successors(states[at].0, |(before, _)| states[*before].0);
                let mut path: Vec<Action> = before.map(|(_, action)| action).collect();
                path.reverse();
                path
            };
            if let Some(wrong) = Self::wrong(&state) {
                return Err((path(&states), wrong));
            }
            if state.pending.waits(&KEY) && !self.is_released_in_the_end(&state) {
                return Err((path(&states), "it waits for ever".to_owned()));
            }
            for action in self.actions(&state) {
                reconciles += usize::from(action == Action::Begins && state.writes_left < self.writes);
                let next = self.after(&state, action);
                if known.insert(self.fingerprint(&next)) {
                    states.push((Some((at, action)), Some(next)));
                }
            }
            at += 1;
        }
        Ok(Visited { states: states.len(), reconciles })
    }

    /// Equal for states that differ in nothing but the present time.
    fn fingerprint(&self, state: &State) -> u64 {
        let hasher = &mut DefaultHasher::new();
        let left = |time: Instant| time.saturating_duration_since(self.at(state.now));
        let hash_write = |write: &PendingWrite, hasher: &mut DefaultHasher| match write {
            PendingWrite::Version { cache, object, version } => {
                (0, cache, object.name(), version.to_string()).hash(hasher);
            }
            PendingWrite::Deletion { cache, object, uid } => (1, cache, object.name(), uid.to_string()).hash(hasher),
            PendingWrite::OutcomeUnknown { cache, object, deleted, deadline } => {
                let deleted = deleted.as_ref().map(ToString::to_string);
                (2, cache, object.name(), deleted, left(*deadline)).hash(hasher);
            }
        };
        (state.version, state.writes_left, state.others_left, state.relists_left).hash(hasher);
        for Resource { live, cached, cache_version, unseen } in &state.resources {
            (live, cached, cache_version, unseen).hash(hasher);
        }
        for own in &state.own {
            match own {
                Own::Landed { .. } => own.hash(hasher),
                Own::UnderWay { cache, what, deadline } => (cache, what, deadline - state.now).hash(hasher),
            }
        }
        state.session.is_some().hash(hasher);
        for write in state.session.iter().flatten() {
            hash_write(write, hasher);
        }
        if let Some((writes, check_at)) = state.pending.of(&KEY) {
            left(check_at).hash(hasher);
            for write in writes {
                hash_write(write, hasher);
            }
        }
        for Listing { check, begun, list_version, live } in &state.listings {
            (
                check.cache,
                check.object.name(),
                begun.saturating_sub(state.now),
                state.now.saturating_sub(*begun),
                list_version,
                live,
            )
                .hash(hasher);
        }
        hasher.finish()
    }
}

impl Resource {
    /// Returns `true` if the object in the cache is as it was at that version or later: others may have undone the write.
    fn is_as_after(&self, version: u64) -> bool {
        let later = self.unseen.iter().filter(|(changed, _)| *changed >= version);
        later.map(|(_, object)| object).any(|later| match (self.cached, later) {
            (None, None) => true,
            (Some(cached), Some(later)) => cached.uid == later.uid && cached.version >= later.version,
            (Some(_), None) | (None, Some(_)) => false,
        })
    }
}

impl State {
    /// Applies a write in the API server. Returns its version; `None` if it changes nothing.
    fn apply(&mut self, cache: usize, what: Write) -> Option<u64> {
        let resource = &mut self.resources[cache];
        let version = self.version + 1;
        let after = match (what, resource.live) {
            (Write::Put, Some(object)) => Some(Object { version, ..object }),
            (Write::Put, None) => Some(Object { uid: version, version, terminating: false }),
            (Write::Generate, live) => live,
            (Write::Delete(uid), Some(object)) if object.uid == uid && !object.terminating => {
                let has_finalizer = cache == 1;
                has_finalizer.then_some(Object { version, terminating: true, ..object })
            }
            (Write::Finalize, Some(object)) if object.terminating => None,
            (Write::Delete(_) | Write::Finalize, _) => return None,
        };
        resource.live = after;
        resource.unseen.push_back((version, after));
        self.version = version;
        Some(version)
    }

    fn write(&mut self, model: &Model, cache: usize, what: Write, response: Response) {
        let deadline = self.now + DEADLINE;
        let version = if response == Response::IsLostBefore {
            self.own.push(Own::UnderWay { cache, what, deadline });
            None
        } else {
            self.apply(cache, what)
        };
        let is_answered = response == Response::Arrives;
        self.own.extend(version.map(|version| Own::Landed { cache, version, is_answered }));
        let object = object_key(if what == Write::Generate { "" } else { "x" });
        let pending = match (response, what, version) {
            (Response::Arrives, Write::Delete(deleted), _) => {
                let exists = version.is_some() || self.resources[cache].live.is_some_and(|live| live.uid == deleted);
                exists.then(|| PendingWrite::Deletion { cache, object, uid: uid(deleted) })
            }
            (Response::Arrives, _, version) => {
                version.map(|version| PendingWrite::Version { cache, object, version: version.into() })
            }
            (Response::IsLost | Response::IsLostBefore, _, _) => {
                let deleted = if let Write::Delete(deleted) = what { Some(uid(deleted)) } else { None };
                Some(PendingWrite::OutcomeUnknown { cache, object, deleted, deadline: model.at(deadline) })
            }
        };
        let forgets = response != Response::Arrives && model.mistake == Some(Mistake::ForgetsLostResponses);
        if let Some(session) = &mut self.session {
            session.extend(pending.filter(|_| !forgets));
        }
    }

    /// Hands the writes of the reconcile over, as the tracker does.
    fn end(&mut self, model: &Model) {
        let mut writes = self.session.take().expect("a reconcile runs");
        if model.mistake == Some(Mistake::ForgetsTheLastWrite) {
            writes.pop();
        }
        if writes.is_empty() || !self.pending.add(&KEY, None, writes.clone(), model.at(self.now)) {
            return;
        }
        for write in &writes {
            match write {
                PendingWrite::Version { cache, .. } => {
                    self.pending.cache_reached(*cache, &self.resources[*cache].cache_version.into());
                }
                PendingWrite::Deletion { cache, uid: deleted, .. } => {
                    let cached = self.resources[*cache].cached;
                    if !cached.is_some_and(|object| uid(object.uid) == *deleted && !object.terminating) {
                        self.pending.object_ended(*cache, deleted);
                    }
                }
                PendingWrite::OutcomeUnknown { .. } => {}
            }
        }
    }

    /// The cache has an object, and that version, from now on.
    fn cache_shows(&mut self, model: &Model, cache: usize, version: u64, object: Option<Object>) {
        let resource = &mut self.resources[cache];
        let before = std::mem::replace(&mut resource.cached, object);
        resource.cache_version = version;
        let reported = if model.mistake == Some(Mistake::MixesCachesUp) { &CACHES[..] } else { &[cache] };
        for cache in reported {
            self.pending.cache_reached(*cache, &version.into());
        }
        let ended = before.filter(|before| {
            !object.is_some_and(|object| object.uid == before.uid && object.terminating == before.terminating)
        });
        if let Some(ended) = ended {
            self.pending.object_ended(cache, &uid(ended.uid));
        }
    }

    fn event(&mut self, model: &Model, cache: usize) {
        let (version, object) = self.resources[cache].unseen.pop_front().expect("there is a change");
        self.cache_shows(model, cache, version, object);
    }

    fn relist(&mut self, model: &Model, cache: usize) {
        self.resources[cache].unseen.clear();
        self.cache_shows(model, cache, self.version, self.resources[cache].live);
    }

    fn list(&mut self, model: &Model) {
        let begun = match model.mistake {
            Some(Mistake::DecidesBeforeTheDeadline) => self.now + DEADLINE,
            Some(_) | None => self.now,
        };
        // All writes are checked then.
        let at = if begun == self.now { model.at(self.now) } else { model.at(begun) };
        for check in self.pending.due(at) {
            let live = self.resources[check.cache].live.filter(|_| !check.object.name().is_empty());
            self.listings.push_back(Listing { check, begun, list_version: self.version, live });
        }
    }

    fn listed(&mut self, model: &Model) {
        let Listing { check, begun, list_version, live } = self.listings.pop_front().expect("a list is under way");
        if !self.pending.needs(&check) {
            return;
        }
        let resource = &self.resources[check.cache];
        let cached = resource.cached.filter(|_| !check.object.name().is_empty());
        let reached = ResourceVersion::from(resource.cache_version);
        let list_version = list_version.into();
        let state = LiveState { list_version, live: live.map(observed), cached: cached.map(observed) };
        self.pending.checked(&check, model.at(begun), &state);
        self.pending.cache_reached(check.cache, &reached);
    }

    /// Forgets the own writes that the caches show, and those that can no longer take effect.
    fn forget_what_is_shown(&mut self) {
        let Self { own, resources, now, .. } = self;
        own.retain(|own| match own {
            Own::Landed { cache, version, is_answered } => {
                let resource = &resources[*cache];
                resource.cache_version < *version && (*is_answered || !resource.is_as_after(*version))
            }
            Own::UnderWay { deadline, .. } => *now < *deadline,
        });
    }
}

#[test]
fn in_every_order_of_three_writes_a_key_sees_them_and_never_waits_for_ever() {
    assert!(Model::new(3, 0, 0).holds() > 100);
}

#[test]
fn changes_by_others_hide_no_own_write() {
    assert!(Model::new(2, 1, 0).holds() > 100);
}

#[test]
fn relists_hide_no_own_write() {
    assert!(Model::new(2, 0, 1).holds() > 10);
    Model::new(1, 1, 1).holds();
}

#[test]
fn the_search_finds_mistakes_that_are_planted() {
    for (mistake, expected) in [
        (Mistake::DecidesBeforeTheDeadline, "before its own writes"),
        (Mistake::ForgetsLostResponses, "before its own writes"),
        (Mistake::MixesCachesUp, "before its own writes"),
        (Mistake::ForgetsTheLastWrite, "before its own writes"),
        (Mistake::NeverLists, "for ever"),
    ] {
        let model = Model { mistake: Some(mistake), ..Model::new(2, 0, 0) };
        let (path, wrong) = model.search().expect_err("the mistake is there");
        assert!(wrong.contains(expected), "{mistake:?}: {wrong} after {path:?}");
    }
}
