//! When a key has seen its own writes: the rules of read-your-own-writes, without clock, caches or API server.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use kcm_api::{ObjectKey, ResourceVersion, Uid};
use kcm_framework::consistency::pending_writes::{CHECK_AFTER, LiveCheck, LiveState, PendingWrite, PendingWrites};
use kcm_informers::ObjectState;
use proptest::prelude::*;
use tokio::time::Instant;

const PODS: usize = 0;
const SETS: usize = 1;

type Key = &'static str;

fn object(name: &str) -> ObjectKey {
    ObjectKey::namespaced("ns", name)
}

fn version(cache: usize, version: &str) -> PendingWrite {
    PendingWrite::Version { cache, object: object("x"), version: ResourceVersion::from(version) }
}

fn deletion(uid: &str) -> PendingWrite {
    PendingWrite::Deletion { cache: PODS, object: object("x"), uid: Uid::from(uid) }
}

fn lost(deadline: Instant) -> PendingWrite {
    PendingWrite::OutcomeUnknown { cache: PODS, object: object("x"), deleted: None, deadline }
}

fn lost_deletion(uid: &str, deadline: Instant) -> PendingWrite {
    PendingWrite::OutcomeUnknown { cache: PODS, object: object("x"), deleted: Some(Uid::from(uid)), deadline }
}

fn waiting(writes: impl IntoIterator<Item = PendingWrite>, now: Instant) -> PendingWrites<Key> {
    let mut state = PendingWrites::new(2);
    assert!(state.add(&"k", None, writes.into_iter().collect(), now), "the key must wait for its writes");
    state
}

fn seen(uid: &str, version: &str) -> Option<ObjectState> {
    Some(ObjectState { uid: Uid::from(uid), resource_version: ResourceVersion::from(version), terminating: false })
}

fn terminating(uid: &str, version: &str) -> Option<ObjectState> {
    seen(uid, version).map(|state| ObjectState { terminating: true, ..state })
}

fn answer(list: &str, live: Option<ObjectState>, cached: Option<ObjectState>) -> LiveState {
    LiveState { list_version: ResourceVersion::from(list), live, cached }
}

fn check() -> LiveCheck<Key> {
    LiveCheck { key: "k", cache: PODS, object: object("x"), added: 1 }
}

fn rv(text: &str) -> ResourceVersion {
    ResourceVersion::from(text)
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_until_the_cache_has_observed_the_version_that_was_written() {
    let mut state = waiting([version(PODS, "100")], Instant::now());
    assert!(state.cache_reached(PODS, &rv("99")).is_empty());
    assert!(state.cache_reached(SETS, &rv("100")).is_empty(), "versions of another resource say nothing");
    assert_eq!(state.cache_reached(PODS, &rv("100")), ["k"]);
    assert!(!state.waits(&"k"));
}

#[tokio::test(start_paused = true)]
async fn a_live_list_that_was_due_before_a_write_decides_nothing_about_it() {
    let mut state = waiting([version(PODS, "100")], Instant::now());
    tokio::time::advance(CHECK_AFTER).await;
    let begun = Instant::now();
    let checks = state.due(begun);
    assert_eq!(state.cache_reached(PODS, &rv("100")), ["k"]);
    // The key is reconciled again while the list is under way.
    assert!(state.add(&"k", None, vec![version(PODS, "101")], Instant::now()));
    for check in &checks {
        assert!(!state.needs(check));
        let released = state.checked(check, begun, &answer("100", seen("u", "100"), seen("u", "100")));
        assert!(released.is_empty(), "the list is older than the write");
    }
    assert_eq!(state.cache_reached(PODS, &rv("101")), ["k"]);
}

#[tokio::test(start_paused = true)]
async fn versions_compare_as_decimals_of_any_length() {
    let mut state = waiting([version(PODS, "100000000000000000000000000")], Instant::now());
    assert!(state.cache_reached(PODS, &rv("99999999999999999999999999")).is_empty());
    assert_eq!(state.cache_reached(PODS, &rv("100000000000000000000000001")), ["k"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_no_decimal_blocks_nothing() {
    let mut state: PendingWrites<Key> = PendingWrites::new(1);
    assert!(!state.add(&"k", None, vec![version(PODS, "abc"), version(PODS, "")], Instant::now()));
}

#[tokio::test(start_paused = true)]
async fn a_look_that_is_answered_without_a_decimal_version_blocks_nothing() {
    for (list, live) in [("", None), ("abc", None), ("50", seen("u", "abc"))] {
        let now = Instant::now();
        let mut state = waiting([lost(now)], now);
        assert_eq!(state.checked(&check(), now, &answer(list, live, seen("v", "5"))), ["k"], "{list}");
        assert!(state.cache_reached(PODS, &rv("100")).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn the_event_that_settles_the_last_mark_wakes() {
    let writes = [version(PODS, "5"), version(PODS, "9"), version(PODS, "7"), version(SETS, "3"), deletion("u")];
    let mut state = waiting(writes, Instant::now());
    assert!(state.cache_reached(PODS, &rv("8")).is_empty(), "the latest version of a resource stands for all");
    assert!(state.cache_reached(PODS, &rv("9")).is_empty());
    assert!(state.object_ended(PODS, &Uid::from("u")).is_empty());
    assert_eq!(state.cache_reached(SETS, &rv("4")), ["k"]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_settled_by_the_end_of_that_object_alone() {
    let mut state = waiting([deletion("u")], Instant::now());
    assert!(state.object_ended(PODS, &Uid::from("other")).is_empty());
    assert!(state.object_ended(SETS, &Uid::from("u")).is_empty());
    assert!(state.cache_reached(PODS, &rv("999999")).is_empty());
    assert_eq!(state.object_ended(PODS, &Uid::from("u")), ["k"]);
}

#[tokio::test(start_paused = true)]
async fn two_keys_that_deleted_one_object_both_wake() {
    let mut state = PendingWrites::new(1);
    for key in ["a", "b"] {
        assert!(state.add(&key, None, vec![deletion("u")], Instant::now()));
    }
    assert_eq!(state.object_ended(PODS, &Uid::from("u")), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_object_of_a_key_ends_its_marks() {
    let mut state = PendingWrites::new(1);
    assert!(state.add(&"k", Some(&Uid::from("owner")), vec![version(PODS, "9"), deletion("u")], Instant::now()));
    assert!(state.owner_ended(&Uid::from("other"), |_| true).is_empty());
    assert!(state.owner_ended(&Uid::from("owner"), |_| false).is_empty(), "it only began to terminate");
    assert_eq!(state.owner_ended(&Uid::from("owner"), |_| true), ["k"]);
    assert!(state.cache_reached(PODS, &rv("9")).is_empty(), "nothing of the old writes is left");
    assert!(state.object_ended(PODS, &Uid::from("u")).is_empty());
    assert_eq!(state.next_check(), None);
}

#[tokio::test(start_paused = true)]
async fn a_mark_is_checked_live_when_it_is_thirty_seconds_old_and_again_after_as_long() {
    let now = Instant::now();
    let mut state = waiting([version(PODS, "9")], now);
    let due = now + CHECK_AFTER;
    assert_eq!(state.next_check(), Some(due));
    assert!(state.due(due - Duration::from_millis(1)).is_empty());
    assert_eq!(state.due(due), [check()]);
    assert_eq!(state.next_check(), Some(due + CHECK_AFTER));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_checked_at_its_deadline_and_not_before() {
    let now = Instant::now();
    let (early, late) = (now + Duration::from_secs(5), now + Duration::from_secs(50));
    let mut state = waiting([lost(late), version(SETS, "9"), lost(early)], now);
    assert_eq!(state.next_check(), Some(early));
    let checks = state.due(early);
    assert!(checks.contains(&check()));
    assert_eq!(state.next_check(), Some(early + CHECK_AFTER));
}

#[tokio::test(start_paused = true)]
async fn what_can_no_longer_take_effect_is_looked_up_at_once() {
    let now = Instant::now();
    let mut state = waiting([lost(now)], now);
    assert_eq!((state.next_check(), state.due(now)), (Some(now), vec![check()]));
    assert_eq!(state.checked(&check(), now, &answer("50", None, None)), ["k"]);
}

/// Rows of writes after a live check: (name, write, live state, whether the key still waits, the change that releases
/// it).
#[tokio::test(start_paused = true)]
async fn a_live_look_ends_a_wait_or_says_what_to_wait_for() {
    let past = Instant::now();
    tokio::time::advance(Duration::from_mins(1)).await;
    let begun = Instant::now();
    let future = begun + Duration::from_secs(1);
    let cases = [
        ("create lost, never happened", lost(past), answer("50", None, None), None),
        ("create lost, happened, cache behind", lost(past), answer("50", seen("u", "40"), None), Some("40")),
        ("create lost, happened, cache current", lost(past), answer("50", seen("u", "40"), seen("u", "40")), None),
        ("put lost, cache behind", lost(past), answer("50", seen("u", "40"), seen("u", "30")), Some("40")),
        ("put lost, object gone since, cache behind", lost(past), answer("50", None, seen("u", "30")), Some("50")),
        ("look begun before the deadline", lost(future), answer("50", None, None), Some("never")),
        ("delete lost, never happened", lost_deletion("u", past), answer("50", seen("u", "4"), seen("u", "4")), None),
        ("delete lost, happened, cache current", lost_deletion("u", past), answer("50", None, None), None),
        ("delete lost, cache behind", lost_deletion("u", past), answer("50", None, seen("u", "4")), Some("end")),
        (
            "delete lost, terminating, cache behind",
            lost_deletion("u", past),
            answer("50", terminating("u", "5"), seen("u", "4")),
            Some("end"),
        ),
        ("written, cache only behind", version(PODS, "45"), answer("50", seen("u", "45"), seen("u", "4")), Some("45")),
        ("written, cache current", version(PODS, "45"), answer("50", seen("u", "45"), seen("u", "45")), None),
        (
            "written, gone since, cache may have seen neither it nor what was written before",
            version(PODS, "45"),
            answer("50", None, None),
            Some("45"),
        ),
        ("written, gone since, storage restored", version(PODS, "45"), answer("20", None, None), None),
        ("written, storage restored", version(PODS, "45"), answer("20", None, seen("u", "4")), None),
        ("deleted, cache behind", deletion("u"), answer("50", None, seen("u", "4")), Some("end")),
        ("deleted, cache knows", deletion("u"), answer("50", None, None), None),
        ("deleted, recreated", deletion("u"), answer("50", seen("v", "45"), seen("v", "45")), None),
        ("deleted, storage restored", deletion("u"), answer("20", seen("u", "4"), seen("u", "4")), None),
    ];
    for (name, write, answer, wakes_at) in cases {
        let mut state = waiting([write], past);
        let released = state.checked(&check(), begun, &answer);
        assert_eq!(released.is_empty(), wakes_at.is_some(), "{name}");
        match wakes_at {
            None => assert!(!state.waits(&"k"), "{name}"),
            Some("end") => assert_eq!(state.object_ended(PODS, &Uid::from("u")), ["k"], "{name}"),
            Some("never") => {
                assert!(state.cache_reached(PODS, &rv("1000")).is_empty(), "{name}");
                assert!(state.waits(&"k"), "{name}");
            }
            Some(at) => {
                let before = (at.parse::<u64>().unwrap() - 1).to_string();
                assert!(state.cache_reached(PODS, &rv(&before)).is_empty(), "{name}");
                assert_eq!(state.cache_reached(PODS, &rv(at)), ["k"], "{name}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_of_unknown_name_is_waited_for_until_the_cache_shows_the_whole_list() {
    let now = Instant::now();
    let unnamed = ObjectKey::namespaced("ns", "");
    let write = PendingWrite::OutcomeUnknown { cache: PODS, object: unnamed.clone(), deleted: None, deadline: now };
    let mut state = waiting([write], now);
    let check = LiveCheck { object: unnamed, ..check() };
    assert_eq!(state.due(now), std::slice::from_ref(&check));
    assert!(state.checked(&check, now, &answer("50", None, None)).is_empty());
    assert!(state.cache_reached(PODS, &rv("49")).is_empty());
    assert_eq!(state.cache_reached(PODS, &rv("50")), ["k"]);
}

#[tokio::test(start_paused = true)]
async fn a_look_is_needed_until_its_mark_is_settled() {
    let mut state = waiting([version(PODS, "9")], Instant::now());
    assert!(state.needs(&check()));
    assert!(!state.needs(&LiveCheck { object: object("other"), ..check() }));
    assert!(!state.needs(&LiveCheck { cache: SETS, ..check() }));
    state.cache_reached(PODS, &rv("9"));
    assert!(!state.needs(&check()));
}

#[tokio::test(start_paused = true)]
async fn a_look_at_one_object_says_nothing_of_another() {
    let now = Instant::now();
    let mut state = waiting([version(PODS, "9")], now);
    let other = LiveCheck { object: object("other"), ..check() };
    assert!(state.checked(&other, now, &answer("50", None, None)).is_empty());
    assert!(state.waits(&"k"));
}

proptest! {
    /// A key wakes exactly when its caches have observed all that it wrote, in whatever order events come.
    #[test]
    fn keys_wake_exactly_when_all_their_versions_are_observed(
        writes in prop::collection::vec((0..3_usize, 0..2_usize, 1..30_u64), 1..20),
        events in prop::collection::vec((0..2_usize, 1..5_u64), 1..40),
    ) {
        const KEYS: [Key; 3] = ["a", "b", "c"];
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime must start");
        let now = runtime.block_on(async { Instant::now() });
        let mut state = PendingWrites::new(2);
        let mut model: [[u64; 2]; 3] = [[0; 2]; 3];
        for (key, cache, written) in writes {
            model[key][cache] = model[key][cache].max(written);
            state.add(&KEYS[key], None, vec![version(cache, &written.to_string())], now);
        }
        let mut observed = [0; 2];
        for (cache, step) in events {
            observed[cache] += step;
            let before: BTreeSet<Key> = KEYS.into_iter().filter(|key| state.waits(key)).collect();
            let released: BTreeSet<Key> = state.cache_reached(cache, &rv(&observed[cache].to_string())).into_iter().collect();
            for (index, key) in KEYS.into_iter().enumerate() {
                let confirmed = (0..2).all(|cache| model[index][cache] <= observed[cache]);
                prop_assert_eq!(state.waits(&key), before.contains(key) && !confirmed);
                prop_assert_eq!(released.contains(key), before.contains(key) && confirmed);
            }
        }
    }
}

#[test]
fn a_cache_whose_resource_has_disappeared_holds_no_key() {
    let now = Instant::now();
    let mut state = PendingWrites::new(2);
    state.add(&"both", None, vec![version(PODS, "5"), version(SETS, "6")], now);
    state.add(&"pods", None, vec![version(PODS, "7"), deletion("u"), lost(now)], now);
    assert_eq!(state.cache_emptied(PODS), ["pods"]);
    assert!(state.object_ended(PODS, &Uid::from("u")).is_empty() && state.cache_reached(PODS, &rv("9")).is_empty());
    assert_eq!(state.cache_reached(SETS, &rv("6")), ["both"]);
    assert!(state.is_empty());
}

thread_local! {
    static COMPARISONS: Cell<usize> = const { Cell::new(0) };
}

/// A key that counts how often keys are compared.
#[derive(Debug, Clone)]
struct Counted(usize);

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Ord for Counted {
    fn cmp(&self, other: &Self) -> Ordering {
        COMPARISONS.set(COMPARISONS.get() + 1);
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Counted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Counted {}

/// Number of comparisons of a thousand reconciles that write and are confirmed, beside so many waiting keys.
fn comparisons_beside(waiting: usize, now: Instant) -> usize {
    const RECONCILES: usize = 1_000;
    let uid = |key: usize| Uid::from(format!("uid-{key}").as_str());
    let mut state = PendingWrites::new(1);
    let wrote = |at: usize| vec![version(0, &at.to_string())];
    for key in 0..waiting {
        state.add(&Counted(key), Some(&uid(key)), wrote(1_000_000 + key), now);
    }
    COMPARISONS.set(0);
    for at in 0..RECONCILES {
        let key = Counted(waiting + at);
        let later = now + Duration::from_millis(at as u64 + 1);
        state.add(&key, Some(&uid(key.0)), wrote(at + 1), later);
        assert_eq!(state.next_check(), Some(now + CHECK_AFTER));
        assert!(state.due(later).is_empty());
        let ended = if at % 2 == 0 {
            state.cache_reached(0, &rv(&(at + 1).to_string()))
        } else {
            state.owner_ended(&uid(key.0), |_| true)
        };
        assert_eq!(ended, [key]);
    }
    COMPARISONS.get()
}

#[tokio::test(start_paused = true)]
async fn a_write_costs_the_same_however_many_keys_wait() {
    let now = Instant::now();
    let [few, many] = [50, 5_000].map(|waiting| comparisons_beside(waiting, now));
    assert!(many < 4 * few, "{few} comparisons beside 50 waiting keys, {many} beside 5,000");
}

proptest! {
    #[test]
    fn the_next_check_and_the_keys_of_an_owner_are_those_of_a_search_of_all_keys(
        steps in prop::collection::vec((0_usize..8, 0_usize..3, 0_u64..60, 0_usize..4), 1..80),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().start_paused(true).enable_time().build().unwrap();
        runtime.block_on(async {
            let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
            let uids = ["one", "two", "three"].map(Uid::from);
            let begun = Instant::now();
            let mut state: PendingWrites<Key> = PendingWrites::new(1);
            let mut owners: BTreeMap<Key, usize> = BTreeMap::new();
            let mut now = begun;
            for (key, owner, delay, verb) in steps {
                now += Duration::from_secs(delay / 4);
                match verb {
                    0 | 1 => {
                        let deadline = now + Duration::from_secs(delay);
                        let writes = if verb == 0 { vec![version(PODS, "9")] } else { vec![lost(deadline)] };
                        state.add(&keys[key], Some(&uids[owner]), writes, now);
                        owners.entry(keys[key]).or_insert(owner);
                    }
                    2 => drop(state.due(now)),
                    _ => {
                        let mut expected: Vec<Key> =
                            owners.iter().filter(|(_, of)| **of == owner).map(|(key, _)| *key).collect();
                        let mut ended = state.owner_ended(&uids[owner], |_| true);
                        ended.sort_unstable();
                        expected.sort_unstable();
                        assert_eq!(ended, expected);
                        owners.retain(|_, of| *of != owner);
                    }
                }
                let all = owners.keys().map(|key| state.of(key).expect("the key waits").1);
                assert_eq!(state.next_check(), all.min());
            }
        });
    }
}
